"""A Muri group: jobs on the same GPUs, each shifted by a stage so that their bottlenecks do not meet (Zhao et al., SIGCOMM 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.probes.scenario import FOREVER, job, spans

from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.models.model import Gang, PerformanceModel
from gantline.simulator.simulate import simulate

STAGES = {"loader": (2.0, 1.0), "cruncher": (1.0, 2.0)}  # seconds of (storage and CPU, GPU) per iteration


@dataclass(frozen=True)
class Stages(PerformanceModel):
    """Period of a group: in each slot the longest of the stages that run then; a job's offset is the stage it starts with."""

    def granted(self, gang: Gang) -> float:
        assert gang.grant is not None
        group = [(gang.model, gang.grant.assignment.offset), *((mate.model, mate.grant.assignment.offset) for mate in gang.mates)]
        if len(group) == 1:
            return 1.0
        period = sum(max(STAGES[model][(slot - round(offset)) % 2] for model, offset in group) for slot in range(2))
        return sum(STAGES[group[0][0]]) / period


@dataclass(frozen=True)
class Interleave(Policy):
    """Everybody in one group; the second job starts a stage later."""

    shift: float = 1.0
    devices: tuple[int, ...] = ()

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs = range(len(snapshot.jobs))
        rows = [Assignment(k, group=7, mode=Mode.INTERLEAVE, offset=k * self.shift, devices=self.devices) for k in jobs]
        return Plan.assign(rows, valid_until=FOREVER)


JOBS = [job("a", 2, 300, model="loader"), job("b", 2, 150, model="cruncher")]


def test_an_offset_changes_in_place() -> None:
    @dataclass(frozen=True)
    class LearnsLater(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            learned = snapshot.now >= 100
            inner = Interleave(shift=1.0 if learned else 0.0).decide(snapshot)
            return Plan.assign(list(inner.assignments or ()), valid_until=FOREVER if learned else 100.0)

    run = simulate(JOBS, "1x4", LearnsLater(), performance=Stages())

    assert spans(run, "b") == [(0.0, pytest.approx(175.0), [0, 1], "finished")]  # 75 done by 100 s, then at full speed
