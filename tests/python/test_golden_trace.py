"""Ten training steps of the sparse engine in float32 follow PyTorch's."""

import math

import pytest

import cases
import reference

torch = pytest.importorskip("torch", reason="PyTorch is not installed (Debian: python3-torch)")
dense_torch = pytest.importorskip("dense_torch")

STEPS = 10
OPTIMIZERS = {
    "adamw": {"kind": "adamw", "learning_rate": 5e-3, "weight_decay": 0.02},
    "adam": {"kind": "adam", "learning_rate": 5e-3},
    "sgd": {"kind": "sgd", "learning_rate": 0.05, "momentum": 0.9},
}
# A membrane this near to the threshold, or to an end of the window, may rightly fall on either side in float32: such a
# seed shows nothing.
MARGIN = 2e-6


def torch_optimizer(settings, weights, biases):
    groups = [
        {"params": weights, "weight_decay": settings.get("weight_decay", 0.0)},
        {"params": biases, "weight_decay": 0.0},
    ]
    if settings["kind"] == "sgd":
        return torch.optim.SGD(groups, lr=settings["learning_rate"], momentum=settings["momentum"])
    kind = torch.optim.AdamW if settings["kind"] == "adamw" else torch.optim.Adam
    return kind(groups, lr=settings["learning_rate"], betas=(0.9, 0.999), eps=1e-8)


def smallest_margin(trace):
    """The least distance of any spiking neuron's membrane from where it would spike, or enter or leave the window."""
    least = math.inf
    for layer, spikes, membranes in trace:
        if spikes is None:
            continue
        edges = [layer["threshold"]] + [edge * layer["threshold"] for edge in layer["window"] if math.isfinite(edge)]
        least = min([least] + [(membranes - edge).abs().min().item() for edge in edges])
    return least


def torch_losses(description, parameters, inputs, labels):
    """The losses before each step, and the smallest margin on the way."""
    tensors = {name: torch.from_numpy(array.copy()).double() for name, array in parameters.items()}
    weights = [t.requires_grad_() for name, t in tensors.items() if name.endswith("weight")]
    biases = [t.requires_grad_() for name, t in tensors.items() if name.endswith(".bias")]
    optimizer = torch_optimizer(description["optimizer"], weights, biases)
    losses, margin = [], math.inf
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss, trace = dense_torch.run(description, tensors, torch.from_numpy(inputs).double(), torch.from_numpy(labels))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        margin = min(margin, smallest_margin(trace))
    return losses, margin


@pytest.mark.parametrize("chunk", (0, 6), ids=("whole", "chunks"))
@pytest.mark.parametrize("recurrent", (False, True), ids=("feedforward", "recurrent"))
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_ten_training_steps_follow_pytorch(reference_tool, tmp_path, kind, recurrent, chunk):
    hidden = {"size": 24, "window": [0.5, 1.5], "surrogate_beta": 5.0, "recurrent": recurrent}
    layers = [hidden, {**hidden, "size": 18}, {"neuron": "li", "size": 5}]
    description = cases.network(layers, steps=20, channels=30, optimizer=OPTIMIZERS[kind], bptt_steps=chunk)
    for seed in range(50):
        batch = cases.draw(description, samples=4, seed=seed)
        losses, margin = torch_losses(description, *batch)
        if margin > MARGIN:
            break
    else:
        pytest.fail("no seed keeps the membranes off the thresholds")
    assert losses[-1] < 0.9 * losses[0]  # it learns: the steps do something
    found = reference.training_losses(reference_tool, tmp_path, description, *batch, steps=STEPS)
    assert found == pytest.approx(losses, rel=1e-4)
