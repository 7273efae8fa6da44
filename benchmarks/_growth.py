"""One run of the growth table, for a process of its own."""

from __future__ import annotations

import resource
import time

from gantline import simulate
from gantline.workload.generators import generate


def grown(jobs: int) -> tuple[float, int, float]:
    """CPU seconds, jobs completed and peak memory of one such run."""
    trace = generate("philly", seed=1, jobs=jobs, load=0.8, gpus=20_000)
    simulate(trace.frame.head(50), "2500x8", "srtf", placement="consolidated", round=60)  # loads the kernels
    began = time.process_time()
    run = simulate(trace, "2500x8", "srtf", placement="consolidated", round=60)
    seconds = time.process_time() - began
    return seconds, run.summary["completed"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
