"""Measures one peer in this process and prints one JSON object.

python measure.py PEER CASE.safetensors [--threads N] [--seconds S] [--loss-steps 20]
"""

import argparse
import importlib
import json
import os
import platform
import resource
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path

from registry import PEERS

WARM_UP = 3  # steps that are not timed: compilation, allocation


def limit_threads(threads):
    """Must precede the import of any framework: XLA takes as many threads as the process may use cores."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < threads:
        raise SystemExit(f"--threads {threads}: this process may use {len(cores)} cores")
    os.sched_setaffinity(0, cores[:threads])
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = str(threads)


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def measure(peer, case, seconds, loss_steps):
    trainer = importlib.import_module(peer.module).build(case, peer.variant, peer.precision)
    losses, times = [], []
    while len(losses) < max(loss_steps, WARM_UP + 5) or sum(times) < seconds:
        batch = trainer.prepare(*case.batch_of(len(losses)))
        start = time.perf_counter()
        losses.append(trainer.step(batch))
        elapsed = time.perf_counter() - start
        del batch
        if len(losses) > WARM_UP:
            times.append(elapsed)
        elif len(losses) == 1:
            first_step = elapsed
    milliseconds = 1000 * statistics.median(times)
    return {
        "samples_per_s": 1000 * case.batch / milliseconds,
        "ms_per_batch": milliseconds,
        "first_step_s": first_step,
        "timed_steps": len(times),
        "losses": losses[:20],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("case", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--loss-steps", type=int, default=20)
    arguments = parser.parse_args()
    limit_threads(arguments.threads)

    peer = PEERS[arguments.peer]
    result = {
        "peer": arguments.peer,
        "precision": peer.precision,
        "threads": arguments.threads,
    }
    for package in peer.packages:
        importlib.import_module(package)
    result["versions"] = {"python": platform.python_version()} | {name: version(name) for name in peer.packages}
    result["memory_after_import_bytes"] = resident_bytes()
    from case import read_case

    result |= measure(peer, read_case(arguments.case), arguments.seconds, arguments.loss_steps)
    result["peak_memory_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    json.dump(result, sys.stdout)
    print()


if __name__ == "__main__":
    main()
