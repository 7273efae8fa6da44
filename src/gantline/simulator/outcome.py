"""What the engine would make of a plan: which jobs start, stay, move or are stopped, and why the others wait."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.columns import Job
from gantline.core.insiders import tables_behind
from gantline.core.phases import Phase
from gantline.core.plan import Misfit, Plan
from gantline.core.policy import Policy
from gantline.core.reasons import Reason, sentence
from gantline.core.snapshot import Snapshot
from gantline.engine import beside_reasons
from gantline.engine.assembly.rules import RunRules
from gantline.engine.engine import Engine
from gantline.engine.plan_check import check_plan
from gantline.simulator.from_here import copied
from gantline.traces.files.placements import GivenPlacement


@dataclass(frozen=True)
class JobOutcome:
    """What happens to one job: ``starts``, ``stays``, ``moves``, ``resizes``, ``is stopped`` or ``waits``."""

    job: str
    act: str
    devices: tuple[int, ...]
    why: str = ""


def carry_out(snapshot: Snapshot, plan: Plan, placement: GivenPlacement | None = None) -> list[JobOutcome]:
    """Commit the plan on a copy of the snapshot's state, by another placement rule than the run's; the snapshot is left alone."""
    return carry_out_on(copied(snapshot), plan, placement)


def carry_out_on(copy: Snapshot, plan: Plan, placement: GivenPlacement | None = None) -> list[JobOutcome]:
    """Commit the plan on a snapshot that was decoded for this and is not used afterwards."""
    tables, rules = tables_behind(copy), RunRules.at(copy, placement)
    state = rules.state(tables, copy.now, copy.decision)
    rows = copy.jobs.rows
    state.activate(rows)
    tables.I[Job.REASON, rows] = int(Reason.NONE)
    state.rebuild()
    engine = rules.engine(state, Policy())
    check_plan(copy, plan)
    before = [copy.jobs.devices(place) for place in range(len(rows))]
    ran = copy.jobs.running.copy()
    if tables.windows:
        engine.windows.settle()
    engine.commit(plan)
    if engine.misplaced is not None:  # what would happen is not known
        raise engine.misplaced
    return [_outcome(engine, plan, place, int(row), before[place], bool(ran[place])) for place, row in enumerate(rows)]


def _outcome(engine: Engine, plan: Plan, place: int, row: int, before: tuple[int, ...], ran: bool) -> JobOutcome:
    tables = engine.state.tables
    name, held = tables.ids[row], engine.grants.devices(row)
    reason = Reason(int(tables.I[Job.REASON, row]))
    if not Phase(int(tables.I[Job.PHASE, row])).holds_devices:
        reason = _why_it_waits(engine, plan, place, row) if reason in (Reason.NONE, Reason.ARRIVED) else reason
        why = engine.quotas.words(row) if reason in (Reason.QUOTA, Reason.OVER_QUOTA) else sentence(reason)
        why = engine.windows.words(row) if reason == Reason.WINDOW else why
        why = beside_reasons.words(tables, row) if reason in beside_reasons.LACKING else why
        return JobOutcome(name, "is stopped" if ran else "waits", (), why)
    if not ran:
        return JobOutcome(name, "starts", held)
    if held == before:
        return JobOutcome(name, "stays", held)
    return JobOutcome(name, "moves" if len(held) == len(before) else "resizes", held)


def _why_it_waits(engine: Engine, plan: Plan, place: int, row: int) -> Reason:
    """The reason of a job that the engine did not even look at."""
    state, tables = engine.state, engine.state.tables
    ranking = plan.ranking
    if ranking is None or np.isinf(ranking.key[place]):
        return Reason.DEFERRED
    rows = state.rows
    ahead = (ranking.key < ranking.key[place]) | ((ranking.key == ranking.key[place]) & (rows < row))
    if ranking.misfit == Misfit.STOP and (tables.I[Job.PHASE, rows[ahead]] == Phase.PENDING).any():
        return Reason.BLOCKED
    return Reason.PRIORITY if ranking.preempt else Reason.RESOURCES
