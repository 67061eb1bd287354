"""What is compared: the nets of examples/paper, the variants of each, and the runs that follow from the options."""

import hashlib
import json
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class TaskSet:
    name: str
    title: str
    config: Path

    def configuration(self):
        return tomllib.loads(self.config.read_text())

    def spiking_layers(self):
        return [layer for layer in self.configuration()["layers"] if layer.get("neuron", "lif") == "lif"]

    def classes(self):
        return self.configuration()["layers"][-1]["size"]


@dataclass(frozen=True)
class Variant:
    name: str
    title: str
    meaning: str
    second_threshold: float  # lower end of the surrogate's window, in thresholds
    share: float | None = None  # of a layer's neurons that its list of a step has room for; None: as many as there are

    def budget(self, neurons):
        return max(1, math.floor(self.share * neurons + 0.5))

    def settings(self, layers):
        low = "-inf" if math.isinf(self.second_threshold) else f"{self.second_threshold:g}"
        settings = [f"layers.{layer['name']}.window=[{low}, inf]" for layer in layers]
        if self.share is not None:
            settings += [f"layers.{layer['name']}.spike_budget={self.budget(layer['size'])}" for layer in layers]
        return settings


SETS = {
    task.name: task
    for task in (
        TaskSet("nmnist", "N-MNIST", ROOT / "examples/paper/nmnist.toml"),
        TaskSet("shd", "Spoken digits", ROOT / "examples/paper/shd.toml"),
    )
}

LIST_MEANING = "the same, but a step's list has room for {} of the layer's neurons: spikes first, lowest index first"
VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("full", "full surrogate", "every neuron has its surrogate gradient in every step", -math.inf),
        Variant(
            "true-length",
            "true-length lists",
            "only neurons above a second threshold, 0.9, have one; lists are as long as they need to be",
            0.9,
        ),
        Variant("list-10", "lists of 10 %", LIST_MEANING.format("10 %"), 0.9, 0.10),
        Variant("list-5", "lists of 5 %", LIST_MEANING.format("5 %"), 0.9, 0.05),
        Variant("list-1", "lists of 1 %", LIST_MEANING.format("1 %"), 0.9, 0.01),
    )
}


@dataclass(frozen=True)
class Run:
    task: TaskSet
    variant: Variant
    seed: int
    epochs: int
    folder: Path

    @property
    def metrics(self):
        return self.folder / "metrics.jsonl"

    @property
    def record(self):
        """Beside the run folder: what it was started with."""
        return self.folder.with_name(self.folder.name + ".started.json")

    @property
    def times(self):
        """Beside the run folder: for each sitting, pairs of an epoch and the processor time used until after it."""
        return self.folder.with_name(self.folder.name + ".times.json")

    @property
    def failure(self):
        """Beside the run folder, if its numbers failed: spikeloom's words."""
        return self.folder.with_name(self.folder.name + ".failed.txt")

    def settings(self, data):
        """Arguments of --set. The held-out recordings are given as the validation set: so each epoch's accuracy on them
        is in the run's metrics; nothing is chosen by it, what counts is the last epoch."""
        return [
            f"data.train={data.train}",
            f"data.validation={data.test}",
            "data.test=",
            *self.variant.settings(self.task.spiking_layers()),
        ]

    def identity(self, data):
        """What makes a run another one. Threads do not: results do not depend on them."""
        return {
            "configuration": hashlib.sha256(self.task.config.read_bytes()).hexdigest(),
            "settings": self.settings(data),
            "data": data.identity,
            "seed": self.seed,
            "epochs": self.epochs,
        }

    def epochs_done(self):
        return len(read_metrics(self.metrics))

    def sittings(self):
        return json.loads(self.times.read_text()) if self.times.exists() else []


def read_metrics(path):
    """One object per epoch; empty while there is none."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def runs_of(options):
    """All runs, in the order in which they are trained: what the claim rests on first, and of it one seed of each
    variant and set before the next seed; then the fixed lists likewise."""
    groups = [[v for v in options.variants if v.share is None], [v for v in options.variants if v.share is not None]]
    return [
        run_of(options, task, variant, seed)
        for group in groups
        for seed in options.seeds
        for task in options.sets
        for variant in group
    ]


def run_of(options, task, variant, seed):
    epochs = options.epochs or task.configuration()["training"]["epochs"]
    size = f"{options.samples}-samples" if options.samples else "all-samples"
    folder = options.work / f"{task.name}-{size}-{epochs}-epochs" / variant.name / f"seed-{seed}"
    return Run(task, variant, seed, epochs, folder)
