"""docs/paper.md and its figures, from the results."""

import datetime
import json
import os
import textwrap

import curves
import verdict
from experiment import ROOT, VARIANTS
from results import REACHED, SLOWEST
from verdict import joined, percent

INTRODUCTION = f"""\
# The paper's own experiment

Written by `scripts/paper`; do not edit.

[Finkbeiner et al. (AAAI 2024)](https://arxiv.org/abs/2311.04386), whose idea Spikeloom follows, say that sparse
activations in the forward and in the backward pass neither slow convergence down much nor cost accuracy. They show it
with one program, and speed with another; here both are one. In detail their claim is taken to be that training with
true-length lists, compared with the full surrogate,

- ends at an accuracy that is not below all seeds of the full surrogate, and
- takes at most {SLOWEST:g} times as many epochs to {percent(REACHED, 0)} of the full surrogate's final accuracy.

"""

WHAT_RUNS = """\
## What was run

Nets, loss, readout, initialisation, annealing of the window and optimiser are the study's; the configurations in
`examples/paper` say where they differ. Besides:

- Accuracy is that of the **last** epoch on recordings that training never sees. The study took the best epoch on the
  test set; here nothing is chosen.
- The study has the second threshold in its dense baseline too, so its baseline is what is called true-length lists
  here. The full surrogate has none, and no annealing.

"""

COLUMNS = (
    "variant",
    "seeds",
    "final accuracy, %",
    "lowest to highest",
    "epochs to {target}",
    "times as many",
    "spikes, %",
    "active, %",
    "spikes dropped, %",
    "gradients dropped, %",
    "samples per processor-second",
)

LEGEND = """\
Mean and sample standard deviation over seeds. *Spikes* and *active*: of a hidden layer's neurons in a step, how many
spike, and how many have a surrogate gradient, before a fixed list cuts them, in the last epoch's training. *Dropped*:
of the spikes, and of the neurons that are active without a spike, how many found no room in a fixed list. The last
column is the speed of training by processor time of all threads together, median over epochs."""


def command_of(options):
    words = ["scripts/paper"]
    if "nmnist" in [task.name for task in options.sets]:
        words.append("--nmnist FOLDER")
    if options.full:
        words.append("--full")
    elif options.samples != options.defaults["samples"]:
        words.append(f"--samples {options.samples}")
    if not options.full and options.epochs != options.defaults["epochs"]:
        words.append(f"--epochs {options.epochs}")
    for name in ("sets", "variants", "seeds"):
        if getattr(options, name) != options.defaults[name]:
            words.append(f"--{name} {','.join(str(getattr(value, 'name', value)) for value in getattr(options, name))}")
    return " ".join(words)


def environments(runs):
    """What the run folders say of the machines that they were made on: text, most of it once."""
    folders = [run.folder for run in runs if (run.folder / "environment.json").exists() and run.metrics.exists()]
    if not folders:
        return "Nothing was run yet."
    found = [json.loads((folder / "environment.json").read_text()) for folder in folders]
    dates = sorted({datetime.date.fromtimestamp((folder / "metrics.jsonl").stat().st_mtime) for folder in folders})
    machines = joined(sorted({f"{e['cpu']}, {e['threads']} thread{'s' if e['threads'] > 1 else ''}" for e in found}))
    versions = joined(sorted({f"{e['spikeloom']}, compiler {e['compiler']}" for e in found}))
    between = dates[0].isoformat() if len(dates) == 1 else f"{dates[0].isoformat()} to {dates[-1].isoformat()}"
    return f"On {machines}; Spikeloom {versions}; {between}."


def figures(values, digits):
    return ", ".join(f"{100 * value:.{digits}f}" for value in values.values()) if values is not None else ""


