"""Engine states for scenarios: every job of the tables has arrived and waits."""

from __future__ import annotations

from typing import Any

import numpy as np

from gantline.core.cluster import Cluster
from gantline.core.cluster_spec import parse_cluster
from gantline.core.columns import Device, Job
from gantline.core.facts import Costs, Facts
from gantline.core.phases import Phase
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.tables import Tables
from gantline.engine.engine import Engine
from gantline.engine.regime import Regime
from gantline.engine.state import State
from gantline.policies.placement.rules import find_placement
from gantline.traces.to_tables import load_tables
from gantline.traces.trace import Trace


def state_of(tables: Tables, *, placement: str = "first-free", costs: Costs | None = None, min_run: float = 0.0) -> State:
    """All rows are active and pending at time zero."""
    state = State(tables, Regime(), find_placement(placement), Facts(costs or Costs(), min_run))
    rows = tables.F.shape[1]
    tables.I[Job.PHASE] = int(Phase.PENDING)
    state.activate(np.arange(rows))
    state.rebuild()
    return state


def engine_of(
    jobs: list[dict[str, Any]], cluster: str | Cluster, *, performance: Any = None, checkpoint: float = 0.0, **more: Any
) -> Engine:
    """An engine whose plans are given by hand."""
    place = parse_cluster(cluster) if isinstance(cluster, str) else cluster
    tables = load_tables(Trace.from_records(jobs), place, checkpoint=checkpoint, sizes_bind=False)
    tables.performance = performance
    return Engine(state_of(tables, **more), Policy())


def commit(engine: Engine, rows: Any, at: float | None = None, **rest: Any) -> None:
    """Commit these assignments, at this time."""
    if at is not None:
        engine.state.now = at
    engine.state.decision += 1
    engine.commit(Plan.assign(rows, **rest))


def columns_of(engine: Engine) -> list[Any]:
    """What a row has, as far as it means anything for rows that wait."""
    t = engine.state.tables
    waits = t.I[Job.PHASE] == int(Phase.PENDING)
    F = t.F.copy()
    F[[Job.SPEED_UNTIL, Job.DUE]] = np.where(waits, 0.0, F[[Job.SPEED_UNTIL, Job.DUE]])
    option, I = t.I[Job.OPTION], t.I.copy()
    I[Job.OPTION] = option >= 0  # derived options are numbered as they are first looked up
    return [
        t.D[Device.HOLDER],
        t.NI,
        t.NF,
        I,
        F,
        np.where(option >= 0, t.options.F[:, option], 0.0),
        np.where(option >= 0, t.options.I[:, option], 0),
    ]
