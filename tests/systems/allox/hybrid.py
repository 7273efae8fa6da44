"""Jobs that may run on a GPU or on the cores of a CPU node, as rows of a trace."""

from __future__ import annotations

from typing import Any

import numpy as np

CLUSTER = "gpu:{gpus}x1/2c/64g,cpu:{nodes}x0/20c/64g"
POLICIES = ("allox", "allox.plus", "allox.sjf", "allox.srpt", "drf", "drf-fifo", "drf-sjf", "drf-ext", "es", "fs")


def cluster(gpus: int, nodes: int) -> str:
    return CLUSTER.format(gpus=gpus, nodes=nodes)


def job(name: str, on_gpu: float, on_cpu: float, *, arrival: float = 0.0, user: str = "ann", **more: Any) -> dict[str, Any]:
    """A job with both ways, times in seconds."""
    return {
        "job": name,
        "arrival": arrival,
        "gpus": 1,
        "duration": on_gpu,
        "user": user,
        "options": f"gpu:1/2/4={on_gpu:g}|cpu:0/20/8={on_cpu:g}",
        **more,
    }


def some_jobs(seed: int, count: int, users: int = 3, span: float = 2000.0) -> list[dict[str, Any]]:
    """Jobs of several users, most of them faster on a GPU."""
    rng = np.random.default_rng(seed)
    arrivals = np.sort(rng.uniform(0.0, span, count)).round(1)
    jobs = []
    for number, arrival in enumerate(arrivals.tolist()):
        on_gpu = float(rng.integers(10, 300))
        speedup = float(rng.uniform(0.7, 8.0))
        jobs.append(job(f"j{number}", on_gpu, round(on_gpu * speedup, 1), arrival=arrival, user=f"user{rng.integers(users)}"))
    return jobs
