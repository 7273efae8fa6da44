"""The regime against a second reading of its rules, on jobs that were never recorded: nodes of all sizes, best effort, ties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.systems.elasticflow.plain_jobs import Job
from tests.systems.elasticflow.plainly import Plainly
from tests.systems.elasticflow.test_reference import SCHEDULES, histories, whole

from gantline import simulate

CLUSTERS = ((1, 8), (2, 4), (4, 8), (32, 8), (3, 4))


def drawn(seed: int, count: int = 14) -> list[dict[str, Any]]:
    draw, found = np.random.default_rng(seed), []
    arrival = 0.0
    for k in range(count):
        arrival += float(draw.choice([0, 0, 30, 240, 500]))
        sizes = [1, 2, 4, 8, 16][int(draw.integers(2)) : int(draw.integers(3, 6))]
        speed = {size: round(float(size ** draw.uniform(0.3, 1.0)), 3) for size in sizes}
        work = int(draw.integers(300, 6000))
        due = arrival + int(draw.uniform(0.4, 2.0) * work / speed[sizes[0]]) if draw.random() > 0.15 else None
        found.append({"job": f"j{k}", "arrival": arrival, "work": work, "speed": speed, "deadline": due})
    return found


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("seed", range(5))
def test_the_regime_is_its_rules(schedule: str, seed: int) -> None:
    drawn_jobs, (nodes, per_node) = drawn(seed), CLUSTERS[seed % len(CLUSTERS)]
    policy, admission = SCHEDULES[schedule]
    told, plain = [], []
    for one in drawn_jobs:
        speed, work = one["speed"], one["work"]
        knee = max(speed, key=lambda size: (speed[size], -size))
        top = knee if policy == "elasticflow" else max(speed)
        due = math.inf if one["deadline"] is None else one["deadline"]
        plain.append(Job(one["arrival"], float(work), due, speed, top))
        row = {key: one[key] for key in ("job", "arrival", "work", "deadline")} | {"gpus": min(speed), "duration": work / speed[min(speed)]}
        options = "|".join(f"gpu:{size}={work / rate!r}" for size, rate in speed.items())
        table = "|".join(f"{size}={rate!r}" for size, rate in speed.items())
        told.append(row | {"max_gpus": max(speed), "options": options, "throughputs": table, "scale_limit": knee})
    slow = Plainly(plain, schedule, nodes * per_node, per_node, 240.0)
    slow.run()
    settings = {"compat": "elasticflow", "admission": admission}
    run = simulate(told, f"gpu:{nodes}x{per_node}", policy, settings=settings, regime="elasticflow", round=240.0)
    jobs, history = {job["job"]: job for job in run.jobs.iter_rows(named=True)}, histories(run)
    for one, job in zip(drawn_jobs, plain):
        quick = jobs[one["job"]]
        spans = " ".join(f"{time:.0f}:{gpus}" for time, gpus in job.history)
        ended = not math.isnan(job.seen)
        assert (quick["state"] == "rejected", whole(quick["first_start"]), whole(quick["finish"]), history.get(one["job"], "")) == (
            job.rejected,
            whole(job.start),
            whole(job.end) if ended else "",
            spans,
        ), one["job"]
        assert whole(quick.get("exact_end")) == (whole(job.exact) if ended and policy == "elasticflow" else "")
