"""Spyx: its Sequential and run. Its own LIF resets by subtraction, a step late and through the gradient, and trains its
decay; so the neurons here are our own, after its contract for stateful layers, with a surrogate made by spyx.axn."""

import jax
import jax.numpy as jnp
import spyx
import spyx.nn
from case import THRESHOLD
from flax import nnx
from jax_parts import Trainer, derivative

spike = spyx.axn.custom(derivative, spyx.axn.heaviside)


class Lif(nnx.Module):
    def __init__(self, size, decay):
        self.size = size
        self.decay = decay

    def __call__(self, x, state):
        membrane, kept = state
        membrane = membrane * kept + x
        spikes = spike(membrane - THRESHOLD)
        return spikes, (membrane, self.decay * (1.0 - jax.lax.stop_gradient(spikes)))

    def initial_state(self, batch_size):
        return jnp.zeros((batch_size, self.size)), jnp.zeros((batch_size, self.size))


class RecurrentLif(nnx.Module):
    def __init__(self, size, decay, recurrent_weight):
        self.size = size
        self.decay = decay
        self.recurrent = nnx.Linear(size, size, use_bias=False, rngs=nnx.Rngs(0))
        self.recurrent.kernel[...] = jnp.asarray(recurrent_weight.T.copy())

    def __call__(self, x, state):
        membrane, kept, before = state
        membrane = membrane * kept + x + self.recurrent(before)
        spikes = spike(membrane - THRESHOLD)
        return spikes, (membrane, self.decay * (1.0 - jax.lax.stop_gradient(spikes)), spikes)

    def initial_state(self, batch_size):
        return tuple(jnp.zeros((batch_size, self.size)) for _ in range(3))


class LeakyIntegrator(nnx.Module):
    def __init__(self, size, decay):
        self.size = size
        self.decay = decay

    def __call__(self, x, membrane):
        membrane = membrane * self.decay + x
        return membrane, membrane

    def initial_state(self, batch_size):
        return jnp.zeros((batch_size, self.size))


def build(case, variant, precision):
    modules = []
    for index, (weight, bias) in enumerate(zip(case.weights, case.biases, strict=True)):
        size, inputs = weight.shape
        linear = nnx.Linear(inputs, size, rngs=nnx.Rngs(0))
        linear.kernel[...] = jnp.asarray(weight.T.copy())
        linear.bias[...] = jnp.asarray(bias)
        last = index + 1 == len(case.weights)
        own = case.recurrent_weights[index]
        lif = Lif(size, case.decay) if own is None else RecurrentLif(size, case.decay, own)
        modules += [linear, LeakyIntegrator(size, case.decay) if last else lif]
    structure, parameters = nnx.split(spyx.nn.Sequential(*modules))

    def forward(parameters, spikes):
        return spyx.nn.run(nnx.merge(structure, parameters), spikes)[0]

    return Trainer(case, forward, parameters)
