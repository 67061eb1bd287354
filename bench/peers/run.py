"""Trains the same networks in Spikeloom and in its peers, interleaved, and compares them: see scripts/bench-peers."""

import argparse
import datetime
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
from pathlib import Path

from registry import PEERS
from report import cpu_name, write_json

ROOT = Path(__file__).resolve().parents[2]
RECURRENT_NETS = ("shd-rnn", "shd-rnn-small")
NETS = ("nmnist-mlp", "shd-mlp", "gesture-mlp", "wide", "small", *RECURRENT_NETS)
KEPT_OF_FIRST_ROUND = (
    "memory_after_import_bytes",
    "losses",
    "activity",
    "active_fraction",
    "first_step_s",
    "versions",
)
# fp32 programs must agree for so many training steps within so much: the fifth has the gradients and the optimiser of
# four in it. Later on they need not: their sums have another order, a membrane within an ulp of the threshold then spikes
# in one and not in the other, and that grows. On nmnist-mlp PyTorch's own two ways (step by step, layer by layer) part at
# step 11 and differ by 0.005 at step 20. With more time steps it comes sooner (1,000: at the second training step), so
# longer networks are checked on their first hundred.
STEPS_ALIKE = 5
LOSS_TOLERANCE = 1e-4
LOSS_STEPS = 12  # training steps whose losses are compared
CHECKED_TIME_STEPS = 100


def arguments_of(argv):
    def listed(convert):
        return lambda text: [convert(item) for item in text.split(",")]

    parser = argparse.ArgumentParser(prog="scripts/bench-peers", description=__doc__)
    parser.add_argument("--net", type=listed(str), default=list(NETS), help="one or more of " + ", ".join(NETS))
    parser.add_argument("--activity", type=listed(float), default=[0.02], help="spikes per hidden neuron and step")
    parser.add_argument("--input-activity", type=float, help="spikes per channel and step (default: the net's)")
    parser.add_argument("--threads", type=listed(int), default=[1, 2])
    parser.add_argument("--peers", type=listed(str), default=list(PEERS), help="default: all, " + ", ".join(PEERS))
    parser.add_argument("--seconds", type=float, default=3.0, help="timed per peer and round, at least (default 3)")
    parser.add_argument("--rounds", type=int, default=3, help="how often all of them are measured in turn (default 3)")
    parser.add_argument("--batch", type=int, help="samples in a batch (default: the net's)")
    parser.add_argument("--steps", type=int, help="time steps (default: the net's)")
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds until a peer is given up (default 1800)")
    parser.add_argument("--out", type=Path, default=ROOT / "build/bench/peers.json", help="where the JSON goes")
    parser.add_argument("--spikeloom", type=Path, default=ROOT / "build/release/spikeloom")
    parser.add_argument("--python", type=Path, default=ROOT / ".venv-peers/bin/python")
    options = parser.parse_args(argv)
    for kind, given, known in (("--net", options.net, NETS), ("--peers", options.peers, PEERS)):
        for name in given:
            if name not in known:
                parser.error(f"{kind} {name}: known are {', '.join(known)}")
    return options


def run_json(command, threads, timeout):
    """The JSON object that `command` prints last, run on the first `threads` cores; {"error": ...} where it fails."""
    cores = sorted(os.sched_getaffinity(0))[:threads]
    try:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that what it started ends with it
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
    except OSError as error:
        return {"error": str(error)}
    try:
        stdout, stderr = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"error": f"gave up after {timeout:.0f} s"}
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    lines = [line for line in stdout.splitlines() if line.startswith("{")]
    if process.returncode == 0 and lines:
        return json.loads(lines[-1])
    said = [line for line in stderr.splitlines() if line.strip()]
    return {"error": said[-1].strip() if said else f"ended with code {process.returncode} and said nothing"}


def network_options(options, net, activity, steps=None):
    command = ["--net", net, "--activity", activity]
    for name in ("input_activity", "batch", "steps"):
        value = steps if name == "steps" and steps else getattr(options, name)
        if value is not None:
            command += ["--" + name.replace("_", "-"), value]
    return command


def measure_spikeloom(options, net, activity, threads, seconds, steps=None):
    """Spikeloom's sparse mode in both precisions, and its dense mode."""
    command = [options.spikeloom, "bench", "train", *network_options(options, net, activity, steps)]
    command += ["--threads", threads, "--seconds", seconds, "--no-dense", "--json"]

    def measured(*more):
        return run_json([*command, *more], threads, options.timeout)

    return {
        "spikeloom": measured(),
        "spikeloom-bf16": measured("--precision", "bf16"),
        "spikeloom-dense": measured("--mode", "dense"),
    }


def measure_peer(options, name, case, threads, seconds, loss_steps):
    command = [options.python, "-W", "ignore", Path(__file__).parent / "measure.py", name, case]
    command += ["--threads", threads, "--seconds", seconds, "--loss-steps", loss_steps]
    return run_json(command, threads, options.timeout)


