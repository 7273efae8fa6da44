"""From one instant onwards: what becomes of the jobs of a snapshot if their work is so and so much.

A snapshot holds no truth, so whoever asks says how much work each job has in all. The policy sees what it would see: its estimates, its
memory, the clock. Nobody new arrives, unless given as inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from gantline.assembly.guard import guard_of
from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.costs import Costs
from gantline.core.errors import RefusedError
from gantline.core.inputs import Input
from gantline.core.insiders import tables_behind
from gantline.core.phases import Phase
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot, encode_snapshot
from gantline.drivers.virtual import Simulation
from gantline.engine import lists as ls
from gantline.engine.engine import Engine
from gantline.engine.gang import set_due
from gantline.engine.log import L_ROW, L_START
from gantline.engine.regime import Regime
from gantline.engine.state import State
from gantline.placement.rules import PlacementRule, find_placement

_LEAST = 1e-6  # work that is left of a job that must have had all of it: it has not been seen to end


@dataclass(frozen=True)
class Rolled:
    """What became of each job, by position in the snapshot; infinity: not within the horizon."""

    start: Floats  # when it next holds devices; now, for those who hold some
    finish: Floats
    decisions: int
    incidents: tuple[str, ...] = ()


def rollout(
    snapshot: Snapshot,
    policy: Policy,
    work: Floats | None = None,
    horizon: float = math.inf,
    *,
    placement: PlacementRule | str = "first-free",
    costs: Costs | None = None,
    inputs: Iterable[Input] = (),
) -> Rolled:
    """Roll the snapshot forward under the policy; `work` is the total work of each job (None: as estimated), `costs` are others than
    the snapshot's. The snapshot is left alone.

    A policy that loses nothing but turns is refused: that nobody starts says nothing about the jobs.
    """
    copy = decode_snapshot(encode_snapshot(snapshot), snapshot.performance)
    rows, tables = copy.jobs.rows, tables_behind(copy)
    rule = find_placement(placement) if isinstance(placement, str) else placement
    facts = copy.facts if costs is None else replace(copy.facts, costs=costs)
    state = State(
        tables, Regime(round=copy.round), rule, facts.costs, facts.min_run, copy.seed, copy.now, copy.decision - 1, latency=facts.latency,
        prices=facts.prices,
    )  # fmt: skip
    state.memory, state.learned = copy.memory, copy.learned
    F, I = tables.F, tables.I
    if work is not None:
        F[c.WORK, rows] = work
    _settle_flights(state, rows)
    done = F[c.DONE, rows] + F[c.RATE, rows] * np.maximum(0.0, copy.now - F[c.SINCE, rows])
    F[c.WORK, rows] = np.maximum(F[c.WORK, rows], done + _LEAST)
    for row in rows.tolist():
        set_due(F, row)
    state.activate(rows)
    state.lists.number[ls.NEXT] = state.lists.number[ls.HELD] = len(tables.ids)
    state.reserve(copy.reservations, rows)
    state.rebuild()
    engine = Engine(state, policy, guard=guard_of(policy, None))
    events = tuple(sorted(inputs, key=lambda value: value.time))
    run = _FromHere(engine, until=copy.now + horizon, node_events=events, latency=facts.latency)
    run.watched = rows if run.node_events else None
    run.agenda.answered()  # appointments count from here
    run.agenda.touch()
    held = np.array([Phase(int(phase)).holds_devices for phase in I[c.PHASE, rows]], dtype=bool)
    run.run()
    if engine.turns.hopeless:
        raise RefusedError(f"policy '{type(policy).__name__}' decides nothing from here on: {engine.incidents[0].what}", where="rollout")
    log = state.log
    start = np.full(tables.F.shape[1], np.inf)
    np.minimum.at(start, log.LI[L_ROW, : log.intervals], log.LF[L_START, : log.intervals])
    finish = tables.F[c.FINISH, rows]  # jobs that came meanwhile may have made the tables grow
    return Rolled(
        np.where(held, copy.now, start[rows]),
        np.where(np.isnan(finish), np.inf, finish),
        engine.decisions,
        tuple(map(str, engine.incidents)),
    )


class _FromHere(Simulation):
    """The compiled loops begin with an empty cluster; this run begins in the middle, and ends when those who are watched have ended."""

    watched: Ints | None = None

    def _needs_no_python(self) -> bool:
        return False

    def _tracked_done(self) -> bool:
        return self.watched is not None and not np.isnan(self.state.tables.F[c.FINISH, self.watched]).any()


def _settle_flights(state: State, rows: Ints) -> None:
    """Orders that are on their way are as good as carried out."""
    I = state.tables.I
    for row in rows.tolist():
        phase = Phase(int(I[c.PHASE, row]))
        if phase in (Phase.STARTING, Phase.RESIZING):
            I[c.PHASE, row] = int(Phase.RUNNING)
        elif phase in (Phase.CHECKPOINTING, Phase.STOPPING):
            I[c.PHASE, row] = int(Phase.PENDING)
