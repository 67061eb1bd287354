"""Runs that are stopped or killed at any moment go on to the same bits."""

import json
import random
import signal
import time

from helpers import tensors


EPOCHS = 150


def arguments(project, name):
    return ["train", project / "config.toml", "--out", project / name, "--epochs", EPOCHS]


def end_at_random(spikeloom, project, signals, most):
    """Starts and stops a run at random moments until it finishes; returns how often it was stopped."""
    rng = random.Random(17)
    stopped = 0
    for attempt in range(most):
        process = spikeloom.start(*arguments(project, "stopped"), "--resume", stdout=-3, stderr=-1)
        time.sleep(rng.uniform(0.0, 0.25))
        if attempt < most - 1:
            process.send_signal(rng.choice(signals))
        _, errors = process.communicate(timeout=120)
        if process.returncode == 0:
            return stopped
        assert process.returncode in (130, *(-number for number in signals)), errors
        stopped += 1
    raise AssertionError("the run never finished")


def compare(project):
    whole, stopped = project / "whole", project / "stopped"
    assert tensors(whole / "last.safetensors") == tensors(stopped / "last.safetensors")
    assert tensors(whole / "best.safetensors") == tensors(stopped / "best.safetensors")
    lines = [(folder / "metrics.jsonl").read_text().splitlines() for folder in (whole, stopped)]
    losses = [[json.loads(line)["train_loss"] for line in text] for text in lines]
    assert losses[0] == losses[1]
    assert len(losses[0]) == EPOCHS
    assert sorted(path.name for path in whole.iterdir()) == sorted(path.name for path in stopped.iterdir())


def test_a_run_killed_at_any_moment_ends_with_the_same_bits(spikeloom, project):
    assert spikeloom(*arguments(project, "whole")).returncode == 0
    assert end_at_random(spikeloom, project, [signal.SIGKILL], most=30) > 0
    compare(project)


def test_a_run_stopped_at_any_moment_ends_with_the_same_bits(spikeloom, project):
    assert spikeloom(*arguments(project, "whole")).returncode == 0
    assert end_at_random(spikeloom, project, [signal.SIGINT, signal.SIGTERM], most=30) > 0
    compare(project)
