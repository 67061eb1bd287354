"""The experiment on accuracy of Finkbeiner et al. (AAAI 2024), redone: see scripts/paper."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import page
import results
from experiment import ROOT, SETS, VARIANTS, read_metrics, runs_of
from recordings import MissingData, recordings_of

SAMPLES, EPOCHS, SEEDS = 2000, 30, (1, 2, 3)
NUMBERS_FAILED, INTERRUPTED = 3, 130  # exit codes of spikeloom
LOOK_EVERY = 0.3  # seconds between two looks at a run's metrics


class Stop(Exception):
    """Ends the script with a line and an exit code."""

    def __init__(self, words, code=1):
        super().__init__(words)
        self.code = code


class Terminated(KeyboardInterrupt):
    """As Ctrl-C, but the run under way has not heard of it."""


def terminate(_signal, _frame):
    raise Terminated


def say(words):
    print(f"paper: {words}", file=sys.stderr, flush=True)


def arguments_of(argv):
    def listed(kind, known=None):
        def convert(text):
            items = [kind(item) for item in text.split(",")]
            for item in items:
                if known is not None and item not in known:
                    raise argparse.ArgumentTypeError(f"{item!r} is none of {', '.join(known)}")
            return [known[item] for item in items] if known is not None else items

        return convert

    def positive(text):
        value = int(text)
        if value < 1:
            raise argparse.ArgumentTypeError(f"{text}: at least 1")
        return value

    defaults = {
        "sets": list(SETS.values()),
        "variants": list(VARIANTS.values()),
        "seeds": list(SEEDS),
        "samples": SAMPLES,
        "epochs": EPOCHS,
    }
    parser = argparse.ArgumentParser(prog="scripts/paper", description=__doc__, allow_abbrev=False)
    parser.add_argument("--nmnist", type=Path, help="folder of N-MNIST (default: SPIKELOOM_NMNIST, else data/nmnist)")
    parser.add_argument("--full", action="store_true", help="the paper's size: all recordings, 50 and 150 epochs")
    parser.add_argument("--sets", type=listed(str, SETS), default=defaults["sets"], help=",".join(SETS))
    parser.add_argument(
        "--variants", type=listed(str, VARIANTS), default=defaults["variants"], help=",".join(VARIANTS)
    )
    parser.add_argument("--seeds", type=listed(int), default=defaults["seeds"], help="default 1,2,3")
    parser.add_argument("--samples", type=positive, help=f"recordings to train on, of each set (default {SAMPLES})")
    parser.add_argument("--epochs", type=positive, help=f"default {EPOCHS}")
    parser.add_argument("--threads", type=positive, help="default: all cores that the process may use")
    parser.add_argument("--report-only", action="store_true", help="only write the page from the runs there are")
    parser.add_argument("--fresh", action="store_true", help="train anew what was trained before")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="for paper.md and figures/ (default docs)")
    parser.add_argument("--work", type=Path, default=ROOT / "runs/paper", help="for runs (default runs/paper)")
    parser.add_argument("--data", type=Path, default=ROOT / "data/paper", help="for data (default data/paper)")
    parser.add_argument("--spikeloom", type=Path, default=ROOT / "build/release/spikeloom")
    options = parser.parse_args(argv)
    options.defaults = defaults
    if not options.full:
        options.samples = options.samples or SAMPLES
        options.epochs = options.epochs or EPOCHS
    elif options.samples or options.epochs:
        parser.error("--full is the paper's size; it goes with neither --samples nor --epochs")
    if options.nmnist is None:
        named = os.environ.get("SPIKELOOM_NMNIST")
        beside = ROOT / "data/nmnist"
        options.nmnist = Path(named) if named else beside if beside.is_dir() else None
    for name in ("out", "work", "data"):
        setattr(options, name, getattr(options, name).resolve())
    return options


def duration(seconds):
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min" if minutes else "a minute"


class Progress:
    """What is left, by the seconds that epochs of the same set and variant took; else those of the set, or any."""

    def __init__(self, runs):
        self.runs = runs
        self.terminal = sys.stderr.isatty()

    def seconds_left(self):
        left, times = [], {}
        for run in self.runs:
            lines = read_metrics(run.metrics)
            if not run.failure.exists():
                left.append((run, run.epochs - len(lines)))
            for line in lines:
                seconds = line["seconds"]["total"] + line["seconds"]["validation"]
                for key in ((run.task.name, run.variant.name), run.task.name, None):
                    times.setdefault(key, []).append(seconds)
        total = 0.0
        for run, epochs in left:
            known = times.get((run.task.name, run.variant.name)) or times.get(run.task.name) or times.get(None)
            if known is None:
                return None
            total += epochs * sum(known) / len(known)
        return total

    def epoch(self, number, run, line):
        left = self.seconds_left()
        words = (
            f"paper: run {number} of {len(self.runs)}, {run.task.title}, {run.variant.title}, seed {run.seed}: "
            f"epoch {line['epoch']}/{run.epochs}, held-out accuracy {100 * line['validation_accuracy']:.1f} %, "
            f"{line['samples_per_second']:.0f} samples/s" + ("" if left is None else f"; about {duration(left)} left")
        )
        end = "\n" if not self.terminal or line["epoch"] == run.epochs else ""
        print(("\r\x1b[K" if self.terminal else "") + words, end=end, file=sys.stderr, flush=True)


def run_command(command):
    """Of spikeloom, whose own progress is shown. Raises CalledProcessError, or Stop if it was interrupted."""
    try:
        done = subprocess.run([str(part) for part in command], stdout=subprocess.DEVNULL, check=False)
    except OSError as error:
        raise Stop(f"{command[0]}: can't be run: {error.strerror}", 2) from error
    if done.returncode == INTERRUPTED:
        raise Stop("interrupted", INTERRUPTED)
    done.check_returncode()


def prepare(run, data, fresh):
    """Leaves a folder that the run can start or go on in, or says that it holds another one."""
    identity = run.identity(data)
    if fresh or (run.folder.exists() and not (run.folder / "last.safetensors").exists()):
        shutil.rmtree(run.folder, ignore_errors=True)  # stopped before its first checkpoint: nothing to go on from
        run.times.unlink(missing_ok=True)
    run.failure.unlink(missing_ok=True)
    if run.folder.exists() and (not run.record.exists() or json.loads(run.record.read_text()) != identity):
        raise Stop(f"{run.folder}: was trained with other settings or data; --fresh trains it anew", 2)
    page.write_whole(run.record, json.dumps(identity, indent=1) + "\n")


def processor_seconds(process):
    """Of all its threads so far; None when it has ended."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") if fields[0] != "Z" else None


