"""Plans that name every device: what a policy reads of them, and that a decision costs what changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.exact_devices import FirstFree, jobs
from tests.engine.states import commit, engine_of

from gantline import Assignments, Plan, simulate
from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.phases import PENDING
from gantline.core.plan import Assignment, Mode
from gantline.engine.commit_groups import CommitGroups
from gantline.engine.commit_steps import Commit
from gantline.engine.engine import Engine
from gantline.engine.grants import Grants
from gantline.engine.holdings import Holding, Holdings
from gantline.engine.transitions import Transitions


def test_a_policy_reads_the_devices_of_all_in_rank_order() -> None:
    rows = [{"job": f"j{k}", "arrival": 0.0, "gpus": gpus, "duration": 100.0} for k, gpus in enumerate((2, 1, 3, 1, 1))]
    engine = engine_of(rows, "2x4")
    together: dict[str, Any] = {"group": 0, "mode": Mode.SPACE, "fraction": 0.5, "devices": (6,)}
    wanted = [Assignment(0, devices=(3, 1)), Assignment(2, devices=(7, 0, 5)), Assignment(3, **together), Assignment(4, **together)]
    commit(engine, wanted)
    seen = engine.state.snapshot().jobs
    assert [seen.devices(k) for k in range(5)] == [(3, 1), (), (7, 0, 5), (6,), (6,)]
    assert seen.devices(-1) == (6,)
    assert seen.devices(np.int64(-3)) == (7, 0, 5)
    with pytest.raises(IndexError):
        seen.devices(5)


def test_a_commit_is_about_those_who_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 60 jobs is started once; only the first needs a whole commit, and the devices of the others are not read one by one."""
    started, committed, chains = [], [], []
    start, chain = Transitions.start, Holdings.chain

    def count_start(self: Transitions, row: int, target: Holding) -> None:
        started.append(row)
        start(self, row, target)

    def count_rows(way: Any) -> None:
        whole = way.__init__

        def counted(self: Any, grants: Grants, rows: Ints, *rest: Any, **named: Any) -> None:
            committed.extend(rows.tolist())
            whole(self, grants, rows, *rest, **named)

        monkeypatch.setattr(way, "__init__", counted)

    def count_chain(self: Holdings, row: int) -> tuple[int, ...]:
        chains.append(row)
        return chain(self, row)

    monkeypatch.setattr(Transitions, "start", count_start)
    count_rows(Commit)
    count_rows(CommitGroups)
    monkeypatch.setattr(Holdings, "chain", count_chain)
    run = simulate(jobs(60), "64x8", FirstFree())
    assert run.summary["completed"] == 60
    assert run.summary["decisions"] >= 100
    assert started == list(range(1, 60))  # the whole commit is compiled, the start of the first job with it
    assert (committed, chains) == ([0], [0])  # its grant, entered as columns, is made when the policy first reads devices


def exact(engine: Engine, *devices: tuple[int, ...], at: float) -> None:
    """Everybody who is still there is told its devices, nobody anything else."""
    engine.state.now, places = at, np.arange(len(devices))
    engine.commit(Plan.assign(Assignments(places, devices=devices)))


def test_who_names_devices_is_looked_at_whenever_something_has_happened_to_it() -> None:
    """An option in force, a ranking in between and a lock are no devices that somebody keeps."""
    rows = [{"job": f"j{k}", "arrival": 0.0, "gpus": 2, "min_gpus": 1, "max_gpus": 3, "duration": 1000.0} for k in range(3)]
    engine = engine_of(rows, "2x4")
    t, grants = engine.state.tables, engine.grants
    exact(engine, (0, 1), (2, 3), (4, 5), at=0.0)
    t.I[c.LOCKED, 0] = 1
    commit(engine, Assignments([1, 2], gpus=[3, 2]), at=10.0)
    assert len(grants.devices(1)) == 3
    t.I[c.LOCKED, 0] = 0
    exact(engine, (0, 1), (), (), at=20.0)  # no device named: as its option says
    assert len(grants.devices(1)) == 2
    exact(engine, (0, 1), grants.devices(1), (4, 5), at=30.0)
    t.I[c.LOCKED, 0] = 1
    engine.commit(Plan.rank(np.arange(3.0)))
    assert set(grants.by_row) == {0}
    t.I[c.LOCKED, 0] = 0
    exact(engine, (0, 1), grants.devices(1), (4, 5), at=40.0)
    assert set(grants.by_row) == {0, 1, 2}  # exact again, although their devices are what they were
    t.I[c.LOCKED, 2] = 1
    exact(engine, (0, 1), grants.devices(1), (6, 7), at=50.0)
    assert grants.devices(2) == (4, 5)
    t.I[c.LOCKED, 2] = 0
    exact(engine, (1, 0), (2, 3), (6, 7), at=60.0)
    assert [grants.devices(row) for row in range(3)] == [(1, 0), (2, 3), (6, 7)]
    exact(engine, (1, 0), (2, 3), at=70.0)
    assert t.I[c.PHASE, 2] == PENDING
