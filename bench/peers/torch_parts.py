"""What the peers on PyTorch share: the surrogate, the loss, one training step."""

import contextlib
import os

import torch
from case import BETA, THRESHOLD, WINDOW_LOW
from torch import nn
from torch.nn import functional


def surrogate(shifted, scale=1.0):
    """Derivative of the spike by the membrane potential, from (u - threshold) * scale; zero outside the window."""
    derivative = (shifted.abs() * (BETA / scale) + 1.0).reciprocal_().square_()
    return derivative.masked_fill_(shifted <= (WINDOW_LOW - THRESHOLD) * scale, 0.0)


class Spike(torch.autograd.Function):
    """Heaviside of u - threshold, in the given dtype (float32, or what autocast multiplies in)."""

    @staticmethod
    def forward(shifted, dtype):
        return (shifted > 0).to(dtype)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, gradient):
        (shifted,) = ctx.saved_tensors
        return gradient * surrogate(shifted), None


def spike(shifted, dtype=torch.float32):
    return Spike.apply(shifted, dtype)


def linear_layers(case):
    layers = nn.ModuleList()
    for weight, bias in zip(case.weights, case.biases, strict=True):
        layer = nn.Linear(weight.shape[1], weight.shape[0])
        layer.weight.data = torch.from_numpy(weight)
        layer.bias.data = torch.from_numpy(bias)
        layers.append(layer)
    return layers


def recurrent_layers(case):
    """Per layer what its own spikes add one step later, (size, size) without a bias, or None."""
    layers = nn.ModuleList()
    for weight in case.recurrent_weights:
        if weight is None:
            layers.append(None)
            continue
        layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
        layer.weight.data = torch.from_numpy(weight)
        layers.append(layer)
    return layers


class Trainer:
    """`forward(spikes)` gives the readout's membrane potentials, (steps, batch, classes)."""

    def __init__(self, case, forward, parameters, precision):
        self.forward = forward
        self.optimizer = torch.optim.AdamW(parameters, lr=case.learning_rate, weight_decay=0.0, fused=True)
        self.autocast = torch.autocast("cpu", torch.bfloat16) if precision == "bf16" else contextlib.nullcontext()

    def prepare(self, spikes, labels):
        return torch.from_numpy(spikes), torch.from_numpy(labels)

    def step(self, batch):
        spikes, labels = batch
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast:
            output = self.forward(spikes)
        steps, _, classes = output.shape
        loss = functional.cross_entropy(output.float().reshape(-1, classes), labels.repeat(steps))
        loss.backward()
        self.optimizer.step()
        return loss.item()


def configure():
    """As many threads as this process may use cores, and no subnormal numbers, which make long sequences slow."""
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.set_flush_denormal(True)
