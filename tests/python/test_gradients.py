"""The float64 dense reference of the project agrees with PyTorch's autograd."""

import math

import numpy as np
import pytest

import cases
import reference

torch = pytest.importorskip("torch", reason="PyTorch is not installed (Debian: python3-torch)")
dense_torch = pytest.importorskip("dense_torch")

RESETS = ("zero", "subtract", "subtract_after_decay", "none")
# Windows are in units of the threshold. Triangle, box and quadratic end by themselves; a window may cut them further.
SURROGATES = (
    {"surrogate": "superspike", "surrogate_beta": 10.0, "window": [0.9, math.inf]},
    {"surrogate": "superspike", "surrogate_beta": 25.0, "window": [-math.inf, math.inf]},
    {"surrogate": "superspike", "surrogate_beta": 3.0, "window": [0.5, 1.5]},
    {"surrogate": "triangle", "surrogate_gamma": 0.3, "window": [-math.inf, math.inf]},
    {"surrogate": "triangle", "surrogate_gamma": 1.0, "window": [0.4, 1.2]},
    {"surrogate": "box", "window": [-math.inf, math.inf]},
    {"surrogate": "box", "window": [0.9, 1.3]},
    {"surrogate": "quadratic", "surrogate_beta": 1.5, "window": [-math.inf, math.inf]},
    {"surrogate": "arctan", "surrogate_beta": 2.0, "window": [-math.inf, math.inf]},
    {"surrogate": "arctan", "surrogate_beta": 4.0, "window": [0.0, 2.0]},
)
READOUTS = ({"neuron": "li"}, {"neuron": "linear"})
OVER = ("steps", "steps_sum", "softmax_sum", "mean", "max", "last")
LOSSES = tuple({"kind": kind, "over": over} for kind in ("cross_entropy", "squared_error") for over in OVER)
COUNT_LOSSES = ({"kind": "spike_count"}, {"kind": "squared_error"})
HIDDEN = {"threshold": 0.7, "surrogate": "arctan", "surrogate_beta": 2.0, "window": [-math.inf, math.inf]}


def check(tool, folder, description, samples=6, seed=1, **how):
    """Compares loss and every gradient. That of the first layer must not be nothing, or nothing was compared."""
    parameters, inputs, labels = cases.draw(description, samples, seed, **how)
    tensors = {name: torch.from_numpy(array).double() for name, array in parameters.items()}
    learned = {f"{layer['name']}.{key}" for layer in description["layers"] for key in layer["learn"]}
    constant = {f"{layer['name']}.{key}" for layer in description["layers"] for key in cases.CONSTANTS} - learned
    trained = {name: t.requires_grad_() for name, t in tensors.items() if name not in constant}
    loss, _ = dense_torch.run(description, tensors, torch.from_numpy(inputs).double(), torch.from_numpy(labels))
    loss.backward()

    found_loss, found = reference.gradients(tool, folder, description, parameters, inputs, labels)
    assert found_loss == pytest.approx(loss.item(), rel=1e-7)
    assert set(found) == set(trained)
    assert trained[description["layers"][0]["name"] + ".weight"].grad.abs().max() > 0.0
    for name, tensor in trained.items():
        expected = tensor.grad.numpy()
        assert found[name].shape == expected.shape, name
        size = np.linalg.norm(expected)
        error = np.linalg.norm(found[name] - expected)
        assert error <= 1e-5 * size, f"{name}: off by {error:.2e} of {size:.2e}"


@pytest.mark.parametrize("reset_gradient", (False, True), ids=("detached", "full"))
@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.parametrize("chosen", range(len(SURROGATES)), ids=lambda i: f"{SURROGATES[i]['surrogate']}{i}")
def test_every_surrogate_with_every_reset(reference_tool, tmp_path, chosen, reset, reset_gradient):
    lif = {**SURROGATES[chosen], "size": 17, "threshold": 0.8, "reset": reset, "reset_gradient": reset_gradient}
    description = cases.network([lif, {"neuron": "li", "size": 4}], steps=20, channels=12)
    check(reference_tool, tmp_path, description, seed=chosen)


