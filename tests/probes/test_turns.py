"""Gandiva's turns: gangs of one rotation, of which the policy leaves out those that wait for theirs (Xiao et al., OSDI 2018)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.probes.scenario import fact, job, spans

from gantline import Assignment, Costs, Mode, Plan, Policy, Snapshot
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


def test_a_turn_that_ends_is_no_preemption_and_the_next_one_pays_the_switch() -> None:
    run = simulate(JOBS, "1x1", OneAfterTheOther(), costs=Costs(start=10.0, resume=30.0, switch=1.0))

    assert [why for _, _, _, why in spans(run, "b")][:2] == ["turn", "turn"]
    assert [fact(run, name, "preemptions") for name in "abc"] == [0, 0, 0]
    assert spans(run, "a")[0] == (0.0, 50.0, [0], "turn")  # 40 of 100 done after the start
    assert fact(run, "a", "finish") == pytest.approx(300.0 + 1.0 + (100.0 - 40.0 - 49.0))  # the second turn and the third pay a second each
    assert fact(run, "a", "restarts") == len(spans(run, "a")) - 1


def test_a_job_that_leaves_the_group_for_one_outside_it_is_preempted() -> None:
    class Outsider(OneAfterTheOther):
        def decide(self, snapshot: Snapshot) -> Plan:
            late = snapshot.now >= 40.0
            return Plan.assign([Assignment(1) if late else Assignment(0, group=3, mode=Mode.TIME)], valid_until=1e9 if late else 40.0)

    run = simulate(JOBS[:2], "1x1", Outsider(), until=60.0)

    assert spans(run, "a")[0] == (0.0, 40.0, [0], "preempted")
    assert fact(run, "a", "preemptions") == 1


@dataclass(frozen=True)
class PairsInTurns(Policy):
    """Two pairs and one job alone, each with the device to itself for fifty seconds."""

    turns: int = 2

    def decide(self, snapshot: Snapshot) -> Plan:
        beat, ids = int(snapshot.now // 50.0), list(snapshot.jobs.ids)
        there = [names for names in ("ab", "cd", "e") if set(names).intersection(ids)]
        chosen = [ids.index(name) for name in there[beat % len(there)] if name in ids] if there else []
        mode = Mode.SPACE if len(chosen) > 1 else Mode.EXCLUSIVE
        rows = [Assignment(job, devices=(0,), mode=mode, turns=self.turns) for job in chosen]
        return Plan.assign(rows, valid_until=50.0 * (beat + 1))


def test_pairs_and_gangs_of_their_own_take_turns_in_one_rotation() -> None:
    jobs = [job(name, 1, 100) for name in "abcde"]

    run = simulate(jobs, "1x1", PairsInTurns(), costs=Costs(start=10.0, resume=30.0, switch=1.0))

    for name in "ace":
        assert {why for _, _, _, why in spans(run, name)[:-1]} == {"turn"}
    assert [fact(run, name, "preemptions") for name in "abcde"] == [0, 0, 0, 0, 0]
    # e has 40 s of its first turn and 49 s of its second; in its third it pays the switch again
    assert fact(run, "e", "finish") == pytest.approx(400.0 + 1.0 + (100.0 - 40.0 - 49.0))


def test_without_a_rotation_the_same_stops_are_preemptions() -> None:
    run = simulate([job(name, 1, 100) for name in "abcde"], "1x1", PairsInTurns(turns=-1), until=400.0)

    assert [fact(run, name, "preemptions") for name in "abcde"] == [3, 3, 3, 3, 1]
