"""scripts/paper: the paper's experiment, redone (bench/paper)."""

import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from conftest import record

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/paper"))

import curves  # noqa: E402
import page  # noqa: E402
import recordings  # noqa: E402
import results  # noqa: E402
import run as paper  # noqa: E402
import verdict  # noqa: E402
from experiment import SETS, VARIANTS, runs_of  # noqa: E402

SPEECH = shutil.which("espeak-ng")


def write_recordings(folder, train=8, test=3, seed=1):
    """N-MNIST's layout with ten classes that are rows of the sensor."""
    rng = random.Random(seed)
    for part, per_class in (("Train", train), ("Test", test)):
        for label in range(10):
            directory = folder / part / str(label)
            directory.mkdir(parents=True)
            for sample in range(per_class):
                times = sorted(rng.randrange(250_000) for _ in range(80))
                data = b"".join(record(rng.randrange(34), 3 * label + rng.randrange(3), rng.randrange(2), t) for t in times)
                (directory / f"{sample + 1:05d}.bin").write_bytes(data)
    return folder


class Script:
    """scripts/paper with everything that it writes in one folder."""

    def __init__(self, folder):
        self.folder = folder
        self.nmnist = write_recordings(folder / "recordings")

    def command(self, *arguments, nmnist=True):
        places = [f"--{name}={self.folder / name}" for name in ("out", "work", "data")]
        given = [f"--nmnist={self.nmnist}"] if nmnist else []
        binary = f"--spikeloom={os.environ['SPIKELOOM_BINARY']}"
        return [ROOT / "scripts/paper", *places, *given, binary, "--threads=1", *map(str, arguments)]

    def __call__(self, *arguments, nmnist=True):
        environment = {key: value for key, value in os.environ.items() if key != "SPIKELOOM_NMNIST"}
        command = self.command(*arguments, nmnist=nmnist)
        return subprocess.run(command, capture_output=True, text=True, timeout=400, env=environment)

    def metrics(self):
        return {path: path.stat().st_mtime_ns for path in self.folder.glob("work/**/metrics.jsonl")}

    @property
    def page(self):
        return (self.folder / "out/paper.md").read_text()


@pytest.fixture
def script(spikeloom, tmp_path):
    return Script(tmp_path)


def test_a_tiny_experiment_makes_page_and_curves_and_is_not_repeated(script):
    sets = "nmnist,shd" if SPEECH else "nmnist"
    variants = ("full", "list-5")
    arguments = ("--samples", 60, "--epochs", 2, "--seeds", "1", "--sets", sets, "--variants", ",".join(variants))
    done = script(*arguments)
    assert done.returncode == 0, done.stderr
    for name in sets.split(","):
        ElementTree.parse(script.folder / f"out/figures/paper-{name}.svg")
        for variant in variants:
            assert f"| {VARIANTS[variant].title} | 1 |" in script.page
    assert "min left" in done.stderr or "a minute left" in done.stderr
    # Fixed lists have figures of what they dropped, the others have not.
    rows = [line for line in script.page.splitlines() if line.startswith(f"| {VARIANTS['list-5'].title} ")]
    assert all(row.split("|")[9].strip() for row in rows)
    before, first_page = script.metrics(), script.page
    again = script(*arguments)
    assert again.returncode == 0, again.stderr
    assert script.metrics() == before
    assert script.page == first_page


def test_an_interrupted_experiment_goes_on_where_it_was(script):
    arguments = ("--samples", 60, "--epochs", 3, "--seeds", "1", "--sets", "nmnist", "--variants", "true-length")
    process = subprocess.Popen(script.command(*arguments), stdout=-1, stderr=-1, text=True, start_new_session=True)
    deadline = time.time() + 120
    while not script.metrics() and time.time() < deadline and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: the script and the run
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert not (script.folder / "out/paper.md").exists()
    done = script(*arguments)
    assert done.returncode == 0, done.stderr
    lines = [path.read_text().splitlines() for path in script.metrics()]
    assert [len(of_run) for of_run in lines] == [3]


def test_a_set_without_recordings_is_named_and_skipped(script):
    done = script("--samples", 60, "--sets", "nmnist", nmnist=False)
    assert done.returncode == 2
    assert "N-MNIST IS SKIPPED" in done.stderr and "--nmnist" in done.stderr


def test_runs_with_other_settings_are_not_taken_for_these(script):
    arguments = ("--samples", 60, "--epochs", 1, "--seeds", "1", "--sets", "nmnist", "--variants", "true-length")
    assert script(*arguments).returncode == 0
    started = next(script.folder.glob("work/**/*.started.json"))
    identity = json.loads(started.read_text())
    started.write_text(json.dumps(identity | {"configuration": "another"}))
    done = script(*arguments)
    assert done.returncode == 2 and "--fresh" in done.stderr
    assert script(*arguments, "--fresh").returncode == 0


