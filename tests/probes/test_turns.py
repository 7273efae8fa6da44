"""Gandiva's turns: gangs of one rotation, of which the policy leaves out those that wait for theirs (Xiao et al., OSDI 2018)."""

from __future__ import annotations

from dataclasses import dataclass

from tests.probes.scenario import fact, job, spans

from gantline import Assignment, Mode, Plan, Policy, Snapshot
from gantline.simulator.simulate import simulate


@dataclass(frozen=True)
class OneAfterTheOther(Policy):
    """One group for the whole server; whichever has run least has the next turn, alone."""

    turn: float = 50.0

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, beat = snapshot.jobs, int(snapshot.now // self.turn)
        chosen = beat % len(jobs) if len(jobs) else -1
        rows = [Assignment(chosen, group=3, mode=Mode.TIME)] if chosen >= 0 else []
        return Plan.assign(rows, valid_until=self.turn * (beat + 1))


JOBS = [job("a", 1, 100), job("b", 1, 100), job("c", 1, 100)]


def test_a_job_that_leaves_the_group_for_one_outside_it_is_preempted() -> None:
    class Outsider(OneAfterTheOther):
        def decide(self, snapshot: Snapshot) -> Plan:
            late = snapshot.now >= 40.0
            return Plan.assign([Assignment(1) if late else Assignment(0, group=3, mode=Mode.TIME)], valid_until=1e9 if late else 40.0)

    run = simulate(JOBS[:2], "1x1", Outsider(), until=60.0)

    assert spans(run, "a")[0] == (0.0, 40.0, [0], "preempted")
    assert fact(run, "a", "preemptions") == 1
