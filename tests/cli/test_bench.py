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
    assert len(usual["losses"]) == 20
    assert usual["losses"] == pytest.approx(usual["dense"]["losses"], abs=1e-3)


def test_bf16_computes_nearly_the_same_losses_and_not_the_same(spikeloom, usual):
    half = bench(spikeloom, "--precision", "bf16", "--no-dense")
    assert half["precision"] == "bf16"
    assert "dense" not in half
    assert half["losses"][0] != usual["losses"][0]
    assert half["losses"][0] == pytest.approx(usual["losses"][0], rel=0.05)


def test_activity_is_set_where_it_was_asked_for(usual, spikeloom):
    busy = bench(spikeloom, "--activity", "0.2", "--input-activity", "0.1", "--no-dense")
    assert busy["input_activity"] == pytest.approx(0.1, abs=0.03)
    assert busy["activity"]["hidden1"] > 3 * usual["activity"]["hidden1"]


def test_the_limit_is_that_of_the_plan_for_what_was_measured(spikeloom, cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    net = ["--net", "60-70-40-5", "--threads", "1"]
    planned = only_json(spikeloom("plan", *net, "--activity", "0.05", "--json"))  # measures the machine, if nobody has
    timing = ["--activity", "0.05", "--seconds", "0.1", "--no-dense"]
    report = only_json(spikeloom("bench", "train", *net, *timing, "--json"))
    # The plan guesses how many neurons are in the window, and the weights meet the activity only nearly.
    assert report["limit_samples_per_s"] == pytest.approx(planned["limit_samples_per_s"], rel=0.15)
    [line] = [line for line in spikeloom("bench", "train", *net, *timing).stdout.splitlines() if "limit" in line]
    assert "samples/s, reached 0." in line
    dense = only_json(spikeloom("bench", "train", *net, *timing, "--mode", "dense", "--json"))
    assert "limit_samples_per_s" not in dense, "lists don't limit products"


def test_nothing_is_measured_for_a_limit_nobody_asked_for(spikeloom, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "limit_samples_per_s" not in bench(spikeloom, "--no-dense")
    [line] = [line for line in spikeloom("bench", "train", *TINY, "--no-dense").stdout.splitlines() if "limit" in line]
    assert "bench kernels" in line and "plan --measure" in line
    assert not list(tmp_path.iterdir())


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
