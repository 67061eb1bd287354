"""The benchmark case that `spikeloom bench train --export` writes: initial weights, input spikes and labels.

Every peer starts from these numbers, so that all of them compute the same thing as Spikeloom does.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

THRESHOLD = 1.0
WINDOW_LOW = 0.9  # the surrogate derivative is zero at and below this membrane potential
BETA = 10.0  # SuperSpike: 1 / (BETA |u - THRESHOLD| + 1)^2


@dataclass
class Case:
    net: str
    activity: float
    batch: int
    decay: float
    learning_rate: float
    weights: list  # per layer (size, inputs), float32; the last one is the readout
    recurrent_weights: list  # per layer (size, size), [to][from], or None
    biases: list  # per layer (size,)
    labels: np.ndarray  # (samples,), int64
    counts: np.ndarray  # (samples, steps), int64: input spikes
    channels: np.ndarray  # of all samples and steps in turn

    @property
    def steps(self):
        return self.counts.shape[1]

    @property
    def sizes(self):
        return [self.weights[0].shape[1]] + [weight.shape[0] for weight in self.weights]

    @property
    def recurrent(self):
        return any(weight is not None for weight in self.recurrent_weights)

    def batch_of(self, step):
        """Input spikes (steps, batch, channels), float32 of 0 and 1, and labels (batch,) of a training step."""
        first = (step * self.batch) % len(self.labels)
        samples = slice(first, first + self.batch)
        begin = self.counts[:first].sum()
        counts = self.counts[samples]
        channels = self.channels[begin : begin + counts.sum()]
        row = np.repeat(np.arange(counts.size), counts.ravel())  # sample * steps + step
        spikes = np.zeros((self.steps, self.batch, self.sizes[0]), np.float32)
        spikes[row % self.steps, row // self.steps, channels] = 1.0
        return spikes, self.labels[samples]


def read_tensors(path):
    """Tensors by name and metadata of the safetensors file at `path`; all its tensors are float32."""
    data = Path(path).read_bytes()
    header_size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + header_size])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data, np.float32, (end - begin) // 4, 8 + header_size + begin)
        tensors[name] = values.reshape(entry["shape"]).copy()
    return tensors, metadata


def read_case(path):
    """Reads what `bench train --export` wrote at `path`."""
    tensors, metadata = read_tensors(path)
    layers = sum(name.endswith(".weight") for name in tensors)
    return Case(
        net=metadata["net"],
        activity=float(metadata["activity"]),
        batch=int(metadata["batch"]),
        decay=float(metadata["decay"]),
        learning_rate=float(metadata["learning_rate"]),
        weights=[tensors[f"layer{layer}.weight"] for layer in range(layers)],
        recurrent_weights=[tensors.get(f"layer{layer}.recurrent_weight") for layer in range(layers)],
        biases=[tensors[f"layer{layer}.bias"] for layer in range(layers)],
        labels=tensors["labels"].astype(np.int64),
        counts=tensors["spikes.counts"].astype(np.int64),
        channels=tensors["spikes.channels"].astype(np.int32),
    )
