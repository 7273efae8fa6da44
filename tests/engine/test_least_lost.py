"""Victims by what they lose: of those that rank lower, the gang is stopped that has least to do again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from gantline.core.errors import NotFoundError, RefusedError
from gantline.core.inputs import Use
from gantline.core.policy import OrderPolicy
from gantline.core.snapshot import Snapshot
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate


@dataclass(frozen=True)
class ByPriority(OrderPolicy):
    """Higher priority first, and what runs gives way."""

    name: ClassVar[str] = "by-priority"
    preempt: ClassVar[bool] = True

    def key(self, snapshot: Snapshot) -> Any:
        return -snapshot.jobs.priority


def job(name: str, arrival: float, priority: int, gpus: int = 2, duration: float = 1000.0) -> dict[str, Any]:
    return {"job": name, "arrival": arrival, "gpus": gpus, "duration": duration, "priority": priority}


def stopped(run: Run) -> list[str]:
    return run.allocations.filter(run.allocations["reason"] == "preempted")["job"].to_list()


# 'saved' has saved at 300 and 600 (every 300 s of its run), 'fresh' began at 250: at 610 they lose 10 s and 60 s on two devices each
STORY = [job("saved", 0.0, 2), job("fresh", 250.0, 1), job("urgent", 610.0, 9, duration=50.0)]
SAVES = {"costs": "checkpoint=300", "until": 650.0}


@pytest.mark.parametrize("executor", ["instant", "acknowledged"])
@pytest.mark.parametrize("placement", ["first-free", "consolidated"])
def test_what_loses_least_is_stopped_although_it_ranks_higher(executor: str, placement: str) -> None:
    options = {**SAVES, "executor": executor, "placement": placement}
    assert stopped(simulate(STORY, "2x2", ByPriority(), **options)) == ["fresh"]
    assert stopped(simulate(STORY, "2x2", ByPriority(), **options, victims="least-lost")) == ["saved"]


def test_devices_count() -> None:
    wide = [job("wide", 0.0, 1, 6), job("narrow", 0.0, 2, 2), job("urgent", 100.0, 9, 2, 50.0)]
    assert stopped(simulate(wide, "1x8", ByPriority(), costs="checkpoint=500", until=120.0)) == ["wide"]
    assert stopped(simulate(wide, "1x8", ByPriority(), costs="checkpoint=500", until=120.0, victims="least-lost")) == ["narrow"]


def test_a_victim_waits_for_free_devices_and_does_not_stop_what_was_spared() -> None:
    late = [*STORY, job("last", 800.0, 9, duration=900.0)]
    run = simulate(late, "2x2", ByPriority(), costs="checkpoint=300", victims="least-lost", until=900.0)
    held = run.allocations.select("job", "start", "end").rows()
    assert [one[1:] for one in held if one[0] == "saved"] == [(0.0, 610.0), (660.0, 800.0)]  # 'urgent' ends at 660
    assert [one[1:] for one in held if one[0] == "fresh"] == [(250.0, 900.0)]  # its last save is of 550, that of 'saved' of 610


def test_nothing_that_ranks_higher_is_ever_stopped() -> None:
    higher = [job("high", 0.0, 5), job("low", 250.0, 1), job("middle", 610.0, 3, duration=50.0)]
    assert stopped(simulate(higher, "2x2", ByPriority(), **SAVES, victims="least-lost")) == ["low"]


def test_where_nothing_is_lost_the_lowest_rank_gives_way() -> None:
    plain = simulate(STORY, "2x2", ByPriority(), victims="order")
    assert simulate(STORY, "2x2", ByPriority(), victims="least-lost").summary["log_hash"] == plain.summary["log_hash"]


@pytest.mark.parametrize("policy", ["las", "srtf", "tiresias"])
def test_policies_with_compiled_loops_follow_it_too(policy: str) -> None:
    jobs = [job(f"j{k}", 40.0 * k, k % 3, 1 + k % 3, 100.0 + 70.0 * (k * 7 % 5)) for k in range(12)]
    options: dict[str, Any] = {"costs": "checkpoint=90,resume=5"}
    runs = [simulate(jobs, "1x4", policy, **options, victims="least-lost", executor=one) for one in ("instant", "acknowledged")]
    assert runs[0].summary["log_hash"] == runs[1].summary["log_hash"]
    assert runs[0].summary["completed"] == len(jobs)


def test_it_is_refused_where_there_is_no_choice() -> None:
    with pytest.raises(RefusedError, match="'afs' assigns devices: its plans name what is stopped, and leave no choice"):
        simulate(STORY, "2x2", "afs", victims="least-lost")
    with pytest.raises(RefusedError, match="regime 'blox' says itself"):
        simulate(STORY, "2x2", "las", regime="blox", victims="least-lost")
    with pytest.raises(NotFoundError, match="no rule 'least'"):
        simulate(STORY, "2x2", "las", victims="least")


def test_a_policy_without_a_choice_cannot_be_switched_to() -> None:
    with pytest.raises(RefusedError, match="leave no choice"):
        simulate(STORY, "2x2", "las", victims="least-lost", inputs=[Use(10.0, "afs")])


def fits(need: int, free: list[int], whole: bool) -> bool:
    """Whether a gang finds room: on one node, where it must be on as few as it can, else anywhere."""
    return max(free) >= need if whole and need <= SIZE else sum(free) >= need


SIZE = 8


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("placement", ["first-free", "consolidated"])
def test_no_gang_is_stopped_that_the_others_make_needless(placement: str, nodes: int) -> None:
    """Whoever is stopped for the urgent job could not have stayed: with its devices and those of all spared, there is no room."""
    several = 0
    for seed in range(25):
        draw = np.random.default_rng(seed)
        jobs = [job(f"j{k}", 40.0 * k, int(draw.integers(5)), int(draw.integers(1, 6)), 9000.0) for k in range(9)]
        need = int(draw.integers(2, SIZE + 1))
        run = simulate(
            [*jobs, job("urgent", 700.0, 9, need, 50.0)], f"{nodes}x{SIZE}", ByPriority(), costs=f"checkpoint={draw.integers(60, 600)}",
            until=720.0, victims="least-lost", placement=placement,
        )  # fmt: skip
        held = [one for one in run.allocations.select("job", "start", "end", "devices").rows() if one[0] != "urgent"]
        if any(one[1] == 700.0 for one in held):
            continue  # what is left over lets another job in, which may stop gangs of its own
        before = [one for one in held if one[1] < 700.0 <= one[2]]
        victims = [one for one in before if one[2] == 700.0]
        free = [SIZE] * nodes
        for _, _, _, devices in before:
            for device in devices:
                free[device // SIZE] -= 1
        several += len(victims) > 1
        for spared in victims:
            others = [device for one in victims if one is not spared for device in one[3]]
            room = [count + sum(device // SIZE == node for device in others) for node, count in enumerate(free)]
            assert not fits(need, room, placement == "consolidated"), f"seed {seed}: {spared[0]}"
    assert several > 0