def summary_of(rounds):
    """Medians over the rounds; the ratio is that of the rounds, for each has its own clock."""
    summaries = []
    for name in rounds[0]:
        results = [measured[name] for measured in rounds]
        row = {"name": name, "precision": "bf16" if name.endswith("-bf16") else "fp32"}
        failed = next((result for result in results if "error" in result), None)
        if failed:
            summaries.append(row | {"error": failed["error"]})
            continue
        row["samples_per_s"] = statistics.median(result["samples_per_s"] for result in results)
        row["peak_memory_bytes"] = max(result["peak_memory_bytes"] for result in results)
        for key in KEPT_OF_FIRST_ROUND:
            if key in results[0]:
                row[key] = results[0][key]
        if all("error" not in measured["spikeloom"] for measured in rounds):
            row["spikeloom_is_faster_by"] = statistics.median(
                measured["spikeloom"]["samples_per_s"] / measured[name]["samples_per_s"] for measured in rounds
            )
        summaries.append(row)
    return summaries


def steps_alike(losses, reference):
    """How many training steps it takes until the losses first differ by more than the tolerance."""
    pairs = zip(losses, reference, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if not abs(a - b) <= LOSS_TOLERANCE), min(len(losses), len(reference)))


def check_losses(summaries):
    """Says of every row for how many steps its losses are Spikeloom's (or, without it, the first row's), and names the
    fp32 rows where that is too few."""
    rows = [row for row in summaries if row.get("losses")]
    wrong = []
    for row in rows:
        row["steps_alike"] = steps_alike(row["losses"], rows[0]["losses"])
        if row["precision"] == "fp32" and row["steps_alike"] < STEPS_ALIKE:
            wrong.append(f"{row['name']} has the losses of {rows[0]['name']} for {row['steps_alike']} steps only")
    return wrong


def table_of(summaries):
    lines = [
        "| program | precision | samples/s | Spikeloom is faster by | peak MB | loss at step 1 | steps alike |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]

    def number(value, form):
        return "-" if value is None else format(value, form)

    for row in sorted(summaries, key=lambda row: -row.get("samples_per_s", 0.0)):
        if "error" in row:
            lines.append(f"| {row['name']} | {row['precision']} | not measured: {row['error']} | | | | |")
            continue
        speed = row["samples_per_s"]
        lines.append(
            f"| {row['name']} | {row['precision']} | {speed:.{0 if speed >= 100 else 1}f} "
            f"| {number(row.get('spikeloom_is_faster_by'), '.2f')} | {row['peak_memory_bytes'] / 1e6:.0f} "
            f"| {row['losses'][0]:.5f} | {row['steps_alike']} |"
        )
    return "\n".join(lines)


def export_case(options, net, activity, steps=None):
    case = ROOT / f"build/bench/{net}-{activity}-{steps or 'all'}.safetensors"
    case.parent.mkdir(parents=True, exist_ok=True)
    command = [options.spikeloom, "bench", "train", *network_options(options, net, activity, steps), "--export", case]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"bench-peers: {done.stderr.strip()}")
    return case


def say(round_number, name, result):
    speed = result.get("error") or f"{result['samples_per_s']:.1f} samples/s"
    print(f"bench-peers: round {round_number + 1}, {name}: {speed}", file=sys.stderr, flush=True)


def check_on_fewer_steps(options, net, activity, threads, measured):
    """Puts the losses of the first time steps in place of those of all, where a network has more than are checked."""
    if measured["spikeloom"].get("steps", 0) <= CHECKED_TIME_STEPS:
        return
    case = export_case(options, net, activity, CHECKED_TIME_STEPS)
    short = measure_spikeloom(options, net, activity, threads, 0.1, CHECKED_TIME_STEPS)
    for name, result in measured.items():
        if "error" in result:
            continue
        if name in PEERS:
            short[name] = measure_peer(options, name, case, threads, 0, LOSS_STEPS)
        result["losses"] = short[name].get("losses")
    case.unlink()


def compare(options, net, activity, threads, case):
    rounds = []
    for number in range(options.rounds):
        measured = measure_spikeloom(options, net, activity, threads, options.seconds)
        for name, result in measured.items():
            say(number, name, result)
        for name in options.peers:
            if net in RECURRENT_NETS and not PEERS[name].recurrent:
                continue
            if number > 0 and "error" in rounds[0][name]:  # it would only fail again
                measured[name] = rounds[0][name]
                continue
            few = measured["spikeloom"].get("steps", 0) <= CHECKED_TIME_STEPS
            loss_steps = LOSS_STEPS if number == 0 and few else 0
            measured[name] = measure_peer(options, name, case, threads, options.seconds, loss_steps)
            say(number, name, measured[name])
        rounds.append(measured)
    check_on_fewer_steps(options, net, activity, threads, rounds[0])
    summaries = summary_of(rounds)
    return {
        "net": net,
        "activity": activity,
        "threads": threads,
        "rows": summaries,
        "losses_that_differ": check_losses(summaries),
        "rounds": rounds,
    }


def main(argv):
    options = arguments_of(argv)
    results = {
        "date": datetime.date.today().isoformat(),
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "command": "scripts/bench-peers " + " ".join(argv),
        "comparisons": [],
    }
    differ = False
    for net in options.net:
        for activity in options.activity:
            case = export_case(options, net, activity)
            for threads in options.threads:
                comparison = compare(options, net, activity, threads, case)
                results["comparisons"].append(comparison)
                write_json(options.out, results)
                print(f"\n{net}, hidden activity {activity}, {threads} threads, {results['cpu']}, {results['date']}\n")
                print(table_of(comparison["rows"]))
                for line in comparison["losses_that_differ"]:
                    print(f"LOSS DIFFERS: {line}")
                    differ = True
            case.unlink()
    print(f"\nwritten: {options.out}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