def row_of(result, comparison):
    cells = [result.variant.title]
    trained, wanted = len(result.curves), len(result.curves) + len(result.failed) + len(result.missing)
    cells.append(str(trained) if trained == wanted else f"{trained} of {wanted}")
    if not result.complete:
        state = "numbers failed" if result.failed else "not trained to the end"
        return [*cells, state, *[""] * (len(COLUMNS) - 3)]
    deviation = "" if result.deviation is None else f" +- {100 * result.deviation:.1f}"
    cells.append(f"{100 * result.accuracy:.1f}{deviation}")
    cells.append(f"{100 * min(result.finals):.1f} to {100 * max(result.finals):.1f}")
    if comparison is None:
        cells += ["", ""]
    elif comparison.epochs is None:
        reached = [epochs for epochs in result.epochs_until(comparison.target) if epochs is not None]
        cells += [f"reached by {len(reached)} of {trained}", ""]
    else:
        cells += [f"{comparison.epochs:.1f}", "" if comparison.slower is None else f"{comparison.slower:.2f}"]
    cells += [figures(result.by_layer("activity"), 2), figures(result.by_layer("active_fraction"), 2)]
    cells += [figures(result.by_layer(key), 1) for key in ("dropped_spikes", "dropped_gradients")]
    cells.append("" if result.samples_per_second is None else f"{result.samples_per_second:.0f}")
    return cells


def table_of(results, task):
    rows, target = [], None
    for (name, variant), result in results.items():
        if name != task.name:
            continue
        comparison = verdict.compare(results, task.name, variant)
        target = comparison.target if comparison else target
        rows.append(row_of(result, comparison))
    heads = [head.format(target=percent(target) if target is not None else "the target") for head in COLUMNS]
    lines = [heads, ["---", *["---:"] * (len(COLUMNS) - 1)], *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def figure_of(results, task, folder):
    """Writes the set's curves; the line that shows them, empty where there are none."""
    mine = [result for (name, _), result in results.items() if name == task.name and result.complete]
    if not mine:
        return ""
    path = folder / "figures" / f"paper-{task.name}.svg"
    title = f"{task.title}: accuracy on held-out recordings"
    write_whole(path, curves.draw(title, [(result.variant.title, list(result.curves.values())) for result in mine]))
    return f"![Accuracy over epochs on {task.title}](figures/{path.name})\n\n"


def section_of(results, task, recordings, folder):
    epochs = next(result.epochs for (name, _), result in results.items() if name == task.name)
    error = 100 * (0.25 / recordings.test_samples) ** 0.5
    layers = "-".join(str(layer["size"]) for layer in task.configuration()["layers"])
    hidden = joined(layer["name"] for layer in task.spiking_layers())
    what = (
        f"`{task.config.relative_to(ROOT)}` (channels-{layers}), {recordings.train_samples} recordings to train on and "
        f"{recordings.test_samples} held out, {verdict.count(epochs, 'epoch')}. They are {recordings.origin}. With so "
        f"many held out, one accuracy has a standard error of at most {error:.1f} points."
    )
    return (
        f"## {task.title}\n\n"
        f"{wrapped(what)}\n\n"
        f"{wrapped(verdict.of_set(results, task))}\n\n"
        f"{figure_of(results, task, folder)}"
        f"{table_of(results, task)}\n\n"
        f"Two figures in a cell are those of {hidden}.\n"
    )


def wrapped(text):
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def write_whole(path, text):
    """Written beside and renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".part")
    with open(beside, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def write_page(options, runs, results, recordings, skipped):
    """`recordings`: set's name -> Recordings; `skipped`: set's name -> why it is left out."""
    tasks = [task for task in options.sets if task.name in recordings]
    variants = "\n".join(f"- **{v.title}**: {v.meaning}." for v in VARIANTS.values() if v in options.variants)
    unheard = [task.title for task in options.sets if task.name in skipped]
    left_out = "".join(f"\n{title} was left out: there were no recordings of it.\n" for title in unheard)
    text = (
        INTRODUCTION
        + f"{wrapped(verdict.overall(results, tasks))}\n\n" * bool(tasks)
        + WHAT_RUNS
        + f"Variants, each with the seeds {joined(map(str, options.seeds))}:\n\n{variants}\n\n"
        + f"{wrapped(environments(runs))}\n\n    {command_of(options)}\n{left_out}\n"
        + f"{LEGEND}\n"
        + "".join("\n" + section_of(results, task, recordings[task.name], options.out) for task in tasks)
    )
    write_whole(options.out / "paper.md", text)
    return options.out / "paper.md"
