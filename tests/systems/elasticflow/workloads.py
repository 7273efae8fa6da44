"""Random jobs with deadlines: sizes with and without gaps, curves that fall at the end, some without a deadline."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from gantline.simulator.run import Run


def some_jobs(seed: int, count: int = 30, load: float = 1.0) -> list[dict[str, Any]]:
    draw, at, found = np.random.default_rng(seed), 0.0, []
    for k in range(count):
        at = round(at + float(draw.exponential(120.0 / load)), 2)
        top, fraction, work = int(draw.choice([1, 2, 4, 8, 16])), float(draw.uniform(0.5, 0.99)), float(60 * 10 ** draw.uniform(0.5, 2.2))
        sizes = [g for g in (1, 2, 4, 8, 16) if g <= top] if draw.random() < 0.7 else list(range(1, top + 1))
        speed = {g: 1.0 / (1.0 - fraction + fraction / g) for g in sizes}
        if draw.random() < 0.2 and len(sizes) > 2:
            speed[sizes[-1]] *= 0.7
        gpus = int(draw.choice(sizes))
        duration = work / speed[gpus]
        options = "|".join(f"gpu:{g}={work / speed[g]!r}" for g in sizes)
        due = at + float(draw.uniform(0.5, 2.0)) * duration if draw.random() > 0.2 else None
        job = {"job": f"j{k}", "arrival": at, "gpus": gpus, "duration": duration, "min_gpus": min(sizes), "max_gpus": max(sizes)}
        found.append(job | {"options": options, "deadline": due})
    return found


def late(run: Run) -> list[str]:
    """Admitted jobs that missed their deadlines."""
    jobs = run.jobs.filter(pl.col("deadline").is_not_nan() & (pl.col("state") != "rejected"))
    return jobs.filter(~(pl.col("finish") <= pl.col("deadline") + 1e-5))["job"].to_list()
