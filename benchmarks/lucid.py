"""Lucid: its simulator's six policies on the reference log, and pairs of jobs on the engine, in CPU seconds.

The original takes 44 s for `lucid` on 912 jobs and 118 s for all six policies. Reading the log is not counted.

    python -m benchmarks lucid [--data ../shared/reference/lucid] [--jobs 400]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import process_time

import numpy as np

from gantline.simulator.simulate import simulate
from gantline.traces.files.speeds import read_pair_profiles
from gantline.traces.importers import import_trace

POLICIES = ("fifo", "sjf", "qssf", "srtf", "tiresias", "lucid")


def run_regime(data: Path) -> None:
    """Each policy on the 912 jobs, the second time: the first compiles and reads."""
    log = import_trace("lucid", data / "synthetic_912_full_log.csv")
    total = 0.0
    for policy in POLICIES:
        for _ in range(2):
            began = process_time()
            run = simulate(log, data / "synthetic_912_vc_config.csv", policy, regime="lucid", profiles=str(data))
            took = process_time() - began
        total += took
        print(f"regime lucid, {policy:10} mean JCT {run.summary['average_jct']:10.2f} s {took:6.2f} CPU s")
    print(f"regime lucid, all six {total:40.2f} CPU s")


def run_engine(count: int) -> None:
    """Policy lucid with pairs, twice and four times as many jobs too."""
    names = read_pair_profiles().pairs.names
    for jobs in (count, 2 * count, 4 * count):
        draw = np.random.default_rng(1)
        arrival = np.cumsum(draw.exponential(40.0, jobs)).round()
        sizes, durations = draw.choice((1, 1, 2, 4), jobs).tolist(), draw.integers(60, 4000, jobs).tolist()
        models = [names[code] for code in draw.integers(len(names), size=jobs).tolist()]
        columns = zip(arrival.tolist(), sizes, map(float, durations), models)
        fields = ("arrival", "gpus", "duration", "model")
        rows = [{"job": f"j{k}", **dict(zip(fields, row))} for k, row in enumerate(columns)]
        began = process_time()
        run = simulate(rows, "16x8", "lucid", performance="pairs")
        took = process_time() - began
        decisions = run.summary["decisions"]
        print(f"engine, lucid, {jobs:6} jobs {decisions:6} decisions {took:6.2f} CPU s {1000 * took / decisions:6.2f} ms each")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "reference" / "lucid")
    options.add_argument("--jobs", type=int, default=400)
    given = options.parse_args()
    if given.data.is_dir():
        run_regime(given.data)
    else:
        print(f"regime lucid: no reference data at {given.data}")
    run_engine(given.jobs)


if __name__ == "__main__":
    main()
