"""JAX by hand: one scan over the steps of the whole network, or layer by layer (one GEMM over all steps, then a scan of
the elementwise step)."""

import jax
import jax.numpy as jnp
from case import THRESHOLD
from jax_parts import Trainer, integrate, lif_scan, parameters_of, spike


def by_layers(parameters, spikes, decay):
    for layer in parameters[:-1]:
        spikes = lif_scan(spikes @ layer["weight"] + layer["bias"], decay, layer.get("recurrent_weight"))
    return integrate(spikes @ parameters[-1]["weight"] + parameters[-1]["bias"], decay)


def by_steps(parameters, inputs, decay):
    def step(state, spikes):
        membranes, kept, before = (list(part) for part in state)
        for index, layer in enumerate(parameters):
            current = spikes @ layer["weight"] + layer["bias"]
            if "recurrent_weight" in layer:
                current = current + before[index] @ layer["recurrent_weight"]
            if index + 1 == len(parameters):
                membranes[index] = membranes[index] * decay + current
            else:
                membranes[index] = membranes[index] * kept[index] + current
                spikes = spike(membranes[index] - THRESHOLD)
                kept[index] = decay * (1.0 - jax.lax.stop_gradient(spikes))
                before[index] = spikes
        return (membranes, kept, before), membranes[-1]

    zeros = [jnp.zeros((inputs.shape[1], layer["bias"].size)) for layer in parameters]
    return jax.lax.scan(step, (zeros, zeros[:-1], zeros[:-1]), inputs)[1]


def build(case, variant, precision):
    network = by_layers if variant == "layers" else by_steps
    return Trainer(case, lambda parameters, spikes: network(parameters, spikes, case.decay), parameters_of(case))
