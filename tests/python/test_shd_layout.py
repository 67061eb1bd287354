"""Files in the layout of the Spiking Heidelberg Digits pass between Spikeloom and h5py, which everybody else uses."""

import json
import subprocess

import numpy as np
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed (Debian: python3-h5py)")


def call(program, *arguments):
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("time_type", (np.float16, np.float32, np.float64), ids=lambda t: np.dtype(t).name)
@pytest.mark.parametrize("storage", ({}, {"chunks": True, "compression": "gzip"}), ids=("contiguous", "compressed"))
def test_files_written_by_h5py_are_read(spikeloom, tmp_path, time_type, storage):
    random = np.random.default_rng(1)
    recordings = [
        (random.uniform(0.0, 0.9, n), random.integers(0, 700, n)) for n in (300, 0, 1, 50)
    ]  # unsorted, one empty
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        times = file.create_dataset("spikes/times", (len(recordings),), h5py.vlen_dtype(time_type), **storage)
        units = file.create_dataset("spikes/units", (len(recordings),), h5py.vlen_dtype(np.uint16), **storage)
        for i, (seconds, channels) in enumerate(recordings):
            times[i], units[i] = seconds.astype(time_type), channels.astype(np.uint16)
        file["labels"] = np.array([0, 1, 2, 1], np.uint16)
    info = json.loads(call(spikeloom, "data", "info", tmp_path / "mine.h5", "--json"))
    assert info["samples"] == 4
    assert info["classes"] == 3
    assert info["channels"] == 700
    assert info["events"] == 351


def test_built_in_data_have_the_layout_of_shd(spikeloom, tmp_path):
    call(spikeloom, "data", "spoken-digits", "--out", tmp_path, "--train", 40, "--test", 20, "--seed", 1)
    for name, samples in (("train.h5", 40), ("test.h5", 20)):
        with h5py.File(tmp_path / name, "r") as file:
            times, units, labels = file["spikes/times"], file["spikes/units"], file["labels"]
            assert h5py.check_vlen_dtype(times.dtype) == np.float16
            assert h5py.check_vlen_dtype(units.dtype) == np.uint16
            assert labels.dtype == np.uint16
            assert times.shape == units.shape == labels.shape == file["extra/speaker"].shape == (samples,)
            assert set(labels[:]) <= set(range(20))
            assert file["extra/keys"].shape == (20,)
            for seconds, channels in zip(times, units, strict=True):
                assert len(seconds) == len(channels) > 500  # a spoken digit has some thousand events
                assert 0.0 <= seconds.min() and seconds.max() < 3.0
                assert channels.max() < 700