def test_a_run_whose_numbers_fail_is_reported_and_the_others_go_on(script, tmp_path):
    """A program in spikeloom's place fails for one seed."""
    real = os.environ["SPIKELOOM_BINARY"]
    fake = tmp_path / "fails"
    fake.write_text(
        f'#!/bin/sh\ncase "$*" in *"--seed 2 "*) echo "spikeloom: error: the loss is nan" >&2; exit 3 ;; esac\nexec {real} "$@"\n'
    )
    fake.chmod(0o755)
    arguments = ("--samples", 60, "--epochs", 1, "--seeds", "1,2", "--sets", "nmnist", "--variants", "full")
    done = script(*arguments, f"--spikeloom={fake}")
    assert done.returncode == 0, done.stderr
    assert "the loss is nan" in " ".join(script.page.split())
    assert f"| {VARIANTS['full'].title} | 1 of 2 |" in script.page


def metrics_of(accuracies, budget=None):
    layers = {"hidden1": 0.02, "hidden2": 0.03}
    for epoch, accuracy in enumerate(accuracies, 1):
        line = {"epoch": epoch, "validation_accuracy": accuracy, "samples": 60}
        line |= {"seconds": {"total": 3.0, "validation": 1.0}}
        line |= {"activity": layers, "active_fraction": layers}
        if budget is not None:
            line |= {"dropped_spikes": dict.fromkeys(layers, budget), "dropped_gradients": dict.fromkeys(layers, 2 * budget)}
        yield json.dumps(line)


@pytest.fixture
def experiment(tmp_path):
    """Writes runs with given curves; returns their results."""

    def make(**curves_of):
        names = {name.replace("_", "-"): seeds for name, seeds in curves_of.items()}
        options = paper.arguments_of(["--sets", "nmnist", "--variants", ",".join(names), "--epochs", "4", "--work", str(tmp_path)])
        runs = runs_of(options)
        for run in runs:
            seeds = names[run.variant.name]
            run.folder.mkdir(parents=True)
            if run.seed <= len(seeds):
                budget = 0.25 if run.variant.share else None
                run.metrics.write_text("\n".join(metrics_of(seeds[run.seed - 1], budget)) + "\n")
                # Interrupted after the second epoch; 4 seconds of work each, of which 3 are training.
                run.times.write_text("[[[1, 9.0], [2, 13.0]], [[3, 7.0], [4, 11.0]]]")
        return options, runs, results.results_of(runs)

    return make


NMNIST = SETS["nmnist"]
FULL = [[0.5, 0.8, 0.88, 0.90], [0.5, 0.8, 0.86, 0.88], [0.4, 0.7, 0.86, 0.89]]


def test_accuracy_and_epochs_are_those_of_the_curves(experiment):
    _, _, found = experiment(full=FULL, true_length=[[0.5, 0.6, 0.8, 0.89], [0.5, 0.85, 0.86, 0.885], [0.5, 0.6, 0.8, 0.88]])
    full = found["nmnist", "full"]
    assert full.accuracy == pytest.approx(0.89)
    assert full.deviation == pytest.approx(0.01)
    assert full.samples_per_second == pytest.approx(60 / 3)
    comparison = verdict.compare(found, "nmnist", "true-length")
    assert comparison.target == pytest.approx(0.95 * 0.89)  # 0.8455
    assert comparison.full_epochs == pytest.approx(3)
    assert comparison.result.epochs_until(comparison.target) == [4, 2, 4]
    assert comparison.slower == pytest.approx(10 / 9)
    assert comparison.keeps_accuracy and comparison.keeps_pace
    assert verdict.overall(found, [NMNIST]) == "The claim holds on N-MNIST."


@pytest.mark.parametrize(
    "true_length, words",
    [
        ([[0.5, 0.8, 0.86, 0.87]] * 3, "does not hold on N-MNIST (final accuracy)"),
        ([[0.5, 0.6, 0.7, 0.89]] * 3, "does not hold on N-MNIST (pace)"),
        ([[0.5, 0.6, 0.7, 0.8]] * 3, "does not hold on N-MNIST (final accuracy and pace)"),
        ([[0.9, 0.9, 0.9, 0.9]] * 3, "holds on N-MNIST"),
        ([[0.9, 0.9]], "these runs can't tell"),
    ],
)
def test_the_verdict_follows_the_figures(experiment, true_length, words):
    _, _, found = experiment(full=FULL, true_length=true_length)
    assert words in verdict.overall(found, [NMNIST])


