"""Trains a network in Spikeloom and in PyTorch until a test accuracy is reached: see scripts/bench-time-to-accuracy."""

import argparse
import datetime
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/peers"))

from report import cpu_name, write_json  # noqa: E402

PEERS = {"torch-layers": "layers", "torch-compile": "compile"}
# The check: so many training steps on one batch, slow ones, for fp32 sums in another order turn a spike now and then,
# and fast steps magnify what follows (docs/performance.md).
CHECK_STEPS = 5
CHECK_LEARNING_RATE = 1e-4
LOSS_TOLERANCE = 2e-3


def arguments_of(argv):
    def listed(convert):
        return lambda text: [convert(item) for item in text.split(",")]

    parser = argparse.ArgumentParser(prog="scripts/bench-time-to-accuracy", description=__doc__)
    parser.add_argument("config", nargs="?", type=Path, default=ROOT / "examples/fashion-mnist.toml")
    parser.add_argument("--train", type=Path, default=ROOT / "data/fashion-mnist/train.h5", help="SHD-layout HDF5 file")
    parser.add_argument("--test", type=Path, default=ROOT / "data/fashion-mnist/test.h5")
    parser.add_argument("--targets", type=listed(float), default=[0.85, 0.88], help="default 0.85,0.88")
    parser.add_argument("--programs", type=listed(str), default=["spikeloom", "torch-layers"], help="default: both")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, help="default: the configuration's; schedules end with the last")
    parser.add_argument("--seeds", type=listed(int), default=[1], help="one training each (default 1)")
    parser.add_argument("--limit", type=float, default=120.0, help="minutes for each training, all told (default 120)")
    parser.add_argument("--train-samples", type=int, help="only the first N (default: all)")
    parser.add_argument("--test-samples", type=int, help="only the first N (default: all)")
    parser.add_argument("--set", action="append", default=[], help="setting of the configuration, KEY=VALUE")
    parser.add_argument("--out", type=Path, default=ROOT / "build/bench/time-to-accuracy.json")
    parser.add_argument("--spikeloom", type=Path, default=ROOT / "build/release/spikeloom")
    parser.add_argument("--python", type=Path, default=ROOT / ".venv-peers/bin/python")
    options = parser.parse_args(argv)
    for name in options.programs:
        if name != "spikeloom" and name not in PEERS:
            parser.error(f"--programs {name}: known are spikeloom, {', '.join(PEERS)}")
    for path in (options.config, options.train, options.test):
        if not path.exists():
            parser.error(f"{path}: no such file (the configuration's first lines say how its data is made)")
    if options.epochs is None:
        options.epochs = tomllib.loads(options.config.read_text()).get("training", {}).get("epochs", 20)
    return options


