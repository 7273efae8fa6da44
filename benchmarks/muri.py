"""CPU seconds of Muri, its ablations and its baselines in the regime of its simulator, and of Muri on the engine.

    python -m benchmarks muri [--jobs 400] [--trace cluster_trace.csv] [--profiles FOLDER]

On 64 GPUs, from a trace in memory to the summary, kernels compiled; the better of two runs. Without ``--trace`` (a file of the authors)
jobs are drawn: iterations of a second with bottlenecks of four kinds.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import polars as pl

from gantline import Trace, simulate

STAGES = ((0.7, 0.1, 0.05), (0.05, 0.8, 0.1), (0.1, 0.3, 0.5), (0.3, 0.3, 0.3))
RUNS: tuple[tuple[str, dict[str, object]], ...] = (
    ("srtf", {}),
    ("srsf", {}),
    ("tiresias", {}),
    ("themis", {}),
    ("antman", {}),
    ("muri", {"known": True}),
    ("muri", {"known": False}),
    ("muri", {"ordering": "worst"}),
    ("muri", {"matching": False}),
)


def drawn(jobs: int) -> Trace:
    """Jobs that want half as much again as there is."""
    draw = np.random.default_rng(0)
    kind = draw.integers(len(STAGES), size=jobs)
    duration = np.round(600.0 * 100.0 ** draw.random(jobs))
    load, gpu, network = np.array(STAGES)[kind].T
    columns = {
        "job": [str(row) for row in range(jobs)],
        "arrival": np.cumsum(draw.exponential(800.0, jobs)).round(),
        "gpus": draw.choice([1, 1, 2, 4, 8, 16], jobs),
        "duration": duration,
        "iterations": duration,
        "iteration_time": load + gpu + network,
        "stage_load": load,
        "stage_gpu": gpu,
        "stage_network": network,
        "model": [f"net{each}" for each in kind],
        "opportunistic": (draw.random(jobs) < 0.3).astype(float),
    }
    return Trace.from_frame(pl.DataFrame(columns))


def seconds(trace: Trace, policy: str, settings: dict[str, object], **options: str) -> tuple[float, float]:
    """CPU seconds of a run, and the mean JCT that it found."""
    began = time.process_time()
    run = simulate(trace, "8x8", policy, settings=settings, **options)
    return time.process_time() - began, float(run.summary["average_jct"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=400)
    parser.add_argument("--trace", default="")
    parser.add_argument("--profiles", default="")
    given = parser.parse_args()
    trace = Trace.load(Path(given.trace), format="muri", jobs=given.jobs) if given.trace else drawn(given.jobs)
    regime = {"regime": "muri"} | ({"profiles": given.profiles} if given.profiles else {})
    print(f"{given.jobs} jobs on 64 GPUs: CPU seconds and mean JCT")
    for policy, settings in RUNS:
        found = min(seconds(trace, policy, settings, **regime) for _ in range(2))
        print(f"{policy:9} {settings or ''!s:24} regime muri {found[0]:8.3f} s {found[1]:12,.0f}", flush=True)
    found = seconds(trace, "muri", {"known": True, "interval": 1e9}, performance="stage-cycles")
    print(f"{'muri':9} {{'known': True}}           engine      {found[0]:8.3f} s {found[1]:12,.0f}")


if __name__ == "__main__":
    main()
