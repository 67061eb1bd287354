"""Places that can't be written."""

import os
import shutil
import subprocess

import pytest

from helpers import error_line, tensors


def test_a_place_where_no_folder_can_be_made(spikeloom, project):
    result = spikeloom("train", project / "config.toml", "--out", "/proc/run")
    assert result.returncode == 2
    assert "/proc/run" in error_line(result)


def test_predictions_into_a_missing_folder(spikeloom, trained):
    result = spikeloom("eval", trained / "run", "--predictions", "/nonexistent/p.csv")
    assert result.returncode == 2
    assert "/nonexistent/p.csv" in error_line(result)


@pytest.fixture
def small_disk(request, tmp_path):
    """A file system of 64 KiB, or of the size that the test names, where this user may mount one."""
    size = getattr(request, "param", "64k")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("needs the right to mount a tmpfs")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_full_disk_exits_with_4_and_leaves_no_part_of_a_file(spikeloom, project, small_disk):
    result = spikeloom("train", project / "config.toml", "--out", small_disk / "run")
    assert result.returncode == 4, result.stderr
    assert "run" in error_line(result)
    assert [path.name for path in small_disk.rglob("*partial*")] == []
    assert list(small_disk.rglob("*.safetensors")) == []


@pytest.mark.parametrize("small_disk", ["1000k"], indirect=True)
def test_disk_that_fills_up_in_training_keeps_the_last_checkpoint(spikeloom, project, small_disk):
    # The first checkpoint fits (0.9 MB), but not the second beside it.
    result = spikeloom("train", project / "config.toml", "--out", small_disk / "run")
    assert result.returncode == 4, result.stderr
    assert "run" in error_line(result)
    assert [path.name for path in small_disk.rglob("*partial*")] == []
    assert spikeloom("eval", small_disk / "run").returncode == 0
    # Elsewhere the run goes on to the bits of one that had room.
    shutil.copytree(small_disk / "run", project / "moved")
    assert spikeloom("train", "--out", project / "moved", "--resume").returncode == 0
    assert spikeloom("train", project / "config.toml", "--out", project / "whole").returncode == 0
    assert tensors(project / "moved" / "last.safetensors") == tensors(project / "whole" / "last.safetensors")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_standard_output_exits_with_4(spikeloom):
    with open("/dev/full", "w") as full:
        process = spikeloom.start("train", "--help-settings", stdout=full, stderr=-1)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "standard output can't be written" in errors


def test_a_reader_that_goes_away_is_no_error(spikeloom):
    process = spikeloom.start("train", "--help-settings", stdout=-1, stderr=-1)
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(timeout=60) == 0, errors
    assert errors == ""
