"""A resize that moves one worker: the others stay where they are, the gang pauses and goes on (ElasticFlow, EDL)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.probes.scenario import FOREVER, fact, job, spans

from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.simulator.simulate import simulate


@dataclass(frozen=True)
class Steps(Policy):
    """From each time on the only job has these devices."""

    steps: tuple[tuple[float, tuple[int, ...]], ...] = ()

    def decide(self, snapshot: Snapshot) -> Plan:
        now = [devices for start, devices in self.steps if start <= snapshot.now][-1]
        later = min((start for start, _ in self.steps if start > snapshot.now), default=FOREVER)
        return Plan.assign([Assignment(k, devices=now) for k in range(len(snapshot.jobs))], valid_until=later)


def test_one_worker_comes_home_then_another_joins() -> None:
    policy = Steps(((0.0, (0, 1, 4)), (50.0, (0, 1, 2)), (100.0, (0, 1, 2, 3))))
    run = simulate([job("elastic", 3, 200)], "2x4", policy, costs="move=5,resize=10,resume=60")

    assert spans(run, "elastic") == [
        (0.0, 50.0, [0, 1, 4], "moved"),
        (50.0, 100.0, [0, 1, 2], "resized"),
        (100.0, pytest.approx(188.75), [0, 1, 2, 3], "finished"),  # 95 done by 100 s, a pause of ten, then 4/3 as fast
    ]
    assert fact(run, "elastic", "preemptions") == 0
    assert fact(run, "elastic", "restarts") == 0


def test_ranks_follow_the_plan_even_when_only_their_order_changes() -> None:
    run = simulate([job("ring", 3, 40)], "1x4", Steps(((0.0, (2, 0, 1)), (10.0, (1, 2, 3)))))

    assert [devices for _, _, devices, _ in spans(run, "ring")] == [[2, 0, 1], [1, 2, 3]]


def test_a_gang_that_goes_to_other_devices_altogether_starts_again_and_pays_for_the_move() -> None:
    run = simulate([job("gang", 2, 100)], "2x2", Steps(((0.0, (0, 1)), (40.0, (2, 3)))), costs="move=7,resume=60,start=1")

    assert spans(run, "gang") == [(0.0, 40.0, [0, 1], "moved"), (40.0, pytest.approx(108.0), [2, 3], "finished")]
    assert (fact(run, "gang", "restarts"), fact(run, "gang", "preemptions")) == (1, 0)


@dataclass(frozen=True)
class Grow(Policy):
    """Sizes only; the engine finds the devices."""

    def decide(self, snapshot: Snapshot) -> Plan:
        size = 2 if snapshot.now < 50 else (5 if snapshot.now < 100 else 3)
        later = next((t for t in (50.0, 100.0) if t > snapshot.now), FOREVER)
        return Plan.assign([Assignment(k, gpus=size, within="node") for k in range(len(snapshot.jobs))], valid_until=later)


def test_a_gang_grows_at_home_first_and_gives_up_its_last_ranks_first() -> None:
    run = simulate([job("elastic", 2, 300)], "2x4", Grow(), costs="resize=10")

    assert [devices for _, _, devices, _ in spans(run, "elastic")] == [[0, 1], [0, 1, 2, 3, 4], [0, 1, 2]]
    assert fact(run, "elastic", "finish") == pytest.approx(110.0 + (300 - 50 - 40 * 2.5) / 1.5)