@pytest.mark.parametrize("readout", READOUTS, ids=lambda r: r["neuron"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: f"{x['kind']}-{x['over']}")
def test_every_loss_of_membranes(reference_tool, tmp_path, readout, loss):
    layers = [{**HIDDEN, "size": 20}, {**readout, "size": 5}]
    check(reference_tool, tmp_path, cases.network(layers, steps=15, channels=10, loss=loss))


@pytest.mark.parametrize("over", OVER)
def test_label_smoothing(reference_tool, tmp_path, over):
    layers = [{**HIDDEN, "size": 20}, {"neuron": "li", "size": 5}]
    loss = {"over": over, "label_smoothing": 0.1}
    check(reference_tool, tmp_path, cases.network(layers, steps=15, channels=10, loss=loss))


@pytest.mark.parametrize("loss", COUNT_LOSSES, ids=lambda x: x["kind"])
def test_every_loss_of_spike_counts(reference_tool, tmp_path, loss):
    layers = [{**HIDDEN, "size": 20}, {**HIDDEN, "size": 5}]
    check(reference_tool, tmp_path, cases.network(layers, steps=15, channels=10, loss=loss))


def test_linear_layer_over_a_leaky_integrator(reference_tool, tmp_path):
    layers = [{**HIDDEN, "size": 20}, {"neuron": "li", "size": 9}, {"neuron": "linear", "size": 5, "bias": False}]
    check(reference_tool, tmp_path, cases.network(layers, steps=15, channels=10))


@pytest.mark.parametrize("neuron", ("li", "linear"))
def test_network_without_spiking_layers(reference_tool, tmp_path, neuron):
    check(reference_tool, tmp_path, cases.network([{"neuron": neuron, "size": 5}], steps=15, channels=10))


@pytest.mark.parametrize("gain", (1.0, 20.0))
@pytest.mark.parametrize("scaling", ("none", "leak"))
def test_input_gain_and_scaling(reference_tool, tmp_path, gain, scaling):
    how = {"input_gain": gain, "input_scaling": scaling}
    description = cases.network(
        [{**HIDDEN, **how, "size": 20}, {**how, "neuron": "li", "size": 5}], steps=15, channels=10
    )
    check(reference_tool, tmp_path, description)


@pytest.mark.parametrize(
    "rates",
    ({"rate_lower": 0.9, "rate_lower_weight": 3.0}, {"rate_upper": 0.05, "rate_upper_weight": 3.0}),
    ids=("lower", "upper"),
)
def test_rate_regularisers(reference_tool, tmp_path, rates):
    layers = [{**HIDDEN, **rates, "size": 20}, {**HIDDEN, **rates, "size": 12}, {"neuron": "li", "size": 5}]
    check(reference_tool, tmp_path, cases.network(layers, steps=15, channels=10))


@pytest.mark.parametrize("spiking_layers", (1, 2, 3, 4))
@pytest.mark.parametrize("steps", (1, 2, 7, 50))
@pytest.mark.parametrize("reset_gradient", (False, True), ids=("detached", "full"))
def test_depth_and_time(reference_tool, tmp_path, spiking_layers, steps, reset_gradient):
    sizes = (65, 33, 20, 64)[:spiking_layers]
    layers = [
        {**HIDDEN, "size": size, "reset": RESETS[i], "reset_gradient": reset_gradient} for i, size in enumerate(sizes)
    ]
    description = cases.network(layers + [{"neuron": "li", "size": 6}], steps=steps, channels=40)
    check(reference_tool, tmp_path, description, samples=3, seed=steps)


@pytest.mark.parametrize("spiking_layers", (1, 2, 3))
@pytest.mark.parametrize("steps", (1, 2, 30))
@pytest.mark.parametrize("reset_gradient", (False, True), ids=("detached", "full"))
def test_recurrent_layers(reference_tool, tmp_path, spiking_layers, steps, reset_gradient):
    layers = [
        {**HIDDEN, "size": size, "reset": RESETS[i], "reset_gradient": reset_gradient, "recurrent": i != 1}
        for i, size in enumerate((40, 33, 20)[:spiking_layers])
    ]
    description = cases.network(layers + [{"neuron": "li", "size": 6}], steps=steps, channels=40)
    check(reference_tool, tmp_path, description, samples=3, seed=steps)


@pytest.mark.parametrize("recurrent", (False, True), ids=("feed-forward", "recurrent"))
@pytest.mark.parametrize("reset_gradient", (False, True), ids=("detached", "full"))
@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.parametrize("neuron", cases.HELD)
def test_every_neuron_and_its_learned_constants(reference_tool, tmp_path, neuron, reset, reset_gradient, recurrent):
    if neuron == "alif" and reset_gradient or neuron == "se_adlif" and reset == "subtract_after_decay":
        pytest.skip("the model does not have this")
    learn = [key for key in ("decay", "threshold", *cases.HELD[neuron]) if neuron != "if" or key != "decay"]
    scaling = "none" if neuron == "if" else "leak"
    spiking = {
        **HIDDEN, "neuron": neuron, "reset": reset, "reset_gradient": reset_gradient, "learn": learn,
        "recurrent": recurrent, "input_scaling": scaling, "input_gain": 5.0, "adapt_scaled": not recurrent,
    }  # fmt: skip
    layers = [{**spiking, "size": 21}, {**spiking, "size": 12, "input_scaling": "none", "input_gain": 1.0}]
    description = cases.network([*layers, {"neuron": "li", "size": 4}], steps=20, channels=12)
    check(reference_tool, tmp_path, description)


@pytest.mark.parametrize("chunk", (1, 3, 7, 19))
@pytest.mark.parametrize("recurrent", (False, True), ids=("feed-forward", "recurrent"))
@pytest.mark.parametrize("neuron", cases.HELD)
def test_truncation_is_what_detached_states_give(reference_tool, tmp_path, neuron, recurrent, chunk):
    learn = [key for key in ("decay", "threshold", *cases.HELD[neuron]) if neuron != "if" or key != "decay"]
    rates = {"rate_upper": 0.05, "rate_upper_weight": 3.0}
    spiking = {**HIDDEN, **rates, "neuron": neuron, "learn": learn, "recurrent": recurrent, "reset": "subtract"}
    layers = [{**spiking, "size": 21}, {**spiking, "size": 12}, {"neuron": "li", "size": 9}]
    description = cases.network(
        [*layers, {"neuron": "linear", "size": 4}], steps=20, channels=12, loss={"over": "mean"}, bptt_steps=chunk
    )
    check(reference_tool, tmp_path, description)


@pytest.mark.parametrize("over", OVER)
def test_truncation_with_every_loss(reference_tool, tmp_path, over):
    layers = [{**HIDDEN, "size": 20, "recurrent": True}, {"neuron": "li", "size": 5}]
    check(reference_tool, tmp_path, cases.network(layers, steps=15, channels=10, loss={"over": over}, bptt_steps=4))


FEEDBACK = (  # of three layers that spike: their inputs
    (["data", "layer2"], ["layer1"], ["layer2"]),
    (["layer3", "data"], ["layer1"], ["layer2"]),
    (["data", "layer2", "layer3"], ["layer3", "layer1", "data"], ["layer1", "layer2"]),
    (["layer2"], ["data", "layer3"], ["layer1"]),
)


@pytest.mark.parametrize("recurrent", (False, True), ids=("feedback", "and-recurrent"))
@pytest.mark.parametrize("neuron", cases.HELD)
@pytest.mark.parametrize("inputs", FEEDBACK, ids=range(len(FEEDBACK)))
def test_feedback(reference_tool, tmp_path, inputs, neuron, recurrent):
    layers = [
        {**HIDDEN, "size": size, "inputs": of_layer, "reset": RESETS[i % 2], "neuron": neuron, "recurrent": recurrent and i != 1,
         "learn": ["threshold"] if i == 1 else []}
        for i, (size, of_layer) in enumerate(zip((25, 19, 12), inputs, strict=True))
    ]  # fmt: skip
    description = cases.network([*layers, {"neuron": "li", "size": 6}], steps=20, channels=15)
    check(reference_tool, tmp_path, description, samples=3)


@pytest.mark.parametrize("steps", (1, 2, 30))
@pytest.mark.parametrize("reset_gradient", (False, True), ids=("detached", "full"))
def test_feedback_from_the_output_layer(reference_tool, tmp_path, steps, reset_gradient):
    hidden = {**HIDDEN, "size": 20, "inputs": ["data", "layer2"], "reset_gradient": reset_gradient}
    description = cases.network([hidden, {**HIDDEN, "size": 5}], steps=steps, channels=10, loss=COUNT_LOSSES[0])
    check(reference_tool, tmp_path, description)


def test_recurrent_output_layer(reference_tool, tmp_path):
    layers = [{**HIDDEN, "size": 20}, {**HIDDEN, "size": 5, "recurrent": True}]
    check(reference_tool, tmp_path, cases.network(layers, steps=15, channels=10, loss=COUNT_LOSSES[0]))


@pytest.mark.parametrize("seed", range(24))
def test_random_networks(reference_tool, tmp_path, seed):
    """Combinations that nobody thought of."""
    random = np.random.default_rng(1000 + seed)

    def pick(choices):
        return choices[random.integers(len(choices))]

    def spiking(size):
        rates = pick(({}, {"rate_lower": 0.3, "rate_lower_weight": 1.0}, {"rate_upper": 0.1, "rate_upper_weight": 1.0}))
        return {
            **pick(SURROGATES),
            **rates,
            "size": size,
            "threshold": float(random.uniform(0.3, 2.0)),
            "reset": pick(RESETS),
            "reset_gradient": bool(random.integers(2)),
            "bias": bool(random.integers(2)),
            "recurrent": bool(random.integers(2)),
            "input_gain": float(random.uniform(0.5, 3.0)),
            "input_scaling": pick(("none", "leak")),
        }

    classes = int(random.integers(2, 8))
    layers = [spiking(int(random.integers(1, 80))) for _ in range(random.integers(0, 4))]
    if random.random() < 0.3:
        # A wide surrogate at the end: spikes of a narrow one may all lie outside, and then there is nothing to compare.
        layers.append({**spiking(classes), **SURROGATES[8]})
        loss = pick(COUNT_LOSSES)
    else:
        layers.append({**pick(READOUTS), "size": classes, "bias": bool(random.integers(2))})
        loss = pick(LOSSES)
        loss = {**loss, "label_smoothing": pick((0.0, 0.2)) if loss["kind"] == "cross_entropy" else 0.0}
    description = cases.network(
        layers, steps=int(random.integers(1, 51)), channels=int(random.integers(1, 100)), loss=loss
    )
    check(reference_tool, tmp_path, description, samples=int(random.integers(1, 9)), seed=seed)
