"""spikeloom data spoken-digits, data encode and data encode-images."""

import gzip
import shutil
import signal
import struct
import time

import pytest

from helpers import error_line, only_json

needs_speech = pytest.mark.skipif(not shutil.which("espeak-ng"), reason="needs espeak-ng")


def write_wav(path, seconds=0.3, rate=16000):
    """A click train: sound enough for the ear."""
    samples = [20000 if i % 160 < 4 else 0 for i in range(int(seconds * rate))]
    data = struct.pack(f"<{len(samples)}h", *samples)
    header = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16, b"data", len(data))
    path.write_bytes(header + data)


@pytest.fixture
def recordings(tmp_path):
    folder = tmp_path / "recordings"
    folder.mkdir()
    for label in range(3):
        for speaker in ("ann", "bob"):
            for index in range(3):
                write_wav(folder / f"{label}_{speaker}_{index}.wav")
    return folder


@needs_speech
def test_spoken_digits_are_the_same_bytes_for_any_number_of_threads(spikeloom, tmp_path):
    for name, threads in (("a", 1), ("b", 3)):
        made = only_json(spikeloom("data", "spoken-digits", "--out", tmp_path / name, "--train", 20, "--test", 20, "--threads", threads, "--json"))
        assert made["train_samples"] == 20
    for name in ("train.h5", "test.h5"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    info = only_json(spikeloom("data", "info", tmp_path / "a" / "train.h5", "--json"))
    assert (info["samples"], info["classes"], info["channels"]) == (20, 20, 700)


@needs_speech
def test_interrupted_making_leaves_nothing(spikeloom, tmp_path):
    process = spikeloom.start("data", "spoken-digits", "--out", tmp_path / "out", "--train", 100000, stdout=-1, stderr=-1)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert output == ""
    assert list((tmp_path / "out").glob("*")) == []


def test_encode_keeps_what_the_filters_name(spikeloom, recordings, tmp_path):
    filters = {(): 18, ("--index", "0-1"): 12, ("--index", "2"): 6, ("--speaker", "ann"): 9, ("--speaker", "ann,bob", "--index", "1-1"): 6}
    for options, samples in filters.items():
        only_json(spikeloom("data", "encode", recordings, "--out", tmp_path / "out.h5", *options, "--json"))
        assert only_json(spikeloom("data", "info", tmp_path / "out.h5", "--json"))["samples"] == samples, options


def test_encode_names_an_unknown_speaker(spikeloom, recordings, tmp_path):
    result = spikeloom("data", "encode", recordings, "--out", tmp_path / "out.h5", "--speaker", "eve")
    assert result.returncode == 2
    assert "eve" in error_line(result) and "ann, bob" in error_line(result)
    assert not (tmp_path / "out.h5").exists()


def test_encode_names_a_damaged_recording(spikeloom, recordings, tmp_path):
    (recordings / "1_ann_1.wav").write_bytes(b"RIFF no sound")
    result = spikeloom("data", "encode", recordings, "--out", tmp_path / "out.h5")
    assert result.returncode == 2
    assert "1_ann_1.wav" in error_line(result)
    assert not (tmp_path / "out.h5").exists()


@pytest.fixture
def images(tmp_path):
    """Four IDX files, two of them packed: 30 + 10 images of 5 x 3 pixels, 3 classes."""
    folder = tmp_path / "images"
    folder.mkdir()
    for prefix, count in (("train", 30), ("t10k", 10)):
        pixels = bytes(i * 61 % 256 for i in range(15 * count))
        (folder / f"{prefix}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, count, 3, 5) + pixels)
        labels = struct.pack(">2I", 0x801, count) + bytes(i % 3 for i in range(count))
        (folder / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    return folder


def test_encoded_images_are_read_back_step_by_step(spikeloom, images, tmp_path):
    for encoder, seed in (("latency", 1), ("latency-log", 1), ("rate", 1), ("rate", 2)):
        out = tmp_path / f"{encoder}-{seed}"
        options = ("--encoder", encoder, "--steps", 20, "--seed", seed, "--rate", 0.5)
        made = only_json(spikeloom("data", "encode-images", images, "--out", out, *options, "--json"))
        assert (made["train_samples"], made["test_samples"], made["channels"], made["steps"]) == (30, 10, 15, 20)
        binning = ("--channels", 15, "--steps", 20, "--step-ms", made["step_ms"])
        info = only_json(spikeloom("data", "info", made["train"], *binning, "--json"))
        assert (info["samples"], info["classes"], info["channels"]) == (30, 3, 15)
        assert (info["dropped_events"], info["merged_events"]) == (0, 0)
        assert info["events"] > 0
    assert (tmp_path / "rate-1" / "train.h5").read_bytes() != (tmp_path / "rate-2" / "train.h5").read_bytes()


def test_damaged_images_are_named_and_nothing_is_written(spikeloom, images, tmp_path):
    whole = (images / "train-images-idx3-ubyte").read_bytes()
    (images / "train-images-idx3-ubyte").write_bytes(whole[:-1])
    result = spikeloom("data", "encode-images", images, "--out", tmp_path / "out")
    assert result.returncode == 2
    assert "train-images-idx3-ubyte: ends at byte 465; 30 images of 5 x 3 pixels need 466 bytes" in error_line(result)
    assert not (tmp_path / "out").exists()


def test_options_of_encode_images_outside_their_ranges_are_refused(spikeloom, images, tmp_path):
    for option, value in (("--steps", 0), ("--steps", 1001), ("--floor", 0), ("--rate", 1.5), ("--rate", "nan"), ("--rate", "1x"), ("--encoder", "phase")):
        result = spikeloom("data", "encode-images", images, "--out", tmp_path / "out", option, value)
        assert result.returncode == 2, (option, value)
        assert option in error_line(result) and str(value) in error_line(result)
