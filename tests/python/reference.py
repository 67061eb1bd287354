"""Calls the small program that shows the project's own reference and engine to these tests.

    reference_tool CONFIG IN OUT                  float64 dense reference: loss and gradients of one batch
    reference_tool CONFIG IN --train-steps N      N steps of the sparse engine and the optimiser on that batch

CONFIG is a configuration file. IN is a safetensors file with <layer>.weight (outputs, inputs), <layer>.recurrent_weight
(outputs, outputs) and <layer>.bias (if the layer has them) and <layer>.decay in float32, `input` (samples, steps,
channels) of 0 and 1 in float32, and `labels` in int64. OUT is a safetensors file with `loss` (the mean over samples plus
the regularisers) and the gradients, grad.<layer>.weight and so on, in float64. With --train-steps it prints the losses before each step as a JSON list.
"""

import json
import subprocess

import numpy as np

import cases
import safetensors_file


def _prepare(folder, description, parameters, inputs, labels):
    config, tensors = folder / "config.toml", folder / "in.safetensors"
    config.write_text(cases.to_toml(description))
    safetensors_file.save(tensors, {**parameters, "input": inputs, "labels": labels})
    return config, tensors


def _call(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def gradients(tool, folder, description, parameters, inputs, labels):
    """Loss and a dict of gradients of the float64 reference."""
    config, tensors = _prepare(folder, description, parameters, inputs, labels)
    out = folder / "out.safetensors"
    _call(tool, config, tensors, out)
    result = safetensors_file.load(out)
    gradient = {name[len("grad.") :]: array for name, array in result.items() if name.startswith("grad.")}
    return float(np.reshape(result["loss"], ())), gradient


def training_losses(tool, folder, description, parameters, inputs, labels, steps):
    """The losses before each of `steps` training steps of the sparse engine."""
    config, tensors = _prepare(folder, description, parameters, inputs, labels)
    return json.loads(_call(tool, config, tensors, "--train-steps", steps))
