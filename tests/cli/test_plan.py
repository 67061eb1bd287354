"""spikeloom plan, and bench kernels' promises that do not depend on time."""

import json
import os

import pytest

from helpers import error_line, only_json


@pytest.fixture
def plan(spikeloom, cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return lambda *arguments: spikeloom("plan", *arguments)


def test_plan_of_a_configuration_has_the_promised_keys(plan, project):
    report = only_json(plan(project / "config.toml", "--json"))
    assert {"machine", "workers", "cpu_of_worker", "batch", "steps", "layers", "memory_bytes", "predicted", "assumed"} <= set(report)
    assert [layer["name"] for layer in report["layers"]] == ["hidden1", "readout"]
    for layer in report["layers"]:
        assert {"tile_width", "tiles", "tiles_per_worker", "group_samples", "mode", "predicted_ms", "dense_from_activity"} <= set(layer)
        assert sum(layer["tiles_per_worker"]) == pytest.approx(layer["tiles"])
    assert report["batch"] == 8 and report["steps"] == 10 and report["workers"] == 1
    assert set(report["predicted"]["phases"]) == {"forward", "backward", "update", "data"}
    assert report["memory_bytes"]["total"] == sum(v for k, v in report["memory_bytes"].items() if k != "total")


def test_input_activity_is_the_data_s(plan, project, spikeloom):
    info = only_json(spikeloom("data", "info", project / "digits", "--part", "train", "--step-ms", 5, "--steps", 10, "--json"))
    report = only_json(plan(project / "config.toml", "--json"))
    assert report["input_activity"] == pytest.approx(info["activity"], rel=1e-6)
    assert not any("input activity" in text for text in report["assumed"])


def test_what_is_assumed_is_said(plan, project):
    (project / "config.toml").write_text((project / "config.toml").read_text().replace('"digits"', '"missing"'))
    result = plan(project / "config.toml", "--set", "data.channels=2312")
    assert result.returncode == 0, result.stderr
    assert "assumed" in result.stdout and "no data" in result.stdout


def test_what_feedback_costs_is_not_predicted_silently(plan, spikeloom, project):
    second = '[[layers]]\nname = "hidden2"\nsize = 20\ntau_mem_ms = 20.0\n[[layers]]\nname = "readout"'
    config = project / "config.toml"
    config.write_text(config.read_text().replace('[[layers]]\nname = "readout"', second))
    chain = only_json(plan(config, "--json"))
    joined = only_json(plan(config, "--json", "--set", 'layers.hidden1.inputs=["data", "hidden2"]'))
    assert not any("feedback" in text for text in chain["assumed"])
    assert any("hidden1, hidden2" in text and "not predicted" in text for text in joined["assumed"])


def test_an_unknown_input_size_is_the_user_s_error(plan, project):
    (project / "config.toml").write_text((project / "config.toml").read_text().replace('"digits"', '"missing"'))
    result = plan(project / "config.toml")
    assert result.returncode == 2
    assert "data.channels" in error_line(result)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--net", "no-such-net"),
        ("--net", "small", "--activity", "1.5"),
        ("--net", "small", "--threads", "-1"),
        ("missing.toml",),
    ],
)
def test_wrong_input_ends_with_2(plan, arguments):
    result = plan(*arguments)
    assert result.returncode == 2
    error_line(result)


def test_time_and_memory_grow_with_activity(plan):
    reports = [only_json(plan("--net", "nmnist-mlp", "--activity", activity, "--json")) for activity in (0.01, 0.05, 0.2)]
    assert sorted(r["predicted"]["ms_per_batch"] for r in reports) == [r["predicted"]["ms_per_batch"] for r in reports]
    assert reports[0]["memory_bytes"]["saved"] < reports[1]["memory_bytes"]["saved"] < reports[2]["memory_bytes"]["saved"]


def test_chunks_of_recordings_take_less_memory_and_more_time(plan, project):
    steps = ("--set", "data.steps=1000", "--set", "layers.hidden1.size=256")
    whole = only_json(plan(project / "config.toml", *steps, "--json"))
    chunks = only_json(plan(project / "config.toml", *steps, "--set", "training.bptt_steps=20", "--json"))
    assert (whole["bptt_steps"], chunks["bptt_steps"]) == (0, 20)
    assert chunks["memory_bytes"]["saved"] < 0.5 * whole["memory_bytes"]["saved"]
    assert chunks["predicted"]["phases"]["forward"] > whole["predicted"]["phases"]["forward"]
    text = plan(project / "config.toml", *steps, "--set", "training.bptt_steps=20").stdout
    assert "1000 steps, in chunks of 20, each forward twice" in text


def test_a_damaged_cache_is_measured_anew(plan, cache):
    before = only_json(plan("--net", "small", "--json"))
    [kept] = (cache / "spikeloom").glob("machine-*.json")
    kept.write_text(kept.read_text()[:-20])
    after = only_json(plan("--net", "small", "--json"))
    assert after["machine"]["cpu"] == before["machine"]["cpu"]
    assert json.loads(kept.read_text())["figures"]["l2_bandwidth"] > 0.0


def test_kernels_and_a_recurrent_step_are_timed_for_every_number_of_threads(spikeloom, cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    report = only_json(spikeloom("bench", "kernels", "--json"))
    kernels = {timing["kernel"] for timing in report["kernels"]}
    assert kernels == {"forward_spiking", "backward_spiking", "weight_gradient", "input_gradient", "adam_step"}
    assert all(timing["ns_per_event"] > 0.0 for timing in report["kernels"])
    step = report["recurrent_step"]
    cores = len(os.sched_getaffinity(0))
    powers = [2**i for i in range(cores.bit_length()) if 2**i < cores]
    assert [timing["threads"] for timing in step["by_threads"]] == [*powers, cores]
    alone = step["by_threads"][0]
    # Listing takes longer than for nobody to come; that a second worker makes a meeting dearer is up to the machine.
    assert 0.0 < alone["barrier_ns"] < alone["list_spikes_ns"] < 1e6
    assert 0.0 < alone["gather_gradients_ns"] < 1e6
