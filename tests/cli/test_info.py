"""spikeloom info and spikeloom data."""

import struct

import pytest

from conftest import record
from helpers import error_line, only_json


def test_info_of_a_run_a_checkpoint_data_and_a_configuration(spikeloom, trained):
    kinds = {"run": "run", "run/last.safetensors": "checkpoint", "digits": "data", "config.toml": "configuration"}
    for name, kind in kinds.items():
        assert only_json(spikeloom("info", trained / name, "--json"))["kind"] == kind
        result = spikeloom("info", trained / name)
        assert result.returncode == 0, result.stderr
        assert result.stdout != ""


def test_info_of_a_checkpoint_shows_tensors(spikeloom, trained):
    info = only_json(spikeloom("info", trained / "run" / "last.safetensors", "--json"))
    assert info["tensors"]["hidden1.weight"]["shape"] == [24, 2312]
    assert info["tensors"]["readout.bias"]["shape"] == [4]


def test_info_of_a_run_shows_layers_and_epochs(spikeloom, trained):
    info = only_json(spikeloom("info", trained / "run", "--json"))
    assert [layer["name"] for layer in info["layers"]] == ["hidden1", "readout"]
    assert info["epochs"] == 2


def test_info_draws_who_takes_spikes_from_whom(spikeloom, tmp_path):
    config = tmp_path / "net.toml"
    config.write_text(
        """
[data]
train = "t"
channels = 9
steps = 5
[[layers]]
name = "cue"
size = 8
[[layers]]
name = "a"
size = 128
inputs = ["cue", "b"]
[[layers]]
name = "b"
size = 6
recurrent = true
[[layers]]
name = "out"
neuron = "li"
size = 2
inputs = ["a", "b"]
"""
    )
    lines = spikeloom("info", config).stdout.splitlines()
    assert lines[:5] == [
        "# layer cue    8 lif   <- data",
        "# layer a      128 lif <- cue, b (one step later)",
        "# layer b      6 lif   <- a, itself (one step later)",
        "# layer out    2 li    <- a, b",
        "# step by step a, b",
    ]
    cue, a, b, out = only_json(spikeloom("info", config, "--json"))["layers"]
    assert (cue["feedback"], cue["loop"]) == ([], [])
    assert (a["inputs"], a["feedback"], a["loop"]) == (["cue", "b"], ["b"], ["a", "b"])
    assert (b["inputs"], b["feedback"], b["loop"], b["recurrent"]) == (["a"], [], ["a", "b"], True)
    assert (out["inputs"], out["feedback"], out["loop"]) == (["a", "b"], [], [])


@pytest.mark.parametrize(
    "name, content",
    [
        ("short.safetensors", b"\x10"),
        ("long.safetensors", struct.pack("<Q", 1 << 60) + b"{}"),
        ("text.safetensors", struct.pack("<Q", 4) + b"spam"),
        ("array.safetensors", struct.pack("<Q", 2) + b"[]"),
        ("noise.h5", b"not HDF5 at all"),
        ("empty.h5", b""),
    ],
)
def test_info_of_damaged_files(spikeloom, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    result = spikeloom("info", tmp_path / name)
    assert result.returncode == 2, result.stderr
    assert name in error_line(result)


def test_info_of_nothing(spikeloom, tmp_path):
    result = spikeloom("info", tmp_path / "missing")
    assert result.returncode == 2
    assert "missing" in error_line(result)


def test_data_info_json_has_the_promised_keys(spikeloom, project):
    info = only_json(spikeloom("data", "info", project / "digits", "--json"))
    assert {"samples", "classes", "channels", "duration_ms", "events", "events_per_sample", "activity", "dropped_events"} <= set(info)
    assert info["samples"] == 48
    assert info["classes"] == 4
    assert info["channels"] == 2312
    assert info["events"] == 48 * 60


def test_data_info_of_parts(spikeloom, project):
    for part, samples in (("train", 24), ("test", 24), ("all", 48)):
        assert only_json(spikeloom("data", "info", project / "digits", "--part", part, "--json"))["samples"] == samples


def test_data_info_counts_what_binning_drops(spikeloom, tmp_path):
    directory = tmp_path / "Train" / "0"
    directory.mkdir(parents=True)
    (directory / "00001.bin").write_bytes(record(1, 1, 0, 0) + record(1, 1, 0, 1999) + record(1, 1, 0, 2000) + record(1, 1, 0, 9000))
    info = only_json(spikeloom("data", "info", tmp_path, "--step-ms", 1, "--steps", 2, "--json"))
    assert info["events"] == 4
    assert info["dropped_events"] == 2


def test_data_info_of_damaged_data_names_the_file(spikeloom, project):
    bad = project / "digits" / "Train" / "2" / "00003.bin"
    bad.write_bytes(bad.read_bytes()[:-2])
    result = spikeloom("data", "info", project / "digits")
    assert result.returncode == 2
    assert "00003.bin" in error_line(result)


@pytest.mark.parametrize("step", ["0", "-1", "0.0005", "nan"])
def test_data_info_wants_whole_microseconds(spikeloom, project, step):
    result = spikeloom("data", "info", project / "digits", "--step-ms", step)
    assert result.returncode == 2
    assert "--step-ms" in error_line(result)


def test_encode_of_a_folder_without_recordings(spikeloom, tmp_path):
    (tmp_path / "empty").mkdir()
    result = spikeloom("data", "encode", tmp_path / "empty", "--out", tmp_path / "out.h5")
    assert result.returncode == 2
    assert "empty" in error_line(result)
    assert not (tmp_path / "out.h5").exists()
