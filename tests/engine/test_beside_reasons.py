"""A job that waits for CPUs, memory or storage of nodes says so, whichever loop, policy and clock it waits under."""

from __future__ import annotations

from typing import Any

import pytest

from gantline.core.columns import Job
from gantline.core.reasons import slug
from gantline.simulator.simulate import simulate

HOG = {"job": "hog", "arrival": 0.0, "gpus": 1, "duration": 100.0, "cpus": 7.0, "memory": 10.0}


def job(name: str, **more: Any) -> dict[str, Any]:
    return {"job": name, "arrival": 1.0, "gpus": 1, "duration": 100.0, **more}


def reasons(jobs: list[dict[str, Any]], cluster: str, policy: str, **options: Any) -> dict[str, str]:
    """Why each job waits at second 50."""
    tables = simulate(jobs, cluster, policy, until=50.0, **options).tables
    return {name: slug(int(tables.I[Job.REASON, row])) for row, name in enumerate(tables.ids) if tables.I[Job.HELD, row] == 0}


@pytest.mark.parametrize("executor", ["instant", "acknowledged"])
@pytest.mark.parametrize("policy", ["srtf", "sia", "elasticflow", "gandiva"])
def test_what_is_taken_beside_free_devices_is_the_reason(policy: str, executor: str) -> None:
    jobs = [HOG, job("cpus", cpus=4.0, memory=1.0), job("memory", cpus=1.0, memory=30.0)]
    assert reasons(jobs, "1x4/8c/32g", policy, executor=executor) == {"cpus": "cpus", "memory": "memory"}


def test_what_each_node_has_left_counts_and_not_their_sum() -> None:
    """Two devices are free on either node, and two CPUs beside them; each rank of the pair asks for three."""
    left, right = (HOG | {"job": name, "cpus": 6.0} for name in ("left", "right"))
    assert reasons([left, right, job("pair", gpus=2, cpus=6.0)], "2x3/8c", "fifo") == {"pair": "cpus"}


def test_too_few_devices_stay_the_reason() -> None:
    assert reasons([HOG | {"gpus": 4, "cpus": 1.0}, job("late", cpus=8.0)], "1x4/8c", "srtf") == {"late": "priority"}
