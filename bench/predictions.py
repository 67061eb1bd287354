"""Predicted beside measured: what `spikeloom plan` says a training step takes, and what `spikeloom bench train` measures.

    bench/predictions.py [--binary build/release/spikeloom] [--nets nmnist-mlp,small] [--activities 0.01,0.02,0.05]
                         [--threads 1] [--rounds 3] [--seconds 1]

Of each case the median over rounds is taken. On one thread the measured time is the thread's own (cpu_ms_per_batch), so
that other work on the machine matters less; on more it is the wall clock's. Ends with 1 if a prediction is off by more
than 25 %.
"""

import argparse
import json
import statistics
import subprocess
import sys

NETS = ["nmnist-mlp", "shd-mlp", "gesture-mlp", "wide", "small"]
TOLERANCE = 0.25


def run(*command):
    result = subprocess.run([*map(str, command), "--json"], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {result.stderr.strip()}")
    return json.loads(result.stdout)


def measure(options, net, activity):
    keys = ["forward", "backward", "update", "data"]
    rounds = []
    for _ in range(options.rounds):
        report = run(options.binary, "bench", "train", "--net", net, "--activity", activity, "--threads", options.threads,
                     "--seconds", options.seconds, "--mode", "sparse", "--no-dense")
        total = report["cpu_ms_per_batch"] if options.threads == 1 else report["ms_per_batch"]
        rounds.append([total] + [report["phases"][key] for key in keys])
    values = [statistics.median(column) for column in zip(*rounds)]
    active = list(report["active_fraction"].values())
    return values, max(active)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/release/spikeloom")
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--activities", default="0.01,0.02,0.05")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    print("| net | activity | active | predicted ms | measured ms | ratio | forward | backward | update | limit/measured |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    worst = 0.0
    for net in options.nets.split(","):
        for activity in map(float, options.activities.split(",")):
            plan = run(options.binary, "plan", "--net", net, "--activity", activity, "--threads", options.threads)
            (total, *phases), active = measure(options, net, activity)
            predicted = plan["predicted"]
            ratio = predicted["ms_per_batch"] / total
            worst = max(worst, abs(ratio - 1.0))
            pairs = [f"{predicted['phases'][key]:.2f} / {value:.2f}" for key, value in zip(["forward", "backward", "update"], phases)]
            limit = 1000.0 * plan["batch"] / plan["limit_samples_per_s"] / total
            print(f"| {net} | {100 * activity:g} % | {100 * active:.1f} % | {predicted['ms_per_batch']:.2f} | {total:.2f} | "
                  f"{ratio:.2f} | {' | '.join(pairs)} | {limit:.2f} |", flush=True)
    print(f"\nworst: {100 * worst:.0f} % off")
    return 1 if worst > TOLERANCE else 0


if __name__ == "__main__":
    sys.exit(main())
