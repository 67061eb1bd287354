"""BrainEvent: its event-driven product of spikes and weights (Numba kernels on CPUs) over all steps of a layer; its
backward pass is dense. The elementwise step is scanned as in plain JAX."""

import os

import brainevent
import jax.numpy as jnp
from jax_parts import Trainer, integrate, lif_scan, parameters_of


def build(case, variant, precision):
    threads = len(os.sched_getaffinity(0))
    brainevent.config.set_numba_parallel(threads > 1, threads)

    def currents(layer, spikes):
        steps, batch, inputs = spikes.shape
        product = brainevent.binary_densemm(
            layer["weight"], spikes.reshape(steps * batch, inputs).T, transpose=True, backend="numba"
        )
        return product.T.reshape(steps, batch, -1) + layer["bias"]

    def forward(parameters, spikes):
        for layer in parameters[:-1]:
            spikes = lif_scan(currents(layer, spikes), case.decay)
        return integrate(currents(parameters[-1], jnp.asarray(spikes)), case.decay)

    return Trainer(case, forward, parameters_of(case))
