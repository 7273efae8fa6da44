"""A group that starts whole or not at all: Muri's groups, Lucid's pairs from the queue."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.probes.scenario import FOREVER, fact, job, spans

from gantline import Assignment, Mode, Plan, Policy, Snapshot
from gantline.core import columns as c
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


def test_the_small_member_waits_for_the_wide_one() -> None:
    run = simulate(JOBS, "1x2", Pair())

    assert [start for start, *_ in spans(run, "slim")] == [50.0]
    assert [start for start, *_ in spans(run, "wide")] == [50.0]
    assert fact(run, "wide", "finish") == pytest.approx(110.0)  # half speed until both are done


def test_without_the_word_it_starts_alone() -> None:
    assert spans(simulate(JOBS, "1x2", Pair(together=False)), "slim")[0][0] == 0.0


def test_each_member_has_a_reason() -> None:
    run = simulate(JOBS, "1x2", Pair(), until=10.0)

    reasons = run.tables.I[c.REASON][:3].tolist()
    assert reasons == [Reason.NONE, Reason.TOGETHER, Reason.RESOURCES]


def test_a_member_that_joins_a_running_group_needs_only_its_own_place() -> None:
    late = [job("slim", 1, 30), job("wide", 1, 30, at=10.0)]
    run = simulate(late, "1x1", Pair())

    assert spans(run, "slim")[0][:2] == (0.0, pytest.approx(50.0))
    assert spans(run, "wide")[0][0] == 10.0
