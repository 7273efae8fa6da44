"""How long a sweep takes: CPU milliseconds a run of 100 and of 5,000 jobs, and how it scales with workers.

python -m benchmarks.sweep [--runs N] [--jobs N] [--workers 1,2]
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

from gantline.lab.experiment.grid import Case, Grid, PolicyChoice
from gantline.lab.experiment.running.processes import choose_backend
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.sweep import run_sweep
from gantline.lab.experiment.trace_source import TraceSource

POLICIES = tuple(PolicyChoice(name) for name in ("fifo", "srtf", "srsf", "las", "tiresias"))


def cases(runs: int, jobs: int) -> list[Case]:
    """Five policies on Philly-like jobs at two loads, with as many seeds as the number of runs asks for."""
    source = TraceSource(generator="philly", settings={"jobs": jobs, "gpus": 128, "longest": "3d"})
    base = Setting(source, "16x8", "fifo", round=300.0, placement="consolidated:preferred")
    seeds = tuple(range(max(1, runs // (2 * len(POLICIES)))))
    return Grid(base, POLICIES, loads=(0.7, 0.9), seeds=seeds).cases()[:runs]


def times(todo: list[Case], workers: int) -> tuple[float, float]:
    """Wall-clock and processor seconds of a sweep into a fresh folder: start of the workers, runs, metrics, files."""
    with tempfile.TemporaryDirectory() as folder:
        began, spent = time.perf_counter(), _processor_seconds()
        sweep = run_sweep(todo, Path(folder) / "sweep", backend=choose_backend(workers))
        assert not sweep.failures, sweep.failures
        return time.perf_counter() - began, _processor_seconds() - spent


def _processor_seconds() -> float:
    """What this process and its ended workers have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Print minutes, seconds per run and the speed-up; where processors are shared, their seconds tell more than minutes."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=20)
    options.add_argument("--jobs", type=int, default=5000)
    options.add_argument("--workers", default="1,2")
    chosen = options.parse_args()
    todo = cases(chosen.runs, chosen.jobs)
    times(cases(len(POLICIES), 50), 1)  # compiled once per machine, then cached
    for runs, jobs in ((100, 100), (20, 5000)):
        some = cases(runs, jobs)
        used = min(times(some, 1)[1] for _ in range(3))
        print(f"a run of {jobs:,} jobs in a sweep of {runs}: {1000 * used / runs:.1f} CPU ms, its own file, metrics and record included")
    print(f"{len(todo)} runs of {chosen.jobs:,} jobs; {len(os.sched_getaffinity(0))} processors, load average {os.getloadavg()[0]:.1f}")
    print("workers   minutes   s per run   speed-up   processor s")
    first = None
    for workers in (int(text) for text in chosen.workers.split(",")):
        took, used = times(todo, workers)
        first = first or took
        print(f"{workers:7}   {took / 60:7.2f}   {took / len(todo):9.2f}   {first / took:8.2f}   {used:11.1f}", flush=True)


if __name__ == "__main__":
    main()
