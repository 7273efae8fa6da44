"""One run of the growth table or in blocks, for a process of its own."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import numpy as np

from gantline import simulate, simulate_in_blocks
from gantline.core.columns import Job
from gantline.simulator.run import Run
from gantline.traces.generators import generate


def grown(jobs: int, gpus: int = 20_000, load: float = 0.8, policy: str = "srtf") -> tuple[float, int, int, float]:
    """CPU seconds, decisions, most jobs that waited at once, and peak memory in MB of one such run."""
    trace = generate("philly", seed=1, jobs=jobs, load=load, gpus=gpus)
    cluster = f"{gpus // 8}x8"
    simulate(trace.frame.head(50), cluster, policy, placement="consolidated", round=60)  # loads the kernels
    began = time.process_time()
    run = simulate(trace, cluster, policy, placement="consolidated", round=60)
    seconds = time.process_time() - began
    return seconds, run.summary["decisions"], _longest_queue(run), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def written(path: Path, jobs: int) -> None:
    """A trace of that length in a file."""
    generate("philly", seed=1, jobs=jobs, load=0.8, gpus=100_000).save(path)


def in_blocks(path: Path, block: int, policy: str) -> tuple[float, int, float]:
    """CPU seconds, decisions, and peak memory in MB of a run in blocks."""
    out = path.with_name("ended.parquet")
    summary = simulate_in_blocks(path, "12500x8", policy, block=block, jobs_out=out, placement="consolidated", round=60)
    assert summary["completed"] == summary["jobs"]
    return float(summary["cpu_seconds"]), int(summary["decisions"]), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _longest_queue(run: Run) -> int:
    """Most jobs at once that had not started for the first time."""
    F = run.tables.F
    times = np.concatenate([F[Job.ARRIVAL], F[Job.FIRST_START]])
    steps = np.repeat([1, -1], F.shape[1])
    return int(np.cumsum(steps[np.argsort(times, kind="stable")]).max(initial=0))
