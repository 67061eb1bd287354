"""spikeloom train."""

import json
import signal
import struct
import time

from helpers import error_line, only_json


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


def tensor_bytes(checkpoint):
    return checkpoint[8 + struct.unpack("<Q", checkpoint[:8])[0] :]


def test_a_network_with_feedback_trains_evaluates_and_resumes(spikeloom, project):
    config, run = project / "config.toml", project / "run"
    second = '[[layers]]\nname = "hidden2"\nsize = 20\ntau_mem_ms = 20.0\n[[layers]]\nname = "readout"'
    text = config.read_text().replace('[[layers]]\nname = "readout"', second)
    config.write_text(text.replace('name = "hidden1"', 'name = "hidden1"\ninputs = ["hidden2", "data"]'))
    summary = only_json(spikeloom("train", config, "--out", run, "--json", "--epochs", 2))
    tensors = only_json(spikeloom("info", run / "last.safetensors", "--json"))["tensors"]
    assert tensors["hidden1.weight"]["shape"] == [24, 20 + 2312]
    result = only_json(spikeloom("eval", run, "--json"))
    assert result["accuracy"] == summary["test_accuracy"]
    other = project / "other"
    assert spikeloom("train", config, "--out", other, "--epochs", 1, "--set", "engine.threads=2").returncode == 0
    assert spikeloom("train", "--out", other, "--resume", "--epochs", 2).returncode == 0
    once, again = ((folder / "last.safetensors").read_bytes() for folder in (run, other))
    assert tensor_bytes(again) == tensor_bytes(once)


def test_same_data_for_training_and_test_is_a_warning(spikeloom, project):
    result = spikeloom("train", project / "config.toml", "--out", project / "run", "--epochs", 0, "--set", f"data.train={project}/digits/Train",
                       "--set", f"data.test={project}/digits/Train")
    assert result.returncode == 0, result.stderr
    assert "spikeloom: warning: data.test is the same as data.train" in result.stderr


def test_weights_of_another_run_are_taken(spikeloom, trained, project):
    weights = trained / "run" / "last.safetensors"
    result = spikeloom("train", project / "config.toml", "--out", project / "run", "--epochs", 0, "--init-from", weights)
    assert result.returncode == 0, result.stderr
    assert "hidden1.weight" in result.stderr


def test_nan_in_a_checkpoint_is_named(spikeloom, trained, project):
    data = bytearray((trained / "run" / "best.safetensors").read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    begin = json.loads(data[8 : 8 + length])["hidden1.bias"]["data_offsets"][0]
    data[8 + length + begin + 8 : 8 + length + begin + 12] = struct.pack("<f", float("nan"))
    (project / "bad.safetensors").write_bytes(data)
    result = spikeloom("train", project / "config.toml", "--out", project / "run", "--init-from", project / "bad.safetensors")
    assert result.returncode == 2
    line = error_line(result)
    assert "bad.safetensors" in line and "hidden1.bias" in line and "index 2" in line


def test_a_label_without_an_output_is_named(spikeloom, project):
    result = spikeloom("train", project / "config.toml", "--out", project / "run", "--set", "layers.readout.size=3")
    assert result.returncode == 2
    assert "digits" in error_line(result)


def test_a_network_beyond_memory_exits_with_4_and_the_estimate(spikeloom, project):
    result = spikeloom("train", project / "config.toml", "--out", project / "run", "--set", "layers.hidden1.size=1048576")
    assert result.returncode == 4
    assert "GB" in error_line(result)
    assert not (project / "run").exists()


def test_numbers_that_fail_exit_with_3_and_keep_the_checkpoint_clean(spikeloom, project):
    result = spikeloom("train", project / "config.toml", "--out", project / "run", "--epochs", 50, "--set", "optimizer.kind=sgd",
                       "--set", "optimizer.learning_rate=1e6", "--set", "optimizer.weight_decay=1000")
    assert result.returncode == 3
    assert "became NaN or infinite" in error_line(result)
    assert spikeloom("eval", project / "run").returncode == 0


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


def test_several_seeds_make_a_run_each_and_their_spread(spikeloom, project):
    arguments = ("train", project / "config.toml", "--out", project / "runs", "--epochs", 1, "--seeds")
    summary = only_json(spikeloom(*arguments, "5,2", "--json"))
    assert summary["seeds"] == [5, 2]
    tests = [run["test_accuracy"] for run in summary["runs"]]
    assert abs(summary["test_accuracy"]["mean"] - sum(tests) / 2) < 1e-12
    assert abs(summary["test_accuracy"]["deviation"] - abs(tests[0] - tests[1]) / 2**0.5) < 1e-12
    for seed in (5, 2):
        assert (project / "runs" / f"seed-{seed}" / "best.safetensors").exists()
        assert spikeloom("eval", project / "runs" / f"seed-{seed}").returncode == 0
    assert "--resume" in error_line(spikeloom(*arguments, "5,2"))
    # Resumed without saying which seeds, and to more epochs.
    result = spikeloom("train", "--out", project / "runs", "--resume", "--epochs", 2)
    assert result.returncode == 0, result.stderr
    assert "+-" in result.stdout and "seed 5" in result.stdout
    assert len((project / "runs" / "seed-2" / "metrics.jsonl").read_text().splitlines()) == 2


def test_a_number_of_seeds_means_those_from_one(spikeloom, project):
    summary = only_json(spikeloom("train", project / "config.toml", "--out", project / "runs", "--epochs", 0, "--seeds", 2, "--json"))
    assert summary["seeds"] == [1, 2]
    assert summary["test_accuracy"] is None


def test_seeds_that_are_none_are_refused(spikeloom, project):
    for seeds in ("0", "1,x", "1,,2", "3,3", "1.5"):
        result = spikeloom("train", project / "config.toml", "--out", project / "runs", "--epochs", 0, "--seeds", seeds)
        assert result.returncode == 2, seeds
        assert "seed" in error_line(result)


def test_training_in_chunks_keeps_less_and_is_evaluated_alike(spikeloom, project):
    def kept(folder):
        lines = (folder / "metrics.jsonl").read_text().splitlines()
        return max(json.loads(line)["saved_state_bytes"] for line in lines)

    for name, chunk in (("whole", 0), ("chunks", 2)):
        result = spikeloom("train", project / "config.toml", "--out", project / name, "--set", f"training.bptt_steps={chunk}",
                           "--set", "data.steps=40", "--set", "engine.mode=sparse", "--json")
        assert result.returncode == 0, result.stderr
    assert kept(project / "chunks") < kept(project / "whole")
    by_chunks = only_json(spikeloom("eval", project / "chunks", "--json"))
    as_whole = only_json(spikeloom("eval", project / "chunks", "--set", "training.bptt_steps=0", "--json"))
    same = ("samples", "loss", "accuracy", "confusion", "activity")
    assert {key: by_chunks[key] for key in same} == {key: as_whole[key] for key in same}


def test_early_stopping_is_reported(spikeloom, project):
    result = spikeloom("train", project / "config.toml", "--out", project / "run", "--epochs", 9, "--set", "training.early_stopping=2",
                       "--set", "optimizer.learning_rate=1e-12", "--set", "training.anneal_window=false", "--json")
    summary = only_json(result)
    assert summary["stopped_early"] and summary["epochs"] < 9
    assert "was not bettered in 2 epochs" in result.stderr
