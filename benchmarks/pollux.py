"""Pollux: one fit, one search as jobs and devices grow, and a whole workload in its own regime. CPU seconds, the least of some runs.

    python -m benchmarks.pollux [PROFILES WORKLOAD]

PROFILES and WORKLOAD are the published ones; without them the examples that ship with Gantline are run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gantline.core.arrays import Floats
from gantline.models.goodput.fit import WORK, fit_rows
from gantline.models.goodput.speed_model import Observations, SpeedModel
from gantline.models.solvers.allocation_search.search import Demand, search
from gantline.simulator.simulate import simulate
from gantline.systems.pollux.traces import read
from gantline.traces.files.profiles import MADE_UP

EXAMPLES = Path(__file__).parents[1] / "examples"


def main() -> None:
    fits()
    searches()
    workloads(*sys.argv[1:3])


def fits() -> None:
    """Microseconds a fit, by rows."""
    truth = SpeedModel(np.array([0.05, 0.004, 0.3, 0.01, 0.1, 0.004, 1.6]))
    rng = np.random.default_rng(0)
    places = [(n, k, b) for n, k in ((1, 1), (1, 2), (1, 4), (2, 8), (3, 12), (4, 16)) for b in (16.0, 32.0, 64.0, 96.0, 128.0)]
    for count in (4, 11, 29):
        tables = []
        for _ in range(200):
            chosen = [places[i] for i in rng.permutation(len(places))[:count]]
            noise = np.exp(rng.normal(0.0, 0.2, (count, 2)))
            rows = [(n, k, b, (0.05 + 0.004 * b) * x, float(truth.step_time(n, k, b)) * y) for (n, k, b), (x, y) in zip(chosen, noise)]
            tables.append(Observations.of(rows).rows)
        work, model = np.zeros(WORK), np.zeros(7)

        def fit_all(tables: list[Floats] = tables, model: Floats = model, work: Floats = work) -> None:
            for rows in tables:
                fit_rows(rows, model, work, False)

        print(f"fit of {count:2d} rows: {least(fit_all, 30) / len(tables) * 1e6:6.1f} us")


def searches() -> None:
    """Milliseconds a search of 100 members for 100 generations."""
    rng = np.random.default_rng(0)
    for jobs, nodes, per_node in ((5, 16, 4), (20, 16, 4), (60, 16, 4), (100, 16, 4), (100, 64, 4), (100, 125, 8), (100, 250, 4)):
        devices = nodes * per_node
        speedup = np.zeros((jobs, 2, devices + 1))
        speedup[:, 0] = np.arange(devices + 1) ** rng.uniform(0.5, 1.0, (jobs, 1))
        speedup[:, 1] = 0.9 * speedup[:, 0]
        speedup[:, :, 0] = 0.0
        most = rng.integers(1, min(64, devices) + 1, jobs)
        demand = Demand(np.zeros((jobs, nodes), dtype=np.int64), most, speedup, np.full(jobs, 0.9), 1.0 / per_node)
        capacity = np.full(nodes, per_node)
        first = search(demand, capacity, 1)
        demand = Demand(first.best, most, speedup, np.full(jobs, 0.9), 1.0 / per_node)
        seconds = least(lambda demand=demand, capacity=capacity, start=first.front: search(demand, capacity, 2, start=start), 7)
        print(f"search, {jobs:3d} jobs, {devices:4d} devices: {seconds * 1e3:7.1f} ms")


def workloads(profiles: str = "", workload: str = "") -> None:
    """CPU seconds of whole runs, the second of two, so that kernels are compiled."""
    trace = read(Path(workload)) if workload else EXAMPLES / "goodput_jobs.csv"
    cluster = "aws:16x4" if workload else "small:4x4"
    for policy in ("tiresias", "optimus", "pollux"):
        for _ in range(2):
            run = simulate(trace, cluster, policy, regime="pollux", profiles=profiles or MADE_UP)
        told = run.summary
        print(f"{policy:9s} {told['cpu_seconds']:6.2f} s, {told['decisions']} decisions, mean JCT {told['average_jct']:.1f} s")


def least(run: Callable[[], Any], times: int) -> float:
    """The fewest CPU seconds of so many runs, after one in which kernels are compiled."""
    run()
    found = float("inf")
    for _ in range(times):
        began = time.process_time()
        run()
        found = min(found, time.process_time() - began)
    return found


if __name__ == "__main__":
    main()
