"""A dense spiking network in PyTorch, as plain as can be: every neuron, every step, gradients by autograd.

It shares no code with the project and is the independent yardstick for its gradients. Symbols as in docs/notation.md.
Shapes: spikes and membranes of a layer are (samples, steps, neurons), weights (outputs, inputs).
"""

import math

import numpy as np
import torch

import cases


class _Spike(torch.autograd.Function):
    """1 where x, the distance from the threshold, is above 0; its derivative is replaced by the surrogate's, h."""

    @staticmethod
    def forward(ctx, x, derivative):
        ctx.save_for_backward(derivative)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, gradient):
        (derivative,) = ctx.saved_tensors
        return gradient * derivative, None


def _spike(layer, potential, theta):
    return _Spike.apply(potential - theta, surrogate(layer, potential.detach(), theta))


def surrogate(layer, membrane, theta):
    """h(u), zero outside the window (low, high], which is in units of the threshold `theta`, a number or a tensor."""
    if torch.is_tensor(theta):
        theta = theta.detach()
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


def _reset(layer, u, s, theta, decay):
    """What a spike leaves of the membrane, decayed."""
    r = s if layer["reset_gradient"] else s.detach()
    if layer["reset"] == "zero":
        return decay * (u * (1.0 - r))
    if layer["reset"] == "subtract":
        return decay * (u - theta * r)
    if layer["reset"] == "subtract_after_decay":
        return decay * u - theta * r
    return decay * u


class _Lif:
    """One step after the other: `step` takes the input current and returns the spikes and what the threshold sees."""

    def __init__(self, layer, constants, zeros):
        self.layer, self.constants = layer, constants
        self.u = self.s = zeros
        self.k = _input_gain(layer, self["decay"])

    def __getitem__(self, name):
        return self.constants[name]

    def detach(self):
        """Makes the states constants."""
        for name in ("u", "s", "i", "b", "w"):
            state = getattr(self, name, None)
            if torch.is_tensor(state):
                setattr(self, name, state.detach())

    def step(self, current):
        self.u = _reset(self.layer, self.u, self.s, self["threshold"], self["decay"]) + self.k * current
        self.s = _spike(self.layer, self.u, self["threshold"])
        return self.s, self.u


class _CubaLif(_Lif):
    i = 0.0

    def step(self, current):
        self.i = self["decay_syn"] * self.i + current
        return super().step(self.i)


class _Alif(_Lif):
    """Threshold theta + beta b, b a decaying sum or mean of spikes."""

    b = 0.0

    def step(self, current):
        rho, beta, theta = self["decay_adapt"], self["adapt_spike"], self["threshold"]
        carried = _reset(self.layer, self.u, self.s, theta + beta * self.b, self["decay"])
        self.b = rho * self.b + (1.0 - rho if self.layer["adapt_scaled"] else 1.0) * self.s
        self.u = carried + self.k * current
        potential = self.u - beta * self.b
        self.s = _spike(self.layer, potential, theta)
        return self.s, potential


class _AdLif(_Lif):
    """w[t] = beta w[t-1] + a u[t-1] + b s[t-1] (Bittar and Garner 2022)."""

    w = 0.0

    def step(self, current):
        self.w = self["decay_adapt"] * self.w + self["adapt_membrane"] * self.u + self["adapt_spike"] * self.s
        return super().step(current - self.w)


class _SeAdLif(_Lif):
    """w[t] = beta w[t-1] + (1 - beta) q (a u[t-1] + b s[t-1]), u after its reset (Baronig et al. 2024)."""

    w = 0.0

    def step(self, current):
        layer, beta = self.layer, self["decay_adapt"]
        after_reset = _reset(layer, self.u, self.s, self["threshold"], 1.0)
        driven = self["adapt_membrane"] * after_reset + self["adapt_spike"] * self.s
        self.w = beta * self.w + (1.0 - beta) * layer["adapt_gain"] * driven
        self.u = self["decay"] * after_reset + self.k * (current - self.w)
        self.s = _spike(layer, self.u, self["threshold"])
        return self.s, self.u


MODELS = {"lif": _Lif, "if": _Lif, "cuba_lif": _CubaLif, "alif": _Alif, "adlif": _AdLif, "se_adlif": _SeAdLif}


class _Integrator:
    """A leaky integrator (li) or, without memory, a linear layer: `step` returns no spikes, and the membranes."""

    def __init__(self, layer, constants, zeros):
        self.decay = torch.zeros_like(constants["decay"]) if layer["neuron"] == "linear" else constants["decay"]
        self.gain = _input_gain(layer, self.decay)
        self.u = zeros

    def detach(self):
        """Makes the membranes constants."""
        self.u = self.u.detach()

    def step(self, current):
        self.u = self.decay * self.u + self.gain * current
        return None, self.u


class _Layer:
    """A layer and its past: spikes (none, where it does not spike) and potentials, a tensor for each step.

    Gradients end where a chunk of `bptt_steps` (0: all) begins: what it receives of the past is constants.
    """

    def __init__(self, layer, parameters, samples, bptt_steps=0):
        name = layer["name"]
        self.layer, self.bptt_steps = layer, bptt_steps
        self.weight, self.bias = parameters[name + ".weight"], parameters.get(name + ".bias")
        self.recurrent_weight = parameters.get(name + ".recurrent_weight")
        constants = {key: parameters.get(f"{name}.{key}", layer.get(key)) for key in cases.CONSTANTS}
        self.silence = torch.zeros(samples, self.weight.shape[0], dtype=self.weight.dtype)
        self.neurons = MODELS.get(layer["neuron"], _Integrator)(layer, constants, self.silence)
        self.spikes, self.potentials = [], []

    def step(self, inputs):
        step = len(self.potentials)
        if self.bptt_steps > 0 and step % self.bptt_steps == 0:
            self.neurons.detach()
        current = inputs @ self.weight.T
        if self.recurrent_weight is not None:
            current = current + self.output(step - 1, step) @ self.recurrent_weight.T
        if self.bias is not None:
            current = current + self.bias
        spikes, potential = self.neurons.step(current)
        self.spikes.append(spikes)
        self.potentials.append(potential)

    def output(self, step, at):
        """What layers receive of a step `at` that step or a later one."""
        if step < 0:
            return self.silence
        output = self.potentials[step] if self.spikes[step] is None else self.spikes[step]
        crosses = self.bptt_steps > 0 and step // self.bptt_steps != at // self.bptt_steps
        return output.detach() if crosses else output


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
    .recurrent_weight and .bias (if any), and constants of neurons where they have their own; `inputs` is (samples, steps, channels), `labels` (samples).
    """
    layers = [_Layer(layer, parameters, inputs.shape[0], network["bptt_steps"]) for layer in network["layers"]]
    sources = cases.sources(network)
    for t in range(inputs.shape[1]):
        for l, layer in enumerate(layers):
            # A later layer has not had its turn: what it sends arrives in the next step.
            received = [inputs[:, t] if s is None else layers[s].output(t - (s > l), t) for s in sources[l]]
            layer.step(torch.cat(received, 1))
    regulariser, trace = 0.0, []
    for layer in layers:
        spikes = torch.stack(layer.spikes, 1) if layer.layer["neuron"] in MODELS else None
        membranes = torch.stack(layer.potentials, 1)
        if spikes is not None:
            regulariser = regulariser + rate_regulariser(layer.layer, spikes)
        trace.append((layer.layer, spikes, membranes))
    loss = network["loss"]
    per_sample = count_loss(loss, spikes, labels) if spikes is not None else membrane_loss(loss, membranes, labels)
    return per_sample.mean() + regulariser, trace
