"""What the metrics say of each variant, final accuracy and how fast it was reached, and how two variants compare."""

import itertools
import statistics
from dataclasses import dataclass, field

from experiment import read_metrics

REACHED = 0.95  # of the full surrogate's final accuracy
SLOWEST = 1.2  # times as many epochs until there still count as "no slower"


@dataclass
class Result:
    """Of one variant on one set; accuracies are of the held-out recordings."""

    task: object
    variant: object
    epochs: int
    curves: dict = field(default_factory=dict)  # seed -> accuracy after each epoch, of complete runs
    last: list = field(default_factory=list)  # metrics of the last epoch of each complete run
    speeds: list = field(default_factory=list)  # training samples per second of processor time, along these runs
    failed: dict = field(default_factory=dict)  # seed -> why its numbers failed
    missing: list = field(default_factory=list)  # seeds that are not trained to the end

    @property
    def complete(self):
        return bool(self.curves)

    @property
    def finals(self):
        return [curve[-1] for curve in self.curves.values()]

    @property
    def accuracy(self):
        return statistics.fmean(self.finals)

    @property
    def deviation(self):
        """Sample standard deviation over seeds; None of one."""
        return statistics.stdev(self.finals) if len(self.finals) > 1 else None

    @property
    def samples_per_second(self):
        return statistics.median(self.speeds) if self.speeds else None

    def by_layer(self, key):
        """Layer -> mean over the runs of a figure of their last epoch; None where the metrics don't have it."""
        if not all(key in line for line in self.last):
            return None
        return {name: statistics.fmean(line[key][name] for line in self.last) for name in self.last[0][key]}

    def epochs_until(self, accuracy):
        """Of each run, the first epoch after which it had this accuracy; None where it never had."""
        return [
            next((epoch for epoch, reached in enumerate(curve, 1) if reached >= accuracy), None)
            for curve in self.curves.values()
        ]


def results_of(runs):
    """(set's name, variant's name) -> Result."""
    results = {}
    for run in runs:
        result = results.setdefault((run.task.name, run.variant.name), Result(run.task, run.variant, run.epochs))
        lines = read_metrics(run.metrics)
        if run.failure.exists():
            result.failed[run.seed] = run.failure.read_text().strip()
        elif len(lines) < run.epochs:
            result.missing.append(run.seed)
        else:
            result.curves[run.seed] = [line["validation_accuracy"] for line in lines]
            result.last.append(lines[-1])
            result.speeds += speeds_of(lines, run.sittings())
    return results


def speeds_of(lines, sittings):
    """Training samples per second of processor time, between each two looks at the clock: other work on the machine
    changes it less than time does. A sitting's first epoch is left out, since reading and initialising precede it."""
    speeds = []
    for sitting in sittings:
        for (before, start), (epoch, end) in itertools.pairwise(sitting):
            between = lines[before:epoch]
            training = sum(line["seconds"]["total"] for line in between)
            share = training / (training + sum(line["seconds"]["validation"] for line in between))
            if end > start:
                speeds.append(sum(line["samples"] for line in between) / (share * (end - start)))
    return speeds


@dataclass(frozen=True)
class Comparison:
    """A variant beside the full surrogate."""

    result: Result
    full: Result

    @property
    def lowest(self):
        return min(self.full.finals)

    @property
    def highest(self):
        return max(self.full.finals)

    @property
    def has_spread(self):
        return len(self.full.finals) > 1

    @property
    def keeps_accuracy(self):
        """Some run's numbers failed, or the mean is below every seed of the full surrogate: then it does not."""
        return not self.result.failed and self.result.accuracy >= self.lowest

    @property
    def target(self):
        return REACHED * self.full.accuracy

    @property
    def epochs(self):
        """Mean number of epochs until the target; None if a run never reached it."""
        return mean_or_none(self.result.epochs_until(self.target))

    @property
    def full_epochs(self):
        return mean_or_none(self.full.epochs_until(self.target))

    @property
    def slower(self):
        """How many times as many epochs as the full surrogate takes; None if one of the two did not get there."""
        if self.epochs is None or self.full_epochs is None:
            return None
        return self.epochs / self.full_epochs

    @property
    def keeps_pace(self):
        return self.slower is not None and self.slower <= SLOWEST


def mean_or_none(values):
    return None if None in values else statistics.fmean(values)
