"""Trains the network of a Spikeloom run in PyTorch, from the run's initial weights, and prints a JSON line per epoch.

python peer.py RUN --train FILE --test FILE [--variant layers|compile] [--threads N] [--target 0.88]

RUN was made by `spikeloom train --epochs 0` and says what to train; `training.epochs` is --epochs here. The path is
that of bench/peers: one GEMM per layer over all steps, then a loop of elementwise steps. Time of training is that of
whole steps (forward, backward, optimiser); compiling, making a batch's dense input and evaluating are not in it.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from recipe import Recipe  # puts bench/peers on the path

# What stands in bench/peers.
from case import read_tensors  # isort: skip
from measure import limit_threads, resident_bytes  # isort: skip


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--variant", choices=("layers", "compile"), default="layers")
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--target", type=float, default=2.0, help="stop when the test accuracy is at least this")
    return parser.parse_args(argv)


def loss_and_decision(over, output, labels):
    """Mean loss over samples and the chosen classes, from membranes (steps, batch, classes): src/train/losses."""
    from torch.nn import functional

    steps, _, classes = output.shape
    logits = output.softmax(2).sum(0) if over == "softmax_sum" else output.mean(0)
    if over == "steps":
        loss = functional.cross_entropy(output.reshape(-1, classes), labels.repeat(steps))
    else:
        loss = functional.cross_entropy(logits, labels)
    return loss, logits.argmax(1)


class Training:
    def __init__(self, recipe, tensors, variant, total_steps):
        import torch
        from peer_torch import by_layers
        from torch_parts import configure

        configure()
        self.torch, self.recipe, self.total_steps, self.step = torch, recipe, total_steps, 0
        layers, decays = torch.nn.ModuleList(), []
        for spec in recipe.layers:
            name = spec["name"]
            size, inputs = tensors[name + ".weight"].shape
            layer = torch.nn.Linear(inputs, size)
            layer.weight.data = torch.from_numpy(tensors[name + ".weight"])
            layer.bias.data = torch.from_numpy(tensors[name + ".bias"])
            layers.append(layer)
            decay = tensors[name + ".decay"]
            decays.append(float(decay[0]) if (decay == decay[0]).all() else torch.from_numpy(decay))
        self.forward = by_layers(layers, [None] * len(layers), decays, torch.float32, compiled=variant == "compile")
        spec = recipe.optimizer
        self.optimizer = torch.optim.AdamW(
            layers.parameters(),
            lr=spec["learning_rate"],
            betas=(spec["beta1"], spec["beta2"]),
            eps=spec["epsilon"],
            weight_decay=spec["weight_decay"],
            fused=True,
        )

    def warm_up(self, data, batch):
        """Forward and backward pass on batches of the sizes to come, without an update: allocation, compilation."""
        import numpy as np

        for size in {min(batch, len(data)), len(data) % batch or batch}:
            spikes, labels = self.tensors(data, np.arange(size))
            loss_and_decision(self.recipe.loss, self.forward(spikes), labels)[0].backward()

    def train(self, spikes, labels):
        """One step; loss and number of right decisions."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.learning_rate(self.step, self.total_steps)
        self.optimizer.zero_grad(set_to_none=True)
        loss, decisions = loss_and_decision(self.recipe.loss, self.forward(spikes), labels)
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return loss.item(), (decisions == labels).sum().item()

    def evaluate(self, data, batch):
        """Loss and accuracy over all samples."""
        import numpy as np

        loss = right = 0.0
        with self.torch.no_grad():
            for begin in range(0, len(data), batch):
                spikes, labels = self.tensors(data, np.arange(begin, min(begin + batch, len(data))))
                part, decisions = loss_and_decision(self.recipe.loss, self.forward(spikes), labels)
                loss += part.item() * len(labels)
                right += (decisions == labels).sum().item()
        return loss / len(data), right / len(data)

    def tensors(self, data, samples):
        spikes, labels = data.dense(samples)
        return self.torch.from_numpy(spikes), self.torch.from_numpy(labels)


def say(**line):
    print(json.dumps(line), flush=True)


def main(argv):
    options = parse(argv)
    limit_threads(options.threads)
    recipe = Recipe(options.run / "config.toml")
    import numpy as np
    from spikes import read_spikes

    spec, batch = recipe.data, recipe.training["batch_size"]
    tensors, _ = read_tensors(options.run / "last.safetensors")
    inputs = tensors[recipe.layers[0]["name"] + ".weight"].shape[1]
    train, test = (read_spikes(path, spec["step_ms"], spec["steps"], inputs) for path in (options.train, options.test))
    batches = -(-len(train) // batch)
    training = Training(recipe, tensors, options.variant, batches * options.epochs)
    loss, accuracy = training.evaluate(test, batch)
    say(epoch=0, test_loss=loss, test_accuracy=accuracy, train_seconds=0.0)
    training.warm_up(train, batch)
    random = np.random.default_rng(recipe.all["seed"])
    seconds = data_seconds = 0.0
    for epoch in range(1, options.epochs + 1):
        order = random.permutation(len(train))
        total_loss = right = 0.0
        for begin in range(0, len(train), batch):
            start = time.perf_counter()
            spikes, labels = training.tensors(train, order[begin : begin + batch])
            ready = time.perf_counter()
            loss, correct = training.train(spikes, labels)
            seconds += time.perf_counter() - ready
            data_seconds += ready - start
            total_loss += loss * len(labels)
            right += correct
        loss, accuracy = training.evaluate(test, batch)
        say(
            epoch=epoch,
            train_loss=total_loss / len(train),
            train_accuracy=right / len(train),
            test_loss=loss,
            test_accuracy=accuracy,
            train_seconds=seconds,
            data_seconds=data_seconds,
            samples_per_s=epoch * len(train) / seconds,
            resident_bytes=resident_bytes(),
        )
        if accuracy >= options.target:
            break


if __name__ == "__main__":
    main(sys.argv[1:])
