"""Groups as columns: a model computes the period of a Muri group once per group, whichever member it is asked about."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.probes.scenario import FOREVER, fact, job

from gantline.core.arrays import Floats
from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.models.model import Gangs, PerformanceModel
from gantline.simulator.simulate import simulate


@dataclass(frozen=True)
class InPairs(Policy):
    """Two jobs a group in order of arrival; the later one begins a stage later, or earlier."""

    sign: int = 1

    def decide(self, snapshot: Snapshot) -> Plan:
        rows = [
            Assignment(k, group=row // 2, mode=Mode.INTERLEAVE, offset=float(self.sign * (row % 2)))
            for k, row in enumerate(snapshot.jobs.rows.tolist())
        ]
        return Plan.assign(rows, valid_until=FOREVER)


@dataclass(frozen=True)
class Periods(PerformanceModel):
    """Two stages; in each slot a group takes as long as the longest stage that runs then. `asked` counts what was computed."""

    expires: float = np.inf
    asked: list[list[int]] = field(default_factory=list)
    places: list[list[int]] = field(default_factory=list)

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        stages = np.stack([gangs.metric("load"), gangs.metric("crunch")], axis=1)
        now = np.where((gangs.place % 2 == 1)[:, None], stages[:, ::-1], stages)
        groups = int(gangs.group.max(initial=-1)) + 1
        slots = np.zeros((groups, 2))
        np.maximum.at(slots, gangs.group, now)
        self.asked.append(np.bincount(gangs.group, minlength=groups).tolist())
        self.places.append(gangs.place.tolist())
        until = np.where(gangs.rows == 0, gangs.now + self.expires, np.inf)
        return gangs.alone * stages.sum(axis=1) / slots.sum(axis=1)[gangs.group], until


PAIRS = [
    job("a", 1, 120, load=2, crunch=1),
    job("b", 1, 90, load=1, crunch=2),  # beside a, shifted: nothing meets
    job("c", 1, 120, load=2, crunch=1),
    job("d", 1, 60, load=2, crunch=1),  # beside c, shifted: four seconds a period instead of three
]


def test_each_group_has_the_period_of_its_own_members() -> None:
    run = simulate(PAIRS, "1x2", InPairs(), performance=Periods())

    assert [fact(run, name, "finish") for name in "abcd"] == pytest.approx([120.0, 90.0, 140.0, 80.0])


def test_a_speed_that_expires_for_one_member_is_asked_for_with_its_whole_group() -> None:
    model = Periods(expires=50.0)

    simulate(PAIRS[:2], "1x2", InPairs(), performance=model)

    assert model.asked[:2] == [[2], [2]]  # the second time because the speed of a has expired


@pytest.mark.parametrize(("sign", "places"), [(1, [0, 1, 0, 1]), (-1, [1, 0, 1, 0]), (0, [0, 1, 0, 1])])
def test_the_place_in_a_group_is_by_offset_and_then_by_row(sign: int, places: list[int]) -> None:
    model = Periods()

    simulate(PAIRS, "1x2", InPairs(sign), performance=model)

    assert model.places[0] == places
