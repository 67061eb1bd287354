"""Networks, weights and inputs for the comparisons, and their configuration as TOML."""

import math

import numpy as np

CONSTANTS = ("decay", "decay_syn", "decay_adapt", "threshold", "adapt_membrane", "adapt_spike")
HELD = {  # the constants of each model beside its decay, and from where they are drawn where the layer gives none
    "lif": {},
    "if": {},
    "cuba_lif": {"decay_syn": (0.3, 0.9)},
    "alif": {"decay_adapt": (0.6, 0.95), "adapt_spike": (0.5, 1.8)},
    "adlif": {"decay_adapt": (0.6, 0.95), "adapt_membrane": (-0.005, 0.1), "adapt_spike": (0.0, 0.5)},
    "se_adlif": {"decay_adapt": (0.6, 0.95), "adapt_membrane": (0.0, 0.5), "adapt_spike": (0.0, 0.5)},
}
LAYER_DEFAULTS = {
    "neuron": "lif",
    "threshold": 1.0,
    "reset": "zero",
    "reset_gradient": False,
    "input_gain": 1.0,
    "input_scaling": "none",
    "bias": True,
    "recurrent": False,
    "inputs": [],
    "surrogate": "superspike",
    "surrogate_beta": 10.0,
    "surrogate_gamma": 0.3,
    "window": [0.9, math.inf],
    "rate_lower": 0.0,
    "rate_lower_weight": 0.0,
    "rate_upper": 1.0,
    "rate_upper_weight": 0.0,
    "learn": [],
    "adapt_gain": 2.0,
    "adapt_scaled": True,
}
LOSS_DEFAULTS = {
    "kind": "cross_entropy",
    "over": "steps",
    "label_smoothing": 0.0,
    "target_rate": 0.3,
    "wrong_target_rate": 0.05,
}
MEMBRANE_ONLY = ("inputs", "neuron", "input_gain", "input_scaling", "bias")  # what layers that do not spike know


def network(layers, steps, channels, loss=None, optimizer=None, bptt_steps=0):
    """A description: `layers` are dicts of what differs from the defaults, each with a size."""
    described = [{"name": f"layer{i + 1}", **LAYER_DEFAULTS, **layer} for i, layer in enumerate(layers)]
    return {
        "steps": steps,
        "channels": channels,
        "layers": described,
        "loss": {**LOSS_DEFAULTS, **(loss or {})},
        "optimizer": optimizer or {},
        "bptt_steps": bptt_steps,
    }


def sources(description):
    """Of each layer, where its spikes come from: numbers of layers, or None, the data."""
    numbers = {layer["name"]: i for i, layer in enumerate(description["layers"])}
    chain = [[i - 1 if i else None] for i in range(len(numbers))]
    named = [[numbers.get(name) for name in layer["inputs"]] for layer in description["layers"]]
    return [of_names or of_chain for of_names, of_chain in zip(named, chain, strict=True)]


def draw(description, samples, seed, activity=0.2, decays=(0.8, 0.97), scale=1.5):
    """Parameters, inputs and labels as numpy arrays.

    All numbers are float32 ones, so that both sides start from the same.
    Weights are scaled so that the input of a neuron varies by about `scale` thresholds over time.
    """
    random = np.random.default_rng(seed)
    parameters, sizes = {}, [layer["size"] for layer in description["layers"]]
    for layer, of_layer in zip(description["layers"], sources(description), strict=True):
        size, name = layer["size"], layer["name"]
        inputs_of_layer = sum(description["channels"] if s is None else sizes[s] for s in of_layer)
        decay = random.uniform(*decays, size)
        gain = layer["input_gain"] * (1.0 - decay.mean() if layer["input_scaling"] == "leak" else 1.0)
        spread = (
            scale
            * (layer["threshold"] if layer["neuron"] in HELD else 1.0)
            / gain
            / math.sqrt(inputs_of_layer * activity)
        )
        parameters[name + ".weight"] = random.normal(0.1 * spread, spread, (size, inputs_of_layer)).astype(np.float32)
        if layer["recurrent"]:
            own_spread = spread * math.sqrt(inputs_of_layer / size)
            parameters[name + ".recurrent_weight"] = random.normal(0.0, own_spread, (size, size)).astype(np.float32)
        if layer["bias"]:
            parameters[name + ".bias"] = random.normal(0.0, 0.1 * spread, size).astype(np.float32)
        leaks = {"linear": 0.0 * decay, "if": 0.0 * decay + 1.0}
        parameters[name + ".decay"] = leaks.get(layer["neuron"], decay).astype(np.float32)
        for key, (low, high) in HELD.get(layer["neuron"], {}).items():
            parameters[f"{name}.{key}"] = random.uniform(low, high, size).astype(np.float32)
        if "threshold" in layer["learn"]:
            parameters[name + ".threshold"] = (layer["threshold"] * random.uniform(0.8, 1.2, size)).astype(np.float32)
    inputs = (random.random((samples, description["steps"], description["channels"])) < activity).astype(np.float32)
    labels = random.integers(0, description["layers"][-1]["size"], samples).astype(np.int64)
    return parameters, inputs, labels


def _value(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    return repr(value)  # inf and -inf are TOML's words too


def _section(head, values):
    return head + "\n" + "".join(f"{key} = {_value(value)}\n" for key, value in values.items()) + "\n"


def to_toml(description):
    """The description as a configuration file. Decays are given beside the weights; the file's are placeholders."""
    data = {"train": "unused.h5", "steps": description["steps"], "step_ms": 1.0, "channels": description["channels"]}
    text = _section("[data]", data)
    for layer in description["layers"]:
        known = layer if layer["neuron"] in HELD else {key: layer[key] for key in MEMBRANE_ONLY + ("name", "size")}
        if layer["neuron"] not in ("linear", "if"):
            known = {**known, "decay": 0.9}
        placeholders = {"decay_syn": 0.5, "decay_adapt": 0.5, "adapt_membrane": 0.1, "adapt_spike": 0.1}
        known = {**known, **{key: placeholders[key] for key in HELD.get(layer["neuron"], {})}}
        text += _section("[[layers]]", known)
    text += _section("[loss]", description["loss"])
    if description["optimizer"]:
        text += _section("[optimizer]", description["optimizer"])
    text += _section("[training]", {"anneal_window": False, "bptt_steps": description["bptt_steps"]})
    return text
