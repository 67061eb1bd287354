"""How training time follows events, and memory follows spikes: see scripts/bench-scaling."""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/peers"))
from report import cpu_name, write_json  # noqa: E402

WIDTH, STEPS, BATCH, ACTIVITY = 1024, 100, 48, 0.01
VARIED = {
    "activity": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2),
    "width": (256, 512, 1024, 2048, 4096, 8192),
    "steps": (10, 30, 100, 300, 1000, 2000),
    "batch": (1, 4, 16, 48, 128, 256),
}
LABELS = {
    "activity": "spikes per neuron and step",
    "width": "neurons per layer",
    "steps": "time steps",
    "batch": "samples per batch",
}
MEMORY_STEPS = (100, 200, 500, 1000, 2000)


def spikeloom(options, net, steps, batch, activity, seconds):
    command = [options.spikeloom, "bench", "train", "--net", net, "--steps", steps, "--batch", batch]
    command += ["--activity", activity, "--input-activity", activity, "--threads", options.threads]
    command += ["--seconds", seconds, "--no-dense", "--json"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"bench-scaling: {done.stderr.strip()}")
    return json.loads(done.stdout)


def net_of(width):
    return f"{width}-{width}-{width}-10"


def synaptic_operations(result, width):
    """Per sample: forward and weight gradient for each input event, input gradient for each active neuron below."""
    steps = result["steps"]
    first = result["input_activity"] * width * width
    second = (2 * result["activity"]["hidden1"] + result["active_fraction"]["hidden1"]) * width * width
    readout = (2 * result["activity"]["hidden2"] + result["active_fraction"]["hidden2"]) * width * 10
    return steps * (2 * first + second + readout)


def measure(options, vary):
    rows = []
    for value in VARIED[vary]:
        setting = {"width": WIDTH, "steps": STEPS, "batch": BATCH, "activity": ACTIVITY} | {vary: value}
        results = [
            spikeloom(
                options,
                net_of(setting["width"]),
                setting["steps"],
                setting["batch"],
                setting["activity"],
                options.seconds,
            )
            for _ in range(options.rounds)
        ]
        result = results[0]
        operations = synaptic_operations(result, setting["width"])
        ms = statistics.median(r["ms_per_batch"] for r in results) / setting["batch"]
        update = statistics.median(r["phases"]["update"] for r in results) / setting["batch"]
        rows.append(
            {
                vary: value,
                "activity_measured": result["activity"]["hidden1"],
                "operations_per_sample": operations,
                "ms_per_sample": ms,
                "update_ms_per_sample": update,
                "ps_per_operation": 1e9 * (ms - update) / operations,
            }
        )
        print(f"bench-scaling: {vary} {value}: {ms:.4f} ms a sample", file=sys.stderr, flush=True)
    return rows


def table_of(vary, rows):
    lines = [
        f"| {LABELS[vary]} | synaptic operations a sample | ms a sample | of it update | ps an operation without update |",
        "|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        lines.append(
            f"| {row[vary]} | {row['operations_per_sample']:.3g} | {row['ms_per_sample']:.4f} "
            f"| {row['update_ms_per_sample']:.4f} | {row['ps_per_operation']:.1f} |"
        )
    return "\n".join(lines)


def plot(all_rows, path):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "spikeloom"  # the same figures make the same file
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(all_rows), figsize=(3.6 * len(all_rows), 3.2), layout="constrained")
    for axis, (vary, rows) in zip([axes] if len(all_rows) == 1 else axes, all_rows.items(), strict=True):
        values = [row[vary] for row in rows]
        times = [row["ms_per_sample"] for row in rows]
        axis.loglog(values, times, "o-", label="whole step")
        busiest = rows[-1]
        cost = (busiest["ms_per_sample"] - busiest["update_ms_per_sample"]) / busiest["operations_per_sample"]
        axis.loglog(values, [cost * row["operations_per_sample"] for row in rows], "--", label="in proportion to events")
        axis.set_xlabel(LABELS[vary])
        axis.set_ylabel("ms a sample")
        axis.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def measure_memory(options):
    """Peak memory of a process on gesture-mlp over the number of steps, Spikeloom's and PyTorch's (a GEMM per layer)."""
    rows = []
    for steps in MEMORY_STEPS:
        result = spikeloom_memory(options, steps)
        torch = torch_memory(options, steps)
        rows.append({"steps": steps, "spikeloom_bytes": result, "torch_bytes": torch})
        print(f"bench-scaling: {steps} steps: {result / 1e6:.0f} MB, PyTorch {torch / 1e6:.0f} MB", file=sys.stderr)
    return rows


def memory_command(options, steps):
    command = [options.spikeloom, "bench", "train", "--net", "gesture-mlp", "--activity", ACTIVITY]
    return [str(part) for part in [*command, "--steps", steps, "--threads", options.threads]]


def spikeloom_memory(options, steps):
    command = [*memory_command(options, steps), "--seconds", "0.1", "--no-dense", "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["peak_memory_bytes"]


def torch_memory(options, steps):
    case = ROOT / f"build/bench/gesture-{steps}.safetensors"
    case.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([*memory_command(options, steps), "--export", str(case)], capture_output=True, check=True)
    command = [sys.executable, ROOT / "bench/peers/measure.py", "torch-layers", case, "--seconds", "0"]
    command += ["--loss-steps", "0", "--threads", options.threads]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
    case.unlink()
    return json.loads(done.stdout.splitlines()[-1])["peak_memory_bytes"]


def memory_table(rows):
    lines = ["| time steps | Spikeloom, MB | PyTorch, MB | ratio |", "|---:|---:|---:|---:|"]
    for row in rows:
        mine, torch = row["spikeloom_bytes"], row["torch_bytes"]
        lines.append(f"| {row['steps']} | {mine / 1e6:.0f} | {torch / 1e6:.0f} | {torch / mine:.1f} |")
    return "\n".join(lines)


def main(argv):
    parser = argparse.ArgumentParser(prog="scripts/bench-scaling", description=__doc__)
    choices = [*VARIED, "memory"]
    parser.add_argument("--vary", choices=choices, action="append", help="default: all of them")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="timed per point and round, at least (default 1)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=ROOT / "build/bench/scaling.json")
    parser.add_argument("--plot", type=Path, default=ROOT / "docs/figures/scaling.svg")
    parser.add_argument("--spikeloom", type=Path, default=ROOT / "build/release/spikeloom")
    options = parser.parse_args(argv)
    chosen = options.vary or choices

    results = {
        "date": datetime.date.today().isoformat(),
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "command": "scripts/bench-scaling " + " ".join(argv),
    }
    varied = {}
    for vary in chosen:
        if vary == "memory":
            results[vary] = measure_memory(options)
            print("\n" + memory_table(results[vary]) + "\n")
        else:
            results[vary] = varied[vary] = measure(options, vary)
            print("\n" + table_of(vary, varied[vary]) + "\n")
        write_json(options.out, results)
    if varied:
        options.plot.parent.mkdir(parents=True, exist_ok=True)
        plot(varied, options.plot)
        print(f"written: {options.plot}")
    print(f"written: {options.out}")


if __name__ == "__main__":
    main(sys.argv[1:])
