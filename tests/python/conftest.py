"""Where the tests find what they test."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def build():
    """The build folder of the programs under test: $SPIKELOOM_BUILD, or build/dev."""
    return pathlib.Path(os.environ.get("SPIKELOOM_BUILD", ROOT / "build/dev"))


def _program(path):
    if not path.is_file():
        pytest.fail(f"{path} does not exist; scripts/test builds it")
    return path


@pytest.fixture(scope="session")
def reference_tool(build):
    return _program(build / "tests/reference_tool")


@pytest.fixture(scope="session")
def spikeloom(build):
    return _program(build / "spikeloom")
