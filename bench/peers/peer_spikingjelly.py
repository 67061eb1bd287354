"""SpikingJelly, multi-step: one GEMM over all steps, then its LIF nodes with a surrogate of our own.

On CPUs, SpikingJelly 2.0 runs autograd through the loop of steps for its own surrogates too (its operators with a
hand-written backward pass are for GPUs), so this is its fastest path here.
"""

from case import THRESHOLD
from spikingjelly.activation_based import functional, neuron, surrogate
from torch import nn
from torch_parts import Trainer, configure, linear_layers, spike


class Window(surrogate.SurrogateFunctionBase):
    """SuperSpike with the window of the benchmark."""

    @staticmethod
    def spiking_function(x):
        return spike(x)


def build(case, variant, precision):
    configure()
    layers = linear_layers(case)
    tau = 1.0 / (1.0 - case.decay)
    modules = []
    for layer in layers[:-1]:
        lif = neuron.LIFNode(
            tau=tau,
            decay_input=False,
            v_threshold=THRESHOLD,
            v_reset=0.0,
            surrogate_function=Window(),
            detach_reset=True,
            step_mode="m",
        )
        modules += [layer, lif]
    # Never reaches its threshold: the leaky integrator of the readout. Its potentials are kept.
    readout = neuron.LIFNode(
        tau=tau,
        decay_input=False,
        v_threshold=1e30,
        v_reset=None,
        surrogate_function=Window(),
        detach_reset=True,
        step_mode="m",
        store_v_seq=True,
    )
    network = nn.Sequential(*modules, layers[-1])

    def forward(inputs):
        functional.reset_net(network)
        functional.reset_net(readout)
        readout(network(inputs))
        return readout.v_seq

    return Trainer(case, forward, layers.parameters(), precision)
