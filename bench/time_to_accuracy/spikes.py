"""Spikes of an SHD-layout HDF5 file, binned as Spikeloom bins them."""

from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np


@dataclass
class Spikes:
    steps: int
    inputs: int
    labels: np.ndarray  # (samples,), int64
    starts: np.ndarray  # (samples + 1,): spikes of sample i are [starts[i], starts[i + 1])
    rows: np.ndarray  # step * inputs + channel of every spike, ascending within a sample, int32

    def __len__(self):
        return len(self.labels)

    def dense(self, samples):
        """Spikes (steps, samples, inputs), float32 of 0 and 1, and labels (samples,)."""
        counts = self.starts[samples + 1] - self.starts[samples]
        first = np.repeat(self.starts[samples] - np.concatenate(([0], counts.cumsum()[:-1])), counts)
        rows = self.rows[first + np.arange(counts.sum())]
        place = np.repeat(np.arange(len(samples)), counts)
        step, channel = np.divmod(rows, self.inputs)
        spikes = np.zeros((self.steps, len(samples), self.inputs), np.float32)
        spikes[step, place, channel] = 1.0
        return spikes, self.labels[samples]


def read_spikes(path, step_ms, steps, inputs):
    """step = floor(time / step), in whole microseconds; several events of a channel in a step are one spike."""
    with h5py.File(path) as file:
        labels = file["labels"][:].astype(np.int64)
        times = file["spikes/times"][:]
        units = file["spikes/units"][:]
    starts = [0]
    rows = []
    for time, unit in zip(times, units, strict=True):
        microseconds = np.floor(time.astype(np.float64) * 1e6 + 0.5).astype(np.int64)
        step = microseconds // round(step_ms * 1000)
        row = np.unique(step * inputs + unit.astype(np.int64))
        row = row[row < steps * inputs]
        rows.append(row.astype(np.int32))
        starts.append(starts[-1] + len(row))
    return Spikes(steps, inputs, labels, np.array(starts), np.concatenate(rows))


def write_subset(source, target, samples):
    """The first `samples` recordings of a file, in the same layout; all of them if there are fewer."""
    target = Path(target)
    beside = target.with_name(target.name + ".part")
    with h5py.File(source) as old, h5py.File(beside, "w") as new:
        for name in ("spikes/times", "spikes/units"):
            values = old[name][:samples]
            new.create_dataset(name, (len(values),), old[name].dtype)[:] = values
        new["labels"] = old["labels"][:samples]
    beside.replace(target)
