"""The benchmark of whole training steps, on networks small enough for a test."""

import pytest

from helpers import error_line, only_json

TINY = ["--net", "60-70-40-5", "--steps", "20", "--batch", "6", "--seconds", "0.1", "--threads", "2"]


def bench(spikeloom, *arguments):
    return only_json(spikeloom("bench", "train", *TINY, *arguments, "--json"))


@pytest.fixture(scope="module")
def usual(spikeloom):
    return bench(spikeloom)


def test_json_has_what_was_measured_and_the_dense_mode_beside_it(usual):
    for key in ("net", "threads", "mode", "precision", "batch", "steps", "samples_per_s", "ms_per_batch", "phases"):
        assert key in usual
    assert set(usual["phases"]) == {"forward", "backward", "update", "data"}
    assert set(usual["activity"]) == {"hidden1", "hidden2"}
    assert (usual["threads"], usual["mode"], usual["precision"]) == (2, "sparse", "fp32")
    assert usual["samples_per_s"] == pytest.approx(1000 * 6 / usual["ms_per_batch"])
    assert usual["dense"]["ms_per_batch"] / usual["ms_per_batch"] == pytest.approx(usual["speedup_over_dense"])
    assert usual["peak_memory_bytes"] > 1e6


def test_sparse_and_dense_compute_the_same_losses(usual):
    for key in ("loss_of_first_step", "loss_after_20_steps"):
        assert usual[key] == pytest.approx(usual["dense"][key], abs=1e-3)


def test_bf16_computes_nearly_the_same_losses_and_not_the_same(spikeloom, usual):
    half = bench(spikeloom, "--precision", "bf16", "--no-dense")
    assert half["precision"] == "bf16"
    assert "dense" not in half
    assert half["loss_of_first_step"] != usual["loss_of_first_step"]
    assert half["loss_of_first_step"] == pytest.approx(usual["loss_of_first_step"], rel=0.05)


def test_activity_is_set_where_it_was_asked_for(usual, spikeloom):
    busy = bench(spikeloom, "--activity", "0.2", "--input-activity", "0.1", "--no-dense")
    assert busy["input_activity"] == pytest.approx(0.1, abs=0.03)
    assert busy["activity"]["hidden1"] > 3 * usual["activity"]["hidden1"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--net", "no-such-net"],
        ["--net", "60"],
        ["--net", "60-0-5"],
        ["--net", "60-999999-5"],
        ["--precision", "fp8"],
        ["--mode", "fast"],
        ["--activity", "2"],
    ],
)
def test_wrong_options_exit_with_2_and_one_line(spikeloom, arguments):
    result = spikeloom("bench", "train", *TINY[2:], *arguments)
    assert result.returncode == 2
    error_line(result)