def train(number, run, data, options, progress):
    command = [options.spikeloom, "train", run.task.config, "--out", run.folder, "--resume"]
    command += ["--seed", run.seed, "--epochs", run.epochs]
    command += ["--threads", options.threads] if options.threads else []
    command += [part for setting in run.settings(data) for part in ("--set", setting)]
    log = run.folder.with_name(run.folder.name + ".log")
    told, earlier, times = run.epochs_done(), run.sittings(), []
    with open(log, "w") as output:
        try:
            process = subprocess.Popen([str(part) for part in command], stdout=output, stderr=output)
        except OSError as error:
            raise Stop(f"{options.spikeloom}: can't be run: {error.strerror}", 2) from error
        try:
            while True:
                running = process.poll() is None
                lines = read_metrics(run.metrics)
                for line in lines[told:]:
                    progress.epoch(number, run, line)
                used = processor_seconds(process)
                if len(lines) > told and used is not None:
                    times.append((len(lines), used))
                    page.write_whole(run.times, json.dumps([*earlier, times]) + "\n")
                told = max(told, len(lines))
                if not running:
                    break
                time.sleep(LOOK_EVERY)
        except KeyboardInterrupt as stop:  # Ctrl-C reaches the run as well, which saves
            if isinstance(stop, Terminated):
                process.terminate()
            process.wait()
            raise
    if process.returncode == INTERRUPTED:
        raise Stop("interrupted; the same command goes on from here", INTERRUPTED)
    errors = [line for line in log.read_text().splitlines() if line.startswith("spikeloom: error: ")]
    words = errors[-1].removeprefix("spikeloom: error: ") if errors else f"ended with {process.returncode}; see {log}"
    if process.returncode == NUMBERS_FAILED:
        page.write_whole(run.failure, words + "\n")
        say(f"{run.task.title}, {run.variant.title}, seed {run.seed}: {words}")
    elif process.returncode != 0:
        raise Stop(words, process.returncode if process.returncode > 0 else 1)


def gather(options):
    """Set's name -> its recordings, and set's name -> why it is left out."""
    found, skipped = {}, {}
    for task in options.sets:
        try:
            found[task.name] = recordings_of(task, options, run_command)
        except MissingData as reason:
            skipped[task.name] = str(reason)
            say(f"{task.title} IS SKIPPED: {reason}")
    if not found:
        raise Stop("nothing to train on: every set was skipped", 2)
    return found, skipped


def work(options):
    recordings, skipped = gather(options)
    runs = [run for run in runs_of(options) if run.task.name in recordings]
    progress = Progress(runs)
    for number, run in enumerate(runs, 1):
        if options.report_only:
            break
        prepare(run, recordings[run.task.name], options.fresh)
        if run.epochs_done() < run.epochs:
            train(number, run, recordings[run.task.name], options, progress)
    written = page.write_page(options, runs, results.results_of(runs), recordings, skipped)
    print(f"written: {written}")


def main(argv):
    signal.signal(signal.SIGTERM, terminate)
    try:
        work(arguments_of(argv))
    except Stop as stop:
        say(stop)
        return stop.code
    except KeyboardInterrupt:
        say("interrupted; the same command goes on from here")
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