def test_the_paragraph_says_at_what_activity_something_suffers(experiment):
    _, _, found = experiment(full=FULL, true_length=FULL, list_10=FULL, list_1=[[0.1, 0.2, 0.3, 0.4]] * 3)
    text = verdict.of_set(found, NMNIST)
    assert "within the spread" in text and "1.00 times as many" in text
    assert "nothing is lost with lists of 10 % (hidden activity 2.00 % and 3.00 %)" in text
    assert "With lists of 1 %, at an activity of 2.00 % and 3.00 %, it suffers: 49.0 points" in text
    assert "not every run gets to 95 %" in text


def test_chance_is_not_praised(experiment):
    chance = [[0.1, 0.1, 0.1, 0.1]] * 3
    _, _, found = experiment(full=chance, true_length=chance)
    assert "near chance" in verdict.of_set(found, NMNIST)


def test_the_page_shows_incomplete_and_missing_runs_as_such(experiment, tmp_path):
    options, runs, found = experiment(full=FULL[:2], list_5=[FULL[0], FULL[1][:2]], list_1=[])
    options.out = tmp_path / "docs"
    of_set = {"nmnist": recordings.Recordings(Path("a"), Path("b"), 60, 100, "invented", "")}
    text = page.write_page(options, runs, found, of_set, {}).read_text()
    assert "| full surrogate | 2 of 3 |" in text
    assert "| lists of 5 % | 1 of 3 |" in text and "| 25.0, 25.0 | 50.0, 50.0 |" in text
    assert "| lists of 1 % | 0 of 3 | not trained to the end |" in text
    assert "at most 5.0 points" in text
    tables = [line.count("|") for line in text.splitlines() if line.startswith("|")]
    assert len(set(tables)) == 1
    assert "True-length lists were not trained to the end" in " ".join(text.split())


def test_curves_stay_inside_the_picture_and_pass_through_their_points():
    seeds = [[0.2, 0.5, 0.93], [0.3, 0.6, 1.0]]
    drawing = ElementTree.fromstring(curves.draw("A <title> & more", [("one", seeds), ("two", [[0.25, 0.3, 0.35]])]))
    lines = drawing.findall("{*}polyline")
    assert len(lines) == 2 and len(drawing.findall("{*}polygon")) == 1  # a band needs two seeds
    axes = curves.Axes(3, 0.2)
    mean = [tuple(map(float, point.split(","))) for point in lines[1].get("points").split()]
    expected = [(axes.x(epoch), axes.y(value)) for epoch, value in ((1, 0.25), (2, 0.55), (3, 0.965))]
    for point, (x, y) in zip(mean, expected, strict=True):
        assert point == pytest.approx((x, y), abs=0.06)
    for element in drawing.iter():
        if element.get("points"):
            for x, y in (map(float, point.split(",")) for point in element.get("points").split()):
                assert curves.LEFT <= x <= curves.WIDTH - curves.RIGHT and curves.TOP <= y <= curves.HEIGHT - curves.BOTTOM


def test_one_epoch_can_be_drawn():
    ElementTree.fromstring(curves.draw("t", [("one", [[0.2]])]))


def test_budgets_are_shares_of_each_spiking_layer():
    layers = NMNIST.spiking_layers()
    assert [layer["size"] for layer in layers] == [1024, 512]
    assert [VARIANTS["list-1"].budget(layer["size"]) for layer in layers] == [10, 5]
    assert "layers.hidden2.spike_budget=26" in VARIANTS["list-5"].settings(layers)
    assert VARIANTS["full"].settings(layers)[0] == "layers.hidden1.window=[-inf, inf]"
    assert not any("budget" in setting for setting in VARIANTS["true-length"].settings(layers))
    assert math.isinf(VARIANTS["full"].second_threshold)


def test_a_small_sample_of_recordings_holds_out_a_fifth_of_each_label(tmp_path):
    train, test, _ = recordings.split_nmnist(write_recordings(tmp_path / "small", train=7, test=3), 2000)
    assert (len(train), len(test)) == (80, 20)
    assert not {file for _, file in train} & {file for _, file in test}
    assert {label: sum(at == label for at, _ in test) for label, _ in test} == {str(label): 2 for label in range(10)}


def test_of_a_large_set_as_many_as_asked_are_taken_evenly_from_its_own_parts(tmp_path):
    folder = write_recordings(tmp_path / "large", train=12, test=50)
    train, test, _ = recordings.split_nmnist(folder, 60)
    assert (len(train), len(test)) == (60, 24)
    assert {sum(at == label for at, _ in train) for label, _ in train} == {6}
    assert all(file.parts[-3] == "Train" for _, file in train) and all(file.parts[-3] == "Test" for _, file in test)
    assert len(recordings.split_nmnist(folder, None)[1]) == 500


def test_options_that_contradict_are_refused(script):
    for arguments in (("--full", "--epochs", 3), ("--sets", "cifar"), ("--samples", 0), ("--seeds", "one")):
        done = script(*arguments)
        assert done.returncode == 2, arguments
        assert "Traceback" not in done.stderr
