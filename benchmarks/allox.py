"""CPU seconds of AlloX and its baselines on 10,000 hybrid jobs, as IRFsim counts time and in the default way.

    python benchmarks/allox.py [--trace FILE] [--jobs 10000]

With ``--trace`` a file in the format of AlloX' simulator (``gantline trace import irfsim``), else a generated workload of the
same kind. `allox_matching` measures the matching alone: one incremental step, and how it grows with the queue.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from gantline.simulator.simulate import simulate
from gantline.systems.allox.importer import read
from gantline.traces.generators import generate
from gantline.traces.trace import Trace

RUNS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("allox", {"alpha": 0.1}),
    ("allox", {"alpha": 1.0}),
    ("allox.plus", {}),
    ("allox.sjf", {}),
    ("allox.srpt", {}),
    ("drf-fifo", {}),
    ("drf", {}),
    ("drf-ext", {}),
    ("es", {}),
)
REGIMES = {"irfsim": "gpu:20x1/0c/64g,cpu:20x0/32c/64g", "default": "gpu:20x1/2c/64g,cpu:20x0/32c/64g"}


def cpu_seconds(trace: Trace, regime: str, policy: str, settings: dict[str, Any]) -> tuple[float, float, int]:
    """CPU seconds of one core, mean JCT and decisions of one run, from a trace in memory to its summary."""
    begin = time.process_time()
    estimates = "declared" if regime == "default" else "oracle"  # the other one reads the errors by itself
    run = simulate(trace, REGIMES[regime], policy, settings=settings, regime=regime, estimates=estimates)
    return time.process_time() - begin, float(run.summary["average_jct"]), int(run.summary["decisions"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--jobs", type=int, default=10_000)
    given = parser.parse_args()
    trace = read(given.trace) if given.trace else generate("hybrid", seed=0, jobs=given.jobs)
    few = Trace(trace.frame.head(60))
    for regime in REGIMES:
        print(f"{'regime ' + regime:<24}{'CPU s':>8}{'mean JCT s':>12}{'decisions':>11}{'us each':>9}")
        for policy, settings in RUNS:
            cpu_seconds(few, regime, policy, settings)
            print(f"compiled {policy}", end="\r", file=sys.stderr)
            name = " ".join([policy, *(f"{key}={value:g}" for key, value in settings.items())])
            seconds, mean, decisions = cpu_seconds(trace, regime, policy, settings)
            print(f"{name:<24}{seconds:>8.2f}{mean:>12.2f}{decisions:>11}{1e6 * seconds / max(decisions, 1):>9.0f}", flush=True)
        print()


if __name__ == "__main__":
    main()
