"""What the tests of the command line share: the program, small data, a small configuration."""

import os
import random
import subprocess
from pathlib import Path

import pytest


class Program:
    """Runs the built spikeloom; `SPIKELOOM_BINARY` says where it is."""

    def __init__(self, path):
        self.path = path

    def __call__(self, *arguments, cwd=None, **options):
        command = [self.path, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120, **options)

    def start(self, *arguments, **options):
        return subprocess.Popen([self.path, *map(str, arguments)], text=True, **options)


@pytest.fixture(scope="session")
def spikeloom():
    path = os.environ.get("SPIKELOOM_BINARY")
    if not path:
        pytest.fail("SPIKELOOM_BINARY is not set: run through ctest, or set it to the built program")
    return Program(path)


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """Where the machine's figures are kept: measuring it takes some seconds, so once for all tests."""
    return tmp_path_factory.mktemp("cache")


def record(x, y, polarity, time_us):
    """One event of an N-MNIST file."""
    return bytes([x, y, (polarity << 7) | (time_us >> 16), (time_us >> 8) & 0xFF, time_us & 0xFF])


def write_nmnist(folder, per_class=6, classes=4, events=60, seed=1):
    """An N-MNIST folder whose classes are rows of the sensor: simple enough to be learnt in seconds."""
    rng = random.Random(seed)
    for part in ("Train", "Test"):
        for label in range(classes):
            directory = Path(folder) / part / str(label)
            directory.mkdir(parents=True)
            for sample in range(per_class):
                times = sorted(rng.randrange(0, 50_000) for _ in range(events))
                data = b"".join(record(rng.randrange(34), 8 * label + rng.randrange(4), rng.randrange(2), t) for t in times)
                (directory / f"{sample + 1:05d}.bin").write_bytes(data)
    return Path(folder)


CONFIGURATION = """\
seed = 3
[data]
train = "digits"
test = "digits"
step_ms = 5.0
steps = 10
validation = 0.2
[[layers]]
name = "hidden1"
size = 24
tau_mem_ms = 20.0
[[layers]]
name = "readout"
neuron = "li"
size = 4
tau_mem_ms = 20.0
[training]
epochs = 2
batch_size = 8
[optimizer]
learning_rate = 5e-3
[engine]
threads = 1
"""


@pytest.fixture
def project(tmp_path):
    """A folder with data and a configuration, for one test."""
    write_nmnist(tmp_path / "digits")
    (tmp_path / "config.toml").write_text(CONFIGURATION)
    return tmp_path


@pytest.fixture(scope="session")
def trained(spikeloom, tmp_path_factory):
    """A folder with data, a configuration and a finished run; not to be changed."""
    folder = tmp_path_factory.mktemp("trained")
    write_nmnist(folder / "digits")
    (folder / "config.toml").write_text(CONFIGURATION)
    result = spikeloom("train", folder / "config.toml", "--out", folder / "run")
    assert result.returncode == 0, result.stderr
    return folder
