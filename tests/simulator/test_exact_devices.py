"""Plans that name every device: what a policy reads of them, and that a decision costs what changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.engine.states import commit, engine_of
from tests.jobs import job_row

from gantline import Assignments, Plan
from gantline.core.columns import Job
from gantline.core.phases import PENDING
from gantline.core.plan import Assignment, Mode
from gantline.engine.engine import Engine


def test_a_policy_reads_the_devices_of_all_in_rank_order() -> None:
    rows = [job_row(f"j{k}", gpus) for k, gpus in enumerate((2, 1, 3, 1, 1))]
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


def exact(engine: Engine, *devices: tuple[int, ...], at: float) -> None:
    """Everybody who is still there is told its devices, nobody anything else."""
    engine.state.now, places = at, np.arange(len(devices))
    engine.commit(Plan.assign(Assignments(places, devices=devices)))


def test_who_names_devices_is_looked_at_whenever_something_has_happened_to_it() -> None:
    """An option in force, a ranking in between and a lock are no devices that somebody keeps."""
    rows = [job_row(f"j{k}", 2, 1000.0, min_gpus=1, max_gpus=3) for k in range(3)]
    engine = engine_of(rows, "2x4")
    t, grants = engine.state.tables, engine.grants
    exact(engine, (0, 1), (2, 3), (4, 5), at=0.0)
    t.I[Job.LOCKED, 0] = 1
    commit(engine, Assignments([1, 2], gpus=[3, 2]), at=10.0)
    assert len(grants.devices(1)) == 3
    t.I[Job.LOCKED, 0] = 0
    exact(engine, (0, 1), (), (), at=20.0)  # no device named: as its option says
    assert len(grants.devices(1)) == 2
    exact(engine, (0, 1), grants.devices(1), (4, 5), at=30.0)
    t.I[Job.LOCKED, 0] = 1
    engine.commit(Plan.rank(np.arange(3.0)))
    assert set(grants.by_row) == {0}
    t.I[Job.LOCKED, 0] = 0
    exact(engine, (0, 1), grants.devices(1), (4, 5), at=40.0)
    assert set(grants.by_row) == {0, 1, 2}  # exact again, although their devices are what they were
    t.I[Job.LOCKED, 2] = 1
    exact(engine, (0, 1), grants.devices(1), (6, 7), at=50.0)
    assert grants.devices(2) == (4, 5)
    t.I[Job.LOCKED, 2] = 0
    exact(engine, (1, 0), (2, 3), (6, 7), at=60.0)
    assert [grants.devices(row) for row in range(3)] == [(1, 0), (2, 3), (6, 7)]
    exact(engine, (1, 0), (2, 3), at=70.0)
    assert t.I[Job.PHASE, 2] == PENDING
