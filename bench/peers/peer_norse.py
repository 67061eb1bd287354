"""Norse: its box LIF steps, which integrate v += (1 - decay) (x - v). So the same network has its potentials and its
threshold scaled by 1 - decay. Norse's SuperSpike has no slope and no window, so its threshold function is replaced.
"""

import norse.torch.functional.lif_box as lif_box
import torch
from case import THRESHOLD
from norse.torch.functional.leaky_integrator_box import LIBoxParameters, LIBoxState, li_box_feed_forward_step
from torch_parts import Trainer, configure, linear_layers, surrogate


class ScaledSpike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, shifted, scale):
        ctx.save_for_backward(shifted)
        ctx.scale = scale
        return (shifted > 0).to(shifted.dtype)

    @staticmethod
    def backward(ctx, gradient):
        (shifted,) = ctx.saved_tensors
        return gradient * surrogate(shifted, ctx.scale) / ctx.scale, None


def detached_reset(spikes, membrane, reset, threshold):
    return (1 - spikes.detach()) * membrane


def build(case, variant, precision):
    configure()
    layers = linear_layers(case)
    scale = 1.0 - case.decay
    lif_box.threshold = lambda shifted, method, alpha: ScaledSpike.apply(shifted, scale)
    rate = torch.as_tensor(scale / 1e-3)  # times dt = 1 ms
    lif = lif_box.LIFBoxParameters(
        tau_mem_inv=rate, v_th=torch.as_tensor(THRESHOLD * scale), reset_method=detached_reset
    )
    integrator = LIBoxParameters(tau_mem_inv=rate)

    def forward(inputs):
        zeros = [torch.zeros(inputs.shape[1], layer.out_features) for layer in layers]
        states = [lif_box.LIFBoxFeedForwardState(v=zero) for zero in zeros[:-1]]
        readout = LIBoxState(v=zeros[-1])
        outputs = []
        for spikes in inputs.unbind(0):
            for index, layer in enumerate(layers[:-1]):
                spikes, states[index] = lif_box.lif_box_feed_forward_step(layer(spikes), states[index], lif)
            output, readout = li_box_feed_forward_step(layers[-1](spikes), readout, integrator)
            outputs.append(output)
        return torch.stack(outputs) / scale

    return Trainer(case, forward, layers.parameters(), precision)
