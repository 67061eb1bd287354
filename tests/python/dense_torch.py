"""A dense spiking network in PyTorch, as plain as can be: every neuron, every step, gradients by autograd.

It shares no code with the project and is the independent yardstick for its gradients. Symbols as in docs/notation.md.
Shapes: spikes and membranes of a layer are (samples, steps, neurons), weights (outputs, inputs).
"""

import math

import numpy as np
import torch


class _Spike(torch.autograd.Function):
    """1 where the membrane is above the threshold; its derivative is replaced by the surrogate's, h."""

    @staticmethod
    def forward(ctx, membrane, threshold, derivative):
        ctx.save_for_backward(derivative)
        return (membrane > threshold).to(membrane.dtype)

    @staticmethod
    def backward(ctx, gradient):
        (derivative,) = ctx.saved_tensors
        return gradient * derivative, None, None


def surrogate(layer, membrane):
    """h(u), zero outside the window (low, high], which is in units of the threshold."""
    theta = layer["threshold"]
    x = membrane - theta
    kind = layer["surrogate"]
    if kind == "superspike":
        h = 1.0 / (layer["surrogate_beta"] * x.abs() + 1.0) ** 2
    elif kind == "triangle":
        h = layer["surrogate_gamma"] * torch.clamp(1.0 - x.abs(), min=0.0)
    elif kind == "box":
        h = (x.abs() <= 0.5).to(x.dtype)
    elif kind == "quadratic":
        h = torch.clamp(1.0 - (layer["surrogate_beta"] * x) ** 2, min=0.0)
    elif kind == "arctan":
        a = layer["surrogate_beta"]
        h = (a / 2.0) / (1.0 + (math.pi * a * x / 2.0) ** 2)
    else:
        raise ValueError(kind)
    low, high = layer["window"]
    inside = (membrane > low * theta) & (membrane <= high * theta)
    return h * inside.to(h.dtype)


def _input_gain(layer, decay):
    return (1.0 - decay) * layer["input_gain"] if layer["input_scaling"] == "leak" else layer["input_gain"]


def run_lif(layer, weight, recurrent_weight, bias, decay, inputs):
    """Spikes and membranes of a LIF layer; `recurrent_weight` (to, from) or None."""
    gain, theta = _input_gain(layer, decay), layer["threshold"]
    u = torch.zeros(inputs.shape[0], weight.shape[0], dtype=inputs.dtype)
    s = torch.zeros_like(u)
    spikes, membranes = [], []
    for t in range(inputs.shape[1]):
        current = inputs[:, t] @ weight.T
        if recurrent_weight is not None:
            current = current + s @ recurrent_weight.T
        if bias is not None:
            current = current + bias
        r = s if layer["reset_gradient"] else s.detach()
        if layer["reset"] == "zero":
            carried = decay * (u * (1.0 - r))
        elif layer["reset"] == "subtract":
            carried = decay * (u - theta * r)
        elif layer["reset"] == "subtract_after_decay":
            carried = decay * u - theta * r
        else:
            carried = decay * u
        u = carried + gain * current
        s = _Spike.apply(u, theta, surrogate(layer, u.detach()))
        spikes.append(s)
        membranes.append(u)
    return torch.stack(spikes, 1), torch.stack(membranes, 1)


def run_membrane(layer, weight, bias, decay, inputs):
    """Membranes of a leaky integrator (li) or, without memory, of a linear layer."""
    if layer["neuron"] == "linear":
        decay = torch.zeros_like(decay)
    gain = _input_gain(layer, decay)
    u = torch.zeros(inputs.shape[0], weight.shape[0], dtype=inputs.dtype)
    membranes = []
    for t in range(inputs.shape[1]):
        current = inputs[:, t] @ weight.T
        if bias is not None:
            current = current + bias
        u = decay * u + gain * current
        membranes.append(u)
    return torch.stack(membranes, 1)


def _cross_entropy(logits, labels, smoothing):
    """Per sample; `smoothing` of the target is spread over all classes."""
    classes = logits.shape[-1]
    target = torch.nn.functional.one_hot(labels, classes).to(logits.dtype) * (1.0 - smoothing) + smoothing / classes
    return -(target * torch.log_softmax(logits, -1)).sum(-1)


def _first_maximum(membranes):
    """Maximum over steps; where several steps share it, the gradient goes to the first."""
    first = torch.from_numpy(np.argmax(membranes.detach().numpy(), axis=1))
    return membranes.gather(1, first.unsqueeze(1)).squeeze(1)


def _squared_error(loss, values, labels):
    """Per sample: mean over classes of the squared distance from the target."""
    target = torch.full_like(values, loss["wrong_target_rate"])
    target[torch.arange(len(labels)), labels] = loss["target_rate"]
    return ((values - target) ** 2).mean(-1)


def membrane_loss(loss, membranes, labels):
    """Per sample, of a last layer that does not spike."""
    over, squared = loss["over"], loss["kind"] == "squared_error"

    def error(values):
        return (
            _squared_error(loss, values, labels) if squared else _cross_entropy(values, labels, loss["label_smoothing"])
        )

    if over in ("steps", "steps_sum"):
        each = torch.stack([error(membranes[:, t]) for t in range(membranes.shape[1])], 1)
        return each.mean(1) if over == "steps" else each.sum(1)
    if over == "softmax_sum":
        probabilities = torch.softmax(membranes, -1)
        return error(probabilities.mean(1) if squared else probabilities.sum(1))
    if over == "mean":
        return error(membranes.mean(1))
    if over == "max":
        return error(_first_maximum(membranes))
    if over == "last":
        return error(membranes[:, -1])
    raise ValueError(over)


def count_loss(loss, spikes, labels):
    """Per sample, of a last layer that spikes."""
    if loss["kind"] == "squared_error":
        return _squared_error(loss, spikes.mean(1), labels)
    return _cross_entropy(spikes.sum(1), labels, loss["label_smoothing"])


def rate_regulariser(layer, spikes):
    """weight * mean over neurons of the square of what the mean rate lacks below, or has above."""
    rate = spikes.mean((0, 1))
    below = torch.clamp(layer["rate_lower"] - rate, min=0.0) ** 2
    above = torch.clamp(rate - layer["rate_upper"], min=0.0) ** 2
    return layer["rate_lower_weight"] * below.mean() + layer["rate_upper_weight"] * above.mean()


def run(network, parameters, inputs, labels):
    """Mean loss of a batch with its regularisers (a scalar tensor), and the spikes and membranes of every layer.

    `network` is a description as cases.py makes it; `parameters` holds tensors <layer>.weight,
    .recurrent_weight and .bias (if any) and .decay; `inputs` is (samples, steps, channels), `labels` (samples).
    """
    signal, regulariser, trace = inputs, 0.0, []
    for layer in network["layers"]:
        name = layer["name"]
        weight, bias, decay = parameters[name + ".weight"], parameters.get(name + ".bias"), parameters[name + ".decay"]
        if layer["neuron"] == "lif":
            recurrent_weight = parameters.get(name + ".recurrent_weight")
            spikes, membranes = run_lif(layer, weight, recurrent_weight, bias, decay, signal)
            regulariser = regulariser + rate_regulariser(layer, spikes)
            signal = spikes
        else:
            spikes, membranes = None, run_membrane(layer, weight, bias, decay, signal)
            signal = membranes
        trace.append((layer, spikes, membranes))
    loss = network["loss"]
    per_sample = count_loss(loss, spikes, labels) if spikes is not None else membrane_loss(loss, membranes, labels)
    return per_sample.mean() + regulariser, trace
