"""CPU seconds of Synergy's orders and mechanisms in the regime of its simulator, reading the profiles included.

    python -m benchmarks synergy [--data ../shared/reference/synergy]

The authors' 100 jobs on four servers of eight GPUs, kernels compiled, the best of five; the original takes 1.6 s, and 41 s with `opt`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import process_time

from gantline import simulate
from gantline.traces.importers import import_trace

RUNS = (("fifo", "fair"), ("fifo", "greedy"), ("fifo", "tune"), ("srtf", "tune"), ("las", "tune"), ("ftf", "tune"), ("fifo", "opt"))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "reference" / "synergy")
    data = options.parse_args().data
    if not data.is_dir():
        print(f"regime synergy: no reference data at {data}")
        return
    trace = import_trace("synergy", data / "static_100job.csv", {"profiles": str(data)})
    for order, mechanism in RUNS:
        settings = {"order": order, "mechanism": mechanism, "mode": "static"}
        best = float("inf")
        for _ in range(6):  # the first one compiles
            began = process_time()
            run = simulate(trace, "4x8", "synergy", settings=settings, regime="synergy", round=300.0, profiles=str(data))
            best = min(best, process_time() - began)
        print(f"{order:5} {mechanism:7} {best:6.3f} CPU s {run.summary['average_jct']:10,.0f} s mean JCT", flush=True)


if __name__ == "__main__":
    main()
