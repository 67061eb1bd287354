"""PyTorch by hand: step by step; layer by layer (one GEMM over all steps, then a loop of elementwise steps); and that
loop through torch.compile, CHUNK steps in one kernel."""

import torch
from case import THRESHOLD
from torch_parts import Trainer, configure, linear_layers, recurrent_layers, spike

CHUNK = 10  # steps compiled as one: more take minutes to compile, fewer are slower


def lif_step(current, membrane, kept, decay, dtype):
    """`kept` is decay * (1 - previous spikes), a constant in the backward pass."""
    membrane = membrane * kept + current
    spikes = spike(membrane - THRESHOLD, dtype)
    return spikes, membrane, decay - decay * spikes.detach()


def lif_chunk(currents, membrane, kept, decay, dtype):
    spikes = []
    for current in currents.unbind(0):
        now, membrane, kept = lif_step(current, membrane, kept, decay, dtype)
        spikes.append(now)
    return torch.stack(spikes), membrane, kept


def integrate(currents, decay):
    """Leaky integrator: membrane potentials of all steps."""
    membrane = torch.zeros_like(currents[0])
    membranes = []
    for current in currents.unbind(0):
        membrane = membrane * decay + current
        membranes.append(membrane)
    return torch.stack(membranes)


def by_layers(layers, recurrent, decays, dtype, compiled):
    """`decays` has a number, or a tensor of one per neuron, for each layer."""
    torch._dynamo.config.recompile_limit = (
        64  # one per layer size, and first chunks differ; past it PyTorch goes on uncompiled
    )
    chunk = torch.compile(lif_chunk, dynamic=False) if compiled else lif_chunk
    integrator = torch.compile(integrate, dynamic=False) if compiled else integrate

    def lif(currents, decay):
        membrane = torch.zeros_like(currents[0], dtype=torch.float32)
        kept = torch.zeros_like(membrane)
        if not compiled:
            return chunk(currents, membrane, kept, decay, dtype)[0]
        spikes = []
        for part in currents.split(CHUNK):
            now, membrane, kept = chunk(part, membrane, kept, decay, dtype)
            spikes.append(now)
        return torch.cat(spikes)

    def integrate_chunks(currents):
        if not compiled or currents.shape[0] <= 100:
            return integrator(currents.float(), decays[-1])
        return integrate(currents.float(), decays[-1])  # too many steps to compile as one

    def recurrent_lif(currents, own, decay):
        """The product with the input is made at once, that with the layer's own spikes step by step."""
        membrane = torch.zeros_like(currents[0], dtype=torch.float32)
        kept = torch.zeros_like(membrane)
        now = torch.zeros_like(membrane)
        spikes = []
        for current in currents.unbind(0):
            now, membrane, kept = lif_step(current + own(now), membrane, kept, decay, dtype)
            spikes.append(now)
        return torch.stack(spikes)

    def forward(spikes):
        for layer, own, decay in zip(layers[:-1], recurrent[:-1], decays[:-1], strict=True):
            spikes = lif(layer(spikes), decay) if own is None else recurrent_lif(layer(spikes), own, decay)
        return integrate_chunks(layers[-1](spikes))

    return forward


def by_steps(layers, recurrent, decay, dtype):
    def forward(inputs):
        batch = inputs.shape[1]
        membranes = [torch.zeros(batch, layer.out_features) for layer in layers]
        kept = [torch.zeros(batch, layer.out_features) for layer in layers[:-1]]
        before = [torch.zeros(batch, layer.out_features) for layer in layers[:-1]]
        outputs = []
        for spikes in inputs.unbind(0):
            for index, layer in enumerate(layers[:-1]):
                current = layer(spikes)
                if recurrent[index] is not None:
                    current = current + recurrent[index](before[index])
                spikes, membranes[index], kept[index] = lif_step(current, membranes[index], kept[index], decay, dtype)
                before[index] = spikes
            membranes[-1] = membranes[-1] * decay + layers[-1](spikes)
            outputs.append(membranes[-1])
        return torch.stack(outputs)

    return forward


def build(case, variant, precision):
    configure()
    layers, recurrent = linear_layers(case), recurrent_layers(case)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    if variant == "steps":
        forward = by_steps(layers, recurrent, case.decay, dtype)
    else:
        forward = by_layers(layers, recurrent, [case.decay] * len(layers), dtype, compiled=variant == "compile")
    return Trainer(case, forward, [*layers.parameters(), *recurrent.parameters()], precision)
