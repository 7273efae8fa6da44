"""A run is measured from its own arrays or from the frames that were stored of it: the numbers are the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from gantline import simulate
from gantline.core.cluster import Node
from gantline.core.inputs import NodeEvent
from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.lab.report.frames import StoredRun
from gantline.lab.report.metrics import measure, steadiness


@dataclass(frozen=True)
class Together(Policy):
    """All jobs share one device."""

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.assign([Assignment(k, group=0, mode=Mode.SPACE) for k in range(len(snapshot.jobs))])


def jobs(count: int, seed: int, **more: object) -> list[dict[str, object]]:
    draw = np.random.default_rng(seed)
    arrivals = np.sort(draw.integers(0, 40 * count, count)).astype(float)
    return [
        {
            "job": f"j{k}",
            "arrival": float(arrival),
            "gpus": int(draw.choice([1, 2, 4, 8])),
            "duration": float(draw.integers(1, 900)),
            "user": f"u{draw.integers(4)}",
            "deadline": float(arrival + draw.integers(900, 3000)) if k % 3 == 0 else None,
            **more,
        }
        for k, arrival in enumerate(arrivals)
    ]


LOST = [NodeEvent(500, "node0", "down"), NodeEvent(1500, "node0", "up"), NodeEvent(900, "late", "join", Node("late", "gpu", 4))]
RUNS = {
    "fifo": lambda: simulate(jobs(60, 1), "2x8", "fifo"),
    "stopped and resumed at a cost": lambda: simulate(jobs(80, 2), "2x8", "las", round=60, costs=20),
    "nodes fail and join": lambda: simulate(jobs(50, 3), "3x4", "srtf", round=60, node_events=LOST),
    "stopped early": lambda: simulate(jobs(60, 4), "1x8", "fifo", until=1500),
    "a window": lambda: simulate(jobs(60, 5), "2x8", "srtf", track=(10, 40)),
    "elastic": lambda: simulate(jobs(40, 6, min_gpus=1, max_gpus=8, gpus=4), "2x8", "optimus", round=60),
    "one device for all": lambda: simulate(jobs(12, 7, gpus=1), "1x4", Together()),
    "none": lambda: simulate(jobs(1, 8), "1x8", "fifo"),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_simulation_is_measured_as_its_frames_are(name: str) -> None:
    run = RUNS[name]()
    stored = StoredRun(run.jobs, run.allocations, run.events, run.series, run.summary)
    found, expected = measure(stored), measure(run)
    assert list(found) == list(expected)
    assert found == pytest.approx(expected, rel=1e-11, abs=1e-9, nan_ok=True)
    assert steadiness(stored) == steadiness(run)
