"""Exit codes, messages and JSON of the command line."""

import json
import os
import shutil
import signal
import struct
import time

import pytest

from conftest import record, write_nmnist


def error_line(result):
    """The one line that says what is wrong; nothing may be on stdout."""
    lines = [line for line in result.stderr.splitlines() if line.startswith("spikeloom: error: ")]
    assert len(lines) == 1, result.stderr
    assert result.stdout == ""
    return lines[0].removeprefix("spikeloom: error: ")


def only_json(result):
    """The object on stdout, which must be all there is."""
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


# --- usage ---


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["eval", "-h"], ["data", "--help"], ["data", "info", "--help"]])
def test_help_is_no_error(spikeloom, arguments):
    result = spikeloom(*arguments)
    assert result.returncode == 0
    assert "Usage" in result.stdout
    assert result.stderr == ""


def test_version(spikeloom):
    result = spikeloom("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("spikeloom 0.")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["train"],
        ["train", "config.toml"],
        ["train", "--out", "run"],
        ["train", "config.toml", "--out", "run", "--sed", "3"],
        ["train", "config.toml", "--out", "run", "--seed", "many"],
        ["train", "config.toml", "--out", "run", "--epochs", "-1"],
        ["train", "config.toml", "--out", "run", "--threads", "-1"],
        ["train", "config.toml", "--out", "run", "--resume", "--init-from", "x"],
        ["eval"],
        ["eval", "run", "--record", "hidden1.spikes"],
        ["data"],
        ["data", "info"],
        ["data", "info", "x", "--part", "validation"],
        ["data", "encode", "x"],
        ["data", "encode", "x", "--out", "y", "--index", "5-3"],
        ["data", "encode", "x", "--out", "y", "--index", "one"],
        ["data", "spoken-digits"],
        ["data", "spoken-digits", "--out", "x", "--train", "-3"],
        ["info"],
    ],
)
def test_wrong_usage_exits_with_2_and_one_line(spikeloom, arguments, tmp_path):
    result = spikeloom(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    error_line(result)
    assert list(tmp_path.iterdir()) == []


def test_settings_are_listed(spikeloom):
    result = spikeloom("train", "--help-settings")
    assert result.returncode == 0
    assert "[optimizer]" in result.stdout and "learning_rate" in result.stdout


def test_committed_page_of_settings_is_current(spikeloom):
    page = os.path.join(os.path.dirname(__file__), "../../docs/reference/settings.md")
    result = spikeloom("info", "--settings-markdown")
    assert result.returncode == 0
    with open(page, encoding="utf-8") as file:
        assert file.read() == result.stdout, "run: spikeloom info --settings-markdown > docs/reference/settings.md"


# --- configurations ---


@pytest.mark.parametrize(
    "change, message",
    [
        (("steps = 10", "step = 10"), "config.toml:6: unknown key data.step = 10; did you mean data.steps?"),
        (("steps = 10", "steps = 0"), "config.toml:6: data.steps = 0 is not allowed: it must be a whole number from 1 to"),
        (('neuron = "li"', 'neuron = "lii"'), "config.toml:14: layers.readout.neuron = \"lii\" is not allowed: it must be one of lif, li, linear"),
        (("seed = 3", "seed ="), "config.toml:1: "),
    ],
)
def test_wrong_configuration_names_file_and_line(spikeloom, project, change, message):
    path = project / "config.toml"
    path.write_text(path.read_text().replace(*change))
    result = spikeloom("train", path, "--out", project / "run")
    assert result.returncode == 2
    assert message in error_line(result)
    assert not (project / "run").exists()


def test_wrong_set_names_key_and_allowed_values(spikeloom, project):
    result = spikeloom("train", project / "config.toml", "--out", project / "run", "--set", "layers.hidden2.size=3")
    assert result.returncode == 2
    assert "there is no layer hidden2; did you mean hidden1? layers: hidden1, readout" in error_line(result)


def test_missing_configuration(spikeloom, tmp_path):
    result = spikeloom("train", tmp_path / "none.toml", "--out", tmp_path / "run")
    assert result.returncode == 2
    assert "none.toml: can't be read" in error_line(result)


def test_missing_data(spikeloom, project):
    shutil.rmtree(project / "digits")
    result = spikeloom("train", project / "config.toml", "--out", project / "run")
    assert result.returncode == 2
    assert "digits" in error_line(result)


def test_output_in_the_way_of_a_file(spikeloom, project):
    (project / "run").write_text("a file")
    result = spikeloom("train", project / "config.toml", "--out", project / "run")
    assert result.returncode == 2
    assert "run" in error_line(result)


# --- train ---


def test_train_writes_a_run_folder(trained):
    names = {path.name for path in (trained / "run").iterdir()}
    assert {"config.toml", "metrics.jsonl", "last.safetensors", "best.safetensors", "environment.json"} <= names
    lines = (trained / "run" / "metrics.jsonl").read_text().splitlines()
    assert len(lines) == 2
    for line in lines:
        json.loads(line)


def test_train_json_is_pure(spikeloom, project):
    summary = only_json(spikeloom("train", project / "config.toml", "--out", project / "run", "--json", "--epochs", 1))
    assert summary["epochs"] == 1
    assert 0 <= summary["test_accuracy"] <= 1
    assert summary["run"].endswith("run")


def test_a_run_is_not_overwritten(spikeloom, trained):
    result = spikeloom("train", trained / "config.toml", "--out", trained / "run")
    assert result.returncode == 2
    assert "--resume" in error_line(result)


def test_resume_without_a_run_or_configuration(spikeloom, tmp_path):
    result = spikeloom("train", "--out", tmp_path / "run", "--resume")
    assert result.returncode == 2
    assert "no run to resume" in error_line(result)


def test_zero_epochs_write_the_initial_state(spikeloom, project):
    result = spikeloom("train", project / "config.toml", "--out", project / "run", "--epochs", 0)
    assert result.returncode == 0, result.stderr
    assert (project / "run" / "last.safetensors").exists()


def test_seed_threads_and_epochs_reach_the_resolved_configuration(spikeloom, project):
    result = spikeloom("train", project / "config.toml", "--out", project / "run", "--epochs", 0, "--seed", 11, "--threads", 2)
    assert result.returncode == 0, result.stderr
    text = (project / "run" / "config.toml").read_text()
    assert "seed = 11\n" in text and "epochs = 0\n" in text and "threads = 2\n" in text


def test_progress_and_notes_are_plain_lines_on_stderr(spikeloom, project):
    result = spikeloom("train", project / "config.toml", "--out", project / "run")
    assert result.returncode == 0, result.stderr
    assert "\r" not in result.stderr and "\x1b" not in result.stderr
    assert "test" in result.stdout and "accuracy" in result.stdout


def test_interrupt_saves_and_exits_with_130(spikeloom, project):
    process = spikeloom.start("train", project / "config.toml", "--out", project / "run", "--epochs", 100000, stderr=-1, stdout=-1)
    deadline = time.time() + 60
    metrics = project / "run" / "metrics.jsonl"
    while not (metrics.exists() and metrics.stat().st_size) and time.time() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert output == ""
    assert "Traceback" not in errors and "terminate" not in errors
    assert (project / "run" / "last.safetensors").exists()
    lines = len(metrics.read_text().splitlines())
    resumed = spikeloom("train", "--out", project / "run", "--resume", "--epochs", lines + 1)
    assert resumed.returncode == 0, resumed.stderr
    assert len(metrics.read_text().splitlines()) == lines + 1


# --- eval ---


def test_eval_json_has_the_promised_keys(spikeloom, trained):
    report = only_json(spikeloom("eval", trained / "run", "--json"))
    assert {"samples", "loss", "accuracy", "undecided", "confusion", "activity"} <= set(report)
    assert report["samples"] == 24
    assert sum(map(sum, report["confusion"])) == 24
    assert list(report["activity"]) == ["hidden1"]
    correct = sum(report["confusion"][i][i] for i in range(4))
    assert report["accuracy"] == pytest.approx(correct / 24)


def test_eval_counts_every_sample_of_other_data(spikeloom, trained, tmp_path):
    other = write_nmnist(tmp_path / "other", per_class=3, seed=5)
    report = only_json(spikeloom("eval", trained / "run", "--data", other / "Test", "--json"))
    assert report["samples"] == 12


def test_predictions_agree_with_the_report(spikeloom, trained, tmp_path):
    report = only_json(spikeloom("eval", trained / "run", "--json", "--predictions", tmp_path / "p.csv"))
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[0] == "sample,label,decision,undecided,loss"
    rows = [line.split(",") for line in lines[1:]]
    assert len(rows) == report["samples"]
    assert sum(row[1] == row[2] for row in rows) == round(report["accuracy"] * report["samples"])
    assert sum(float(row[4]) for row in rows) / len(rows) == pytest.approx(report["loss"], rel=1e-5)


@pytest.mark.parametrize("what", ["hidden1.spikes", "hidden1.membrane", "readout.membrane"])
def test_record_writes_a_file(spikeloom, trained, tmp_path, what):
    result = spikeloom("eval", trained / "run", "--record", what, tmp_path / "record")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "record").stat().st_size > 0


@pytest.mark.parametrize("what", ["hidden9.spikes", "hidden1.noise", "readout.spikes", "hidden1"])
def test_record_of_what_is_not_there(spikeloom, trained, tmp_path, what):
    result = spikeloom("eval", trained / "run", "--record", what, tmp_path / "record")
    assert result.returncode == 2
    assert what.split(".")[0] in error_line(result)
    assert not (tmp_path / "record").exists()


def test_eval_of_something_else(spikeloom, tmp_path):
    for run in (tmp_path, tmp_path / "missing"):
        result = spikeloom("eval", run)
        assert result.returncode == 2
        assert str(run) in error_line(result)


# --- info ---


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


# --- data ---


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


# --- places that can't be written ---


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
