"""A group that starts whole or not at all: Muri's groups, Lucid's pairs from the queue."""

from __future__ import annotations

from dataclasses import dataclass

from tests.probes.scenario import FOREVER, job

from gantline import Assignment, Mode, Plan, Policy, Snapshot
from gantline.core.columns import Job
from gantline.core.reasons import Reason
from gantline.simulator.simulate import simulate


@dataclass(frozen=True)
class Pair(Policy):
    """The first job alone, the next two as a pair."""

    together: bool = True

    def decide(self, snapshot: Snapshot) -> Plan:
        rows = []
        for position, name in enumerate(snapshot.jobs.ids):
            pair = name != "host"
            mode = Mode.SPACE if pair else Mode.EXCLUSIVE
            rows.append(Assignment(position, group=1 if pair else -1, mode=mode, together=pair and self.together))
        return Plan.assign(rows, valid_until=FOREVER)


JOBS = [job("host", 1, 50), job("slim", 1, 30), job("wide", 2, 30)]


def test_each_member_has_a_reason() -> None:
    run = simulate(JOBS, "1x2", Pair(), until=10.0)

    reasons = run.tables.I[Job.REASON][:3].tolist()
    assert reasons == [Reason.NONE, Reason.TOGETHER, Reason.RESOURCES]
