"""snnTorch: its Leaky neurons, step by step as its tutorials do."""

import snntorch
import torch
from case import THRESHOLD
from torch_parts import Trainer, configure, linear_layers, spike


def build(case, variant, precision):
    configure()
    layers = linear_layers(case)
    neurons = [
        snntorch.Leaky(beta=case.decay, threshold=THRESHOLD, reset_mechanism="zero", spike_grad=spike)
        for _ in layers[:-1]
    ]
    readout = snntorch.Leaky(beta=case.decay, reset_mechanism="none", spike_grad=spike)

    def forward(inputs):
        membranes = [torch.zeros(inputs.shape[1], layer.out_features) for layer in layers]
        outputs = []
        for spikes in inputs.unbind(0):
            for index, neuron in enumerate(neurons):
                spikes, membranes[index] = neuron(layers[index](spikes), membranes[index])
            _, membranes[-1] = readout(layers[-1](spikes), membranes[-1])
            outputs.append(membranes[-1])
        return torch.stack(outputs)

    return Trainer(case, forward, layers.parameters(), precision)
