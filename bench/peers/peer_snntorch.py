"""snnTorch: its Leaky neurons, step by step as its tutorials do."""

import snntorch
import torch
from case import THRESHOLD
from torch_parts import Trainer, configure, linear_layers, recurrent_layers, spike


def build(case, variant, precision):
    configure()
    layers, recurrent = linear_layers(case), recurrent_layers(case)
    neurons = [
        snntorch.Leaky(beta=case.decay, threshold=THRESHOLD, reset_mechanism="zero", spike_grad=spike)
        for _ in layers[:-1]
    ]
    readout = snntorch.Leaky(beta=case.decay, reset_mechanism="none", spike_grad=spike)

    def forward(inputs):
        membranes = [torch.zeros(inputs.shape[1], layer.out_features) for layer in layers]
        before = [torch.zeros(inputs.shape[1], layer.out_features) for layer in layers[:-1]]
        outputs = []
        for spikes in inputs.unbind(0):
            for index, neuron in enumerate(neurons):
                current = layers[index](spikes)
                if recurrent[index] is not None:  # its RLeaky has no reset to zero without delay
                    current = current + recurrent[index](before[index])
                spikes, membranes[index] = neuron(current, membranes[index])
                before[index] = spikes
            _, membranes[-1] = readout(layers[-1](spikes), membranes[-1])
            outputs.append(membranes[-1])
        return torch.stack(outputs)

    return Trainer(case, forward, [*layers.parameters(), *recurrent.parameters()], precision)
