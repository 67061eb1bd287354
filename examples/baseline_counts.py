#!/usr/bin/env python3
"""How far spike counts alone carry: a small multilayer perceptron on the number of spikes per channel.

    python3 examples/baseline_counts.py TRAIN.h5 TEST.h5 [--bin 5] [--hidden 256] [--epochs 40] [--seeds 3]

A network that uses the times of spikes must be clearly better than this. Needs numpy and h5py
(Debian: python3-numpy python3-h5py).
"""

import argparse

import h5py
import numpy as np

CHANNELS = 700


def spike_counts(path, channel_bin):
    """Square roots of events per binned channel, (samples, channels), which evens out their variance; and labels."""
    with h5py.File(path) as file:
        labels = file["labels"][:].astype(int)
        counts = np.zeros((len(labels), -(-CHANNELS // channel_bin)), np.float32)
        for sample, units in enumerate(file["spikes/units"]):
            counts[sample] = np.bincount(units.astype(int) // channel_bin, minlength=counts.shape[1])
    return np.sqrt(counts), labels


class Perceptron:
    """One hidden layer of rectified units with dropout, softmax, AdamW with a cosine schedule."""

    def __init__(self, inputs, hidden, classes, random):
        self.random = random
        self.parameters = [
            random.normal(0, np.sqrt(2 / inputs), (inputs, hidden)).astype(np.float32),
            np.zeros(hidden, np.float32),
            random.normal(0, np.sqrt(1 / hidden), (hidden, classes)).astype(np.float32),
            np.zeros(classes, np.float32),
        ]
        self.mean = [np.zeros_like(p) for p in self.parameters]
        self.square = [np.zeros_like(p) for p in self.parameters]
        self.steps = 0

    def decisions(self, inputs):
        w1, b1, w2, b2 = self.parameters
        return (np.maximum(inputs @ w1 + b1, 0) @ w2 + b2).argmax(axis=1)

    def train_batch(self, inputs, labels, rate, dropout, decay):
        w1, b1, w2, b2 = self.parameters
        current = inputs @ w1 + b1
        passed = (current > 0) * (self.random.random(current.shape) >= dropout) / np.float32(1 - dropout)
        hidden = current * passed
        scores = hidden @ w2 + b2
        error = np.exp(scores - scores.max(axis=1, keepdims=True))
        error /= error.sum(axis=1, keepdims=True)
        error[np.arange(len(labels)), labels] -= 1
        error /= len(labels)
        back = (error @ w2.T) * passed
        self.update([inputs.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)], rate, decay)

    def update(self, gradients, rate, decay):
        self.steps += 1
        for i, gradient in enumerate(gradients):
            self.mean[i] = 0.9 * self.mean[i] + 0.1 * gradient
            self.square[i] = 0.999 * self.square[i] + 0.001 * gradient**2
            mean = self.mean[i] / (1 - 0.9**self.steps)
            square = self.square[i] / (1 - 0.999**self.steps)
            step = mean / (np.sqrt(square) + 1e-8) + decay * self.parameters[i]
            self.parameters[i] = (self.parameters[i] - rate * step).astype(np.float32)


def accuracy(train, test, options, seed):
    (inputs, labels), (test_inputs, test_labels) = train, test
    offset, scale = inputs.mean(axis=0), inputs.std(axis=0) + 1e-3
    inputs, test_inputs = (inputs - offset) / scale, (test_inputs - offset) / scale
    random = np.random.default_rng(seed)
    net = Perceptron(inputs.shape[1], options.hidden, labels.max() + 1, random)
    batches = options.epochs * -(-len(labels) // options.batch)
    for _ in range(options.epochs):
        order = random.permutation(len(labels))
        for first in range(0, len(order), options.batch):
            batch = order[first : first + options.batch]
            rate = options.rate * 0.5 * (1 + np.cos(np.pi * net.steps / batches))
            net.train_batch(inputs[batch], labels[batch], rate, options.dropout, options.decay)
    return np.mean(net.decisions(test_inputs) == test_labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--bin", type=int, default=5, help="channels joined to one (default: 5)")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--decay", type=float, default=1e-2, help="weight decay")
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    train, test = spike_counts(options.train, options.bin), spike_counts(options.test, options.bin)
    figures = [100 * accuracy(train, test, options, seed) for seed in range(1, options.seeds + 1)]
    print(f"test accuracy  {np.mean(figures):.1f} % +- {np.std(figures):.1f} (seeds: "
          f"{', '.join(f'{figure:.1f}' for figure in figures)})")


if __name__ == "__main__":
    main()