class Bench:
    def __init__(self, options):
        self.options = options
        self.cores = sorted(os.sched_getaffinity(0))[: options.threads]
        self.work = ROOT / "build/bench/time-to-accuracy"
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        self.train = self.subset(options.train, options.train_samples, "train.h5")
        self.test = self.subset(options.test, options.test_samples, "test.h5")

    def start(self, command, **more):
        return subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, self.cores),
            **more,
        )

    def complete(self, command):
        process = self.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        stdout, stderr = process.communicate()
        if process.returncode != 0:
            raise SystemExit(f"bench-time-to-accuracy: {stderr.strip().splitlines()[-1]}")
        return stdout

    def subset(self, source, samples, name):
        """The file itself, or a file of its first recordings."""
        if samples is None:
            return source.resolve()
        target = self.work / name
        code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import spikes; spikes.write_subset"
        self.complete([self.options.python, "-c", f"{code}({str(source)!r}, {str(target)!r}, {samples})"])
        return target

    def spikeloom_command(self, run, train, test, seed, epochs):
        """The test set is given as the validation set: so each epoch's accuracy on it is in the run's metrics, and
        nothing else depends on it."""
        options = self.options
        command = [options.spikeloom, "train", options.config, "--out", run, "--seed", seed]
        command += ["--threads", options.threads, "--epochs", epochs]
        command += [part for setting in options.set for part in ("--set", setting)]
        return [*command, "--set", f"data.train={train}", "--set", f"data.validation={test}", "--set", "data.test="]

    def peer_command(self, name, run, train, test, epochs):
        return [
            *(self.options.python, "-W", "ignore", Path(__file__).parent / "peer.py", run),
            *("--train", train, "--test", test, "--variant", PEERS[name]),
            *("--epochs", epochs, "--threads", self.options.threads),
        ]

    def check(self, name, seed):
        """Whether the peer computes the same: losses of a few steps on one batch, which is an epoch of its own here."""
        start = self.work / "check-start"
        shutil.rmtree(start, ignore_errors=True)
        slowly = ["--set", f"optimizer.learning_rate={CHECK_LEARNING_RATE}"]
        self.complete([*self.spikeloom_command(start, self.train, self.test, seed, 0), *slowly])
        batch = tomllib.loads((start / "config.toml").read_text())["training"]["batch_size"]
        batch_file = self.subset(self.train, batch, "batch.h5")
        run = self.work / "check-run"
        shutil.rmtree(run, ignore_errors=True)
        command = self.spikeloom_command(run, batch_file, batch_file, seed, CHECK_STEPS)
        self.complete([*command, *slowly, "--init-from", start / "last.safetensors"])
        ours = [json.loads(line)["train_loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]
        lines = self.complete(self.peer_command(name, start, batch_file, batch_file, CHECK_STEPS)).splitlines()
        theirs = [line["train_loss"] for line in map(json.loads, lines) if line["epoch"] > 0]
        agree = len(ours) == len(theirs) == CHECK_STEPS and all(
            abs(a - b) <= LOSS_TOLERANCE for a, b in zip(ours, theirs, strict=True)
        )
        return {"program": name, "spikeloom": ours, "peer": theirs, "agree": agree}

    def train_spikeloom(self, seed):
        run = self.work / f"spikeloom-{seed}"
        command = self.spikeloom_command(run, self.train, self.test, seed, self.options.epochs)
        with open(self.work / f"spikeloom-{seed}.log", "w") as log:
            process = self.start(command, stdout=log, stderr=log)
            seen = self.watch(process, lambda: self.read_metrics(run / "metrics.jsonl"), "spikeloom")
        return seen

    def read_metrics(self, path):
        lines = path.read_text().splitlines() if path.exists() else []
        epochs, seconds, data_seconds, samples = [], 0.0, 0.0, 0
        for line in map(json.loads, lines):
            seconds += line["seconds"]["total"]
            data_seconds += line["seconds"]["data"]
            samples += line["samples"]
            epochs.append(
                {
                    "epoch": line["epoch"],
                    "train_loss": line["train_loss"],
                    "train_accuracy": line["train_accuracy"],
                    "test_loss": line["validation_loss"],
                    "test_accuracy": line["validation_accuracy"],
                    "train_seconds": seconds,
                    "data_seconds": data_seconds,
                    "samples_per_s": samples / seconds,
                    "activity": line["activity"],
                    "active_fraction": line["active_fraction"],
                }
            )
        return epochs

    def train_peer(self, name, seed):
        start = self.work / f"start-{seed}"
        if not start.exists():
            self.complete(self.spikeloom_command(start, self.train, self.test, seed, 0))
        log = self.work / f"{name}-{seed}.jsonl"

        def read():
            whole = log.read_text().rpartition("\n")[0]
            return [line for line in map(json.loads, whole.splitlines()) if line["epoch"] > 0]

        with open(log, "w") as output, open(log.with_suffix(".log"), "w") as errors:
            command = self.peer_command(name, start, self.train, self.test, self.options.epochs)
            process = self.start(command, stdout=output, stderr=errors)
            seen = self.watch(process, read, name)
        if not seen and process.returncode not in (0, None, -signal.SIGINT):
            raise SystemExit(f"bench-time-to-accuracy: {log.with_suffix('.log').read_text().strip().splitlines()[-1]}")
        return seen

    def watch(self, process, read, name):
        """Lets a training go on until it ends, has reached all targets, or its time is up."""
        limit = time.monotonic() + 60 * self.options.limit
        told = 0
        while True:
            running = process.poll() is None
            epochs = read()
            for epoch in epochs[told:]:
                accuracy = 100 * epoch["test_accuracy"]
                print(
                    f"bench-time-to-accuracy: {name}, epoch {epoch['epoch']}: test {accuracy:.2f} %, "
                    f"{epoch['train_seconds']:.1f} s, {epoch['samples_per_s']:.0f} samples/s",
                    file=sys.stderr,
                    flush=True,
                )
            told = len(epochs)
            reached = epochs and max(epoch["test_accuracy"] for epoch in epochs) >= max(self.options.targets)
            if running and (reached or time.monotonic() > limit):
                os.killpg(process.pid, signal.SIGINT)
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                return epochs
            if not running:
                return epochs
            time.sleep(0.2)


def minutes_until(epochs, target):
    for epoch in epochs:
        if epoch["test_accuracy"] >= target:
            return epoch["train_seconds"] / 60
    return None


def table_of(results, targets):
    heads = [f"minutes to {100 * target:g} %" for target in targets]
    lines = [
        "| program | seed | " + " | ".join(heads) + " | epochs | best test accuracy | samples/s |",
        "|---|---:|" + "---:|" * (len(targets) + 3),
    ]
    for result in results:
        epochs = result["epochs"]
        if not epochs:
            lines.append(f"| {result['program']} | {result['seed']} | no epoch was finished |" + " |" * len(targets))
            continue
        cells = ["not reached" if value is None else f"{value:.2f}" for value in result["minutes_until"].values()]
        best = max(epoch["test_accuracy"] for epoch in epochs)
        lines.append(
            f"| {result['program']} | {result['seed']} | {' | '.join(cells)} | {len(epochs)} | {100 * best:.2f} % "
            f"| {epochs[-1]['samples_per_s']:.0f} |"
        )
    return "\n".join(lines)


def main(argv):
    options = arguments_of(argv)
    bench = Bench(options)
    results = {
        "date": datetime.date.today().isoformat(),
        "cpu": cpu_name(),
        "threads": options.threads,
        "system": platform.platform(),
        "command": "scripts/bench-time-to-accuracy " + " ".join(argv),
        "checks": [],
        "trainings": [],
    }
    for name in options.programs:
        if name != "spikeloom" and "spikeloom" in options.programs:
            results["checks"].append(bench.check(name, options.seeds[0]))
    for seed in options.seeds:
        for name in options.programs:
            epochs = bench.train_spikeloom(seed) if name == "spikeloom" else bench.train_peer(name, seed)
            until = {str(target): minutes_until(epochs, target) for target in options.targets}
            training = {"program": name, "seed": seed, "minutes_until": until, "epochs": epochs}
            results["trainings"].append(training)
            write_json(options.out, results)
    print(f"\n{options.config.name}, {options.threads} threads, {results['cpu']}, {results['date']}\n")
    print(table_of(results["trainings"], options.targets))
    print(f"\nwritten: {options.out}")
    differ = [check for check in results["checks"] if not check["agree"]]
    for check in differ:
        print(f"LOSS DIFFERS: {check['program']}: {check['peer']}, and spikeloom has {check['spikeloom']}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
