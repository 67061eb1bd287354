"""What the peers on JAX share: the surrogate, the loss, one compiled training step."""

import jax
import jax.numpy as jnp
import optax
from case import BETA, THRESHOLD, WINDOW_LOW


def derivative(shifted):
    """Derivative of the spike by the membrane potential, from u - threshold; zero outside the window."""
    value = 1.0 / jnp.square(BETA * jnp.abs(shifted) + 1.0)
    return jnp.where(shifted > WINDOW_LOW - THRESHOLD, value, 0.0)


@jax.custom_jvp
def spike(shifted):
    return (shifted > 0).astype(shifted.dtype)


@spike.defjvp
def _spike_jvp(primals, tangents):
    return spike(primals[0]), derivative(primals[0]) * tangents[0]


def parameters_of(case):
    """Per layer the weight as (inputs, size), the recurrent weight as (size, size), [from][to], if any, and the bias."""
    layers = []
    for weight, recurrent_weight, bias in zip(case.weights, case.recurrent_weights, case.biases, strict=True):
        layer = {"weight": jnp.asarray(weight.T.copy()), "bias": jnp.asarray(bias)}
        if recurrent_weight is not None:
            layer["recurrent_weight"] = jnp.asarray(recurrent_weight.T.copy())
        layers.append(layer)
    return layers


def lif_scan(currents, decay, recurrent_weight=None):
    """Spikes of one layer from its input currents (steps, batch, size)."""

    def step(state, current):
        membrane, kept, spikes = state
        if recurrent_weight is not None:
            current = current + spikes @ recurrent_weight
        membrane = membrane * kept + current
        spikes = spike(membrane - THRESHOLD)
        return (membrane, decay * (1.0 - jax.lax.stop_gradient(spikes)), spikes), spikes

    zeros = jnp.zeros_like(currents[0])
    return jax.lax.scan(step, (zeros, zeros, zeros), currents)[1]


def integrate(currents, decay):
    """Leaky integrator: membrane potentials of all steps."""

    def step(membrane, current):
        membrane = membrane * decay + current
        return membrane, membrane

    return jax.lax.scan(step, jnp.zeros_like(currents[0]), currents)[1]


class Trainer:
    """`forward(parameters, spikes)` gives the readout's membrane potentials, (steps, batch, classes)."""

    def __init__(self, case, forward, parameters):
        optimizer = optax.adamw(case.learning_rate, weight_decay=0.0)

        def loss_of(parameters, spikes, labels):
            output = forward(parameters, spikes)
            labels = jnp.broadcast_to(labels, output.shape[:2])
            return optax.softmax_cross_entropy_with_integer_labels(output, labels).mean()

        def train(parameters, state, spikes, labels):
            loss, gradient = jax.value_and_grad(loss_of)(parameters, spikes, labels)
            updates, state = optimizer.update(gradient, state, parameters)
            return optax.apply_updates(parameters, updates), state, loss

        self.parameters = parameters
        self.state = optimizer.init(parameters)
        self.train = jax.jit(train, donate_argnums=(0, 1))

    def prepare(self, spikes, labels):
        return jnp.asarray(spikes), jnp.asarray(labels)

    def step(self, batch):
        self.parameters, self.state, loss = self.train(self.parameters, self.state, *batch)
        jax.block_until_ready((self.parameters, self.state))
        return float(loss)
