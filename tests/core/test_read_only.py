"""A policy sees copies: nothing that it can reach leads to the engine's tables, and nothing that it is handed can be written to."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gantline import OrderPolicy, Plan, Policy, Snapshot, simulate
from gantline.core.cluster_now import ClusterNow
from gantline.core.columns import JobTable
from gantline.core.errors import GantlineError
from gantline.core.snapshot import Jobs
from gantline.core.snapshot_view import Lent
from gantline.core.tables import Tables, tables_behind
from gantline.traces.trace import Trace

JOBS = Trace.from_records([{"job": f"j{k}", "gpus": 1 + k % 2, "arrival": float(k), "duration": 70.0 + k} for k in range(6)])


@dataclass(frozen=True)
class Looks(Policy):
    """Keeps its snapshots, and runs whoever fits."""

    seen: Any = None

    def decide(self, snapshot: Snapshot) -> Plan:
        self.seen.append(snapshot)
        for name in dir(snapshot.jobs):
            if not name.startswith("__"):
                getattr(snapshot.jobs, name)
        return Plan.rank(snapshot.jobs.arrival)


def one_snapshot() -> Snapshot:
    seen: list[Snapshot] = []
    simulate(JOBS, "1x4", Looks(seen), estimates="none", until=10.0)
    return seen[-1]


def reachable(start: object) -> list[object]:
    """Everything that attributes, items and slots lead to, private names included; code and modules are not data.

    Only what `Lent` guards is left out: its methods copy, and its private name is for `tables_behind`.
    """
    found: dict[int, object] = {}
    todo = [start]
    while todo:
        value = todo.pop()
        if id(value) in found or isinstance(value, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)):
            continue
        found[id(value)] = value
        if isinstance(value, (list, tuple, set, frozenset)):
            todo += list(value)
        elif isinstance(value, dict):
            todo += list(value.values())
        elif not isinstance(value, (str, int, float, np.generic, types.MethodType)):
            guarded = "_tables" if isinstance(value, Lent) else "__"
            names = [name for name in dir(value) if not name.startswith(("__", guarded))] if not isinstance(value, np.ndarray) else ["base"]
            for name in names:
                try:
                    todo.append(getattr(value, name))
                except (AttributeError, GantlineError, TypeError):
                    continue
    return list(found.values())


def test_nothing_leads_from_a_snapshot_to_the_tables() -> None:
    snapshot = one_snapshot()
    tables = tables_behind(snapshot)
    matrices = (tables.F, tables.I, tables.NF, tables.NI, tables.D, tables.options.F, tables.options.I)
    things = reachable(snapshot)
    assert len(things) > 50  # it did look around
    for thing in things:
        assert not isinstance(thing, Tables)
        if isinstance(thing, np.ndarray):
            assert not any(np.shares_memory(thing, matrix) for matrix in matrices)


@pytest.mark.parametrize("kind", [Jobs, ClusterNow])
def test_every_column_is_read_only(kind: type) -> None:
    snapshot = one_snapshot()
    owner = snapshot.jobs if kind is Jobs else snapshot.cluster
    columns = {name: getattr(owner, name) for name in dir(kind) if isinstance(getattr(kind, name), property)}
    arrays = {name: value for name, value in columns.items() if isinstance(value, np.ndarray)}
    assert len(arrays) > (25 if kind is Jobs else 8)
    for name in ("running", "waiting", "rate", "remaining", "option", "reason", "type", "rows") if kind is Jobs else ("node_free",):
        value = getattr(owner, name)
        with pytest.raises(ValueError, match="read-only"):
            value[...] = 0
    derived = {"capacity", "device_open", "free_of_type", "node_up"}  # computed anew at every reading
    assert [name for name, value in arrays.items() if value.flags.writeable and name not in derived] == []


def test_true_durations_cannot_be_read_without_estimates() -> None:
    snapshot = one_snapshot()
    truth = tables_behind(snapshot).jobs.work
    F, _ = snapshot.jobs.matrices()
    for column in (JobTable.work, JobTable.due, JobTable.finish):
        assert np.isnan(F[column.place]).all()
        with pytest.raises(GantlineError):
            snapshot.lent.column(column, np.arange(2))
    floats = [value for value in reachable(snapshot) if isinstance(value, np.ndarray) and value.dtype == np.float64 and value.size]
    assert not any(np.isin(truth, value).any() for value in floats)


@dataclass(frozen=True)
class Cheats(OrderPolicy):
    """Writes to everything it can get hold of, or does not."""

    force: bool = True

    def key(self, snapshot: Snapshot) -> Any:
        jobs, cluster = snapshot.jobs, snapshot.cluster
        handed = (jobs.remaining, jobs.running, jobs.arrival, jobs.rows, cluster.node_free, snapshot.options.F, *jobs.matrices())
        for column in handed if self.force else ():
            own = column.base if isinstance(column.base, np.ndarray) else column
            try:
                own.flags.writeable = True
                own[...] = 1
            except ValueError:
                continue
        return np.arange(len(jobs), dtype=np.float64)


def test_a_policy_that_writes_by_force_changes_only_its_own_copies() -> None:
    honest = simulate(JOBS, "1x4", Cheats(force=False)).jobs
    cheated = simulate(JOBS, "1x4", Cheats()).jobs
    assert cheated.select("job", "finish").equals(honest.select("job", "finish"))
