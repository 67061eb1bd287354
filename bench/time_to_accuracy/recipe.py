"""What a run's resolved configuration asks for, refused where the peer would compute something else."""

import math
import sys
from pathlib import Path

import tomllib

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))

from case import BETA, THRESHOLD, WINDOW_LOW  # noqa: E402

LOSSES = ("steps", "mean", "softmax_sum")
SCHEDULES = ("constant", "cosine", "one_cycle")


class Recipe:
    """The parts of a configuration that the peer needs."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.all = tomllib.load(file)
        self.data, self.training, self.optimizer = (self.all[name] for name in ("data", "training", "optimizer"))
        self.layers = self.all["layers"]
        self.loss = self.all["loss"]["over"]
        self.check(path)

    def check(self, path):
        wrong = []

        def needs(what, found, *allowed):
            if found not in allowed:
                wrong.append(f"{what} = {found}; allowed: {', '.join(map(str, allowed))}")

        for layer in self.layers[:-1]:
            name = layer["name"]
            needs(f"{name}.neuron", layer["neuron"], "lif")
            needs(f"{name}.reset", layer["reset"], "zero")
            needs(f"{name}.reset_gradient", layer["reset_gradient"], False)
            needs(f"{name}.threshold", layer["threshold"], THRESHOLD)
            needs(f"{name}.surrogate", layer["surrogate"], "superspike")
            needs(f"{name}.surrogate_beta", layer["surrogate_beta"], BETA)
            needs(f"{name}.window", layer["window"], [WINDOW_LOW, math.inf])
            for regulariser in ("rate_lower_weight", "rate_upper_weight"):
                needs(f"{name}.{regulariser}", layer[regulariser], 0.0)
        for layer in self.layers:
            needs(f"{layer['name']}.input_gain", layer["input_gain"], 1.0)
            needs(f"{layer['name']}.input_scaling", layer["input_scaling"], "none")
            needs(f"{layer['name']}.bias", layer["bias"], True)
        needs("the last layer's neuron", self.layers[-1]["neuron"], "li")
        needs("data.counts", self.data["counts"], False)
        needs("data.channel_bin", self.data["channel_bin"], 1)
        needs("loss.kind", self.all["loss"]["kind"], "cross_entropy")
        needs("loss.over", self.loss, *LOSSES)
        needs("loss.decision", self.all["loss"]["decision"], "auto")
        needs("loss.label_smoothing", self.all["loss"]["label_smoothing"], 0.0)
        needs("optimizer.kind", self.optimizer["kind"], "adamw")
        needs("optimizer.schedule", self.optimizer["schedule"], *SCHEDULES)
        needs("optimizer.warmup_steps", self.optimizer["warmup_steps"], 0)
        needs("optimizer.gradient_clip", self.optimizer["gradient_clip"], 0.0)
        needs("training.anneal_window", self.training["anneal_window"], False)
        for key, value in self.all["augmentation"].items():
            needs(f"augmentation.{key}", value, *([[1.0, 1.0]] if key == "time_stretch" else [0, 0.0]))
        if wrong:
            raise SystemExit(f"{path}: the peer cannot compute this: {'; '.join(wrong)}")

    def learning_rate(self, step, total):
        """Of training step `step` (from 0) of `total`, as in src/train/schedule.cpp."""

        def half_cosine(begin, end, progress):
            return end + (begin - end) * (1.0 + math.cos(math.pi * min(max(progress, 0.0), 1.0))) / 2.0

        spec = self.optimizer
        factor = 1.0
        if spec["schedule"] == "cosine":
            factor = half_cosine(1.0, spec["final_fraction"], step / max(1.0, total))
        if spec["schedule"] == "one_cycle":
            peak, last = spec["one_cycle_warmup"] * total - 1.0, total - 1.0
            start = max(peak, 0.0)
            if step <= peak:
                factor = half_cosine(spec["one_cycle_start"], 1.0, step / peak) if peak > 0.0 else 1.0
            elif last > start:
                factor = half_cosine(1.0, spec["final_fraction"], (step - start) / (last - start))
        return spec["learning_rate"] * factor
