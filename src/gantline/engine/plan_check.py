"""Refuses invalid plans before anything is changed, in words; and adjusts plans that come late, or that put several gangs on a
device where an executor puts one.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from numbers import Real

import numpy as np

from gantline.core import memory as memories
from gantline.core.arrays import Bools, Ints
from gantline.core.errors import GantlineError, near
from gantline.core.phases import PENDING
from gantline.core.plan import PURPOSES, Assignment, Assignments, Mode, Plan
from gantline.core.reasons import Reason
from gantline.core.snapshot import Snapshot
from gantline.core.tables import Tables
from gantline.engine.commit.request import divides_time
from gantline.engine.regime import Regime

FEW = 1024  # up to this many rows, reservations or notes are always accepted


class InfeasiblePlanError(GantlineError):
    """The plan asks for something impossible."""


def check_plan(snapshot: Snapshot, plan: Plan) -> None:
    """Whether a plan is about the jobs and nodes of its snapshot, and of a plausible size."""
    if not isinstance(plan, Plan):
        raise InfeasiblePlanError(f"the policy answered with a {type(plan).__name__}", fix="return a gantline Plan")
    n = len(snapshot.jobs)
    if plan.ranking is not None:
        key = plan.ranking.key
        if key.shape != (n,):
            raise InfeasiblePlanError(f"the ranking has shape {key.shape} for {n} jobs", fix="one key per job of the snapshot")
        if np.isnan(key).any():
            raise InfeasiblePlanError("the ranking has a key that is not a number", fix="use +inf for 'not now'")
        if not isinstance(plan.ranking.placement, str | None):
            what = f"the ranking's placement is a {type(plan.ranking.placement).__name__}"
            raise InfeasiblePlanError(what, fix="the name of a placement rule, or None for the run's")
    if plan.assignments is not None:
        _check_assignments(plan.assignments, n, len(snapshot.cluster.types))
    if plan.refusals or plan.reservations or plan.release:
        _check_rest(plan, n, snapshot.cluster.nodes)
    until = plan.valid_until
    if until is not None and (not isinstance(until, Real) or math.isnan(until)):
        raise InfeasiblePlanError(f"valid_until is {until!r}", fix="a time, or None for 'ask again next round'")
    if len(plan.notes) > FEW:
        raise InfeasiblePlanError(f"the plan has {len(plan.notes)} notes", fix="say what people should know in a few")
    if plan.memory is not None:
        memories.check(plan.memory)


def _check_assignments(table: Assignments, jobs: int, types: int) -> None:
    job = table.job
    if len(job) and (job.min() < 0 or job.max() >= jobs):
        wrong = int(job.max()) if job.max() >= jobs else int(job.min())
        raise InfeasiblePlanError(f"an assignment names job {wrong} of {jobs}", fix="use positions in snapshot.jobs")
    if table.has("purpose"):
        for purpose in dict.fromkeys(table.entries("purpose")):
            if purpose not in PURPOSES:
                raise InfeasiblePlanError(f"an assignment has the purpose {purpose!r}", fix=near(str(purpose), PURPOSES))
    if table.has("span") and len(job) and table.column("span").min() < 0:
        raise InfeasiblePlanError(f"a gang is to span {table.column('span').min()} nodes", fix="a number of nodes, or 0 for any")
    if not table.has("share"):
        if len(job) and np.bincount(job).max() > 1:
            raise InfeasiblePlanError("a job is assigned twice", fix="one assignment per job")
    elif len(job) > max(FEW, 4 * jobs * jobs * max(types, 1)):  # more than every pair of jobs on every type
        raise InfeasiblePlanError(f"{len(job)} assignments for {jobs} jobs", fix="at most one per job or pair of jobs and device type")


def _check_rest(plan: Plan, jobs: int, nodes: int) -> None:
    """Refusals, reservations and releases name what exists, each once, and no job is both refused and given something."""
    refused = [one.job for one in plan.refusals]
    for job in [*refused, *(one.job for one in plan.reservations if one.job != -1)]:
        if not 0 <= job < jobs:
            raise InfeasiblePlanError(f"a refusal or reservation names job {job} of {jobs}", fix="use positions in snapshot.jobs")
    for node in plan.release:
        if not 0 <= node < nodes:
            raise InfeasiblePlanError(f"node {node} of {nodes} is to be released", fix="nodes are counted from 0")
    if len(refused) > jobs or len(plan.release) > nodes:
        raise InfeasiblePlanError("a job is refused or a node released more than once", fix="name each once")
    if len(plan.reservations) > FEW + 64 * jobs:
        raise InfeasiblePlanError(f"{len(plan.reservations)} reservations for {jobs} jobs", fix="keep those that matter now")
    if plan.assignments is not None and not set(refused).isdisjoint(plan.assignments.job.tolist()):
        raise InfeasiblePlanError("a job is both refused and assigned something", fix="do one of the two")


# Refuses plans whose groups can never be committed, before anything is changed: each mistake in words, with the jobs
# that it is about.


def check_groups(snapshot: Snapshot, table: Assignments, regime: Regime) -> None:
    """Whether the members of each group go together, and keep to what the regime allows groups."""
    if not any(map(table.has, ("group", "mode", "together", "turns"))):
        return
    fluid = divides_time(table.job, table)
    _check_members(snapshot, table, fluid)
    if regime.equal_sizes or regime.most_asked < np.inf:
        inside = np.flatnonzero((table.column("group") >= 0) & ~fluid & (table.column("mode") != int(Mode.EXCLUSIVE)))
        if len(inside):
            _check_regime(snapshot, table, regime, inside)


def _check_members(snapshot: Snapshot, table: Assignments, fluid: Bools) -> None:
    group, mode = table.column("group"), table.column("mode")
    if table.has("share") and fluid.any():
        whole = fluid & (mode != int(Mode.EXCLUSIVE)) & (mode != int(Mode.SPACE))
        if whole.any():
            job = table.job[whole][0]
            numbers = sorted(set(group[table.job == job].tolist()))
            what = f"{_name(snapshot, job)} is in several groups ({', '.join(map(str, numbers))}), of mode {Mode(mode[whole][0]).name}"
            raise InfeasiblePlanError(what, fix="name a job once; only shares of the time, in mode SPACE, may be of several groups")
    if table.has("turns") and (both := fluid & (table.column("turns") >= 0)).any():
        what = f"{_name(snapshot, table.job[both][0])} takes turns and has a share of the time on no device in particular"
        raise InfeasiblePlanError(what, fix="leave out `turns`, or give it whole turns on devices")
    if len(mode) and mode.min() != mode.max():  # else no two members can differ
        inside = np.flatnonzero((group >= 0) & ~fluid)
        order = inside[np.argsort(group[inside], kind="stable")]
        differs = (group[order][1:] == group[order][:-1]) & (mode[order][1:] != mode[order][:-1])
        if differs.any():
            one, other = order[:-1][differs][0], order[1:][differs][0]
            what = f"group {group[one]} has members of different modes: " + " and ".join(
                f"{_name(snapshot, table.job[at])} {Mode(mode[at]).name}" for at in (one, other)
            )
            raise InfeasiblePlanError(what, fix="give all members of a group the same mode")
    if table.has("together"):
        _check_together(snapshot, table)
    if table.has("parts"):
        sharing = (mode != int(Mode.EXCLUSIVE)) & ~fluid
        for at in np.flatnonzero(sharing).tolist():
            if table.entries("parts")[at]:
                what = f"{_name(snapshot, table.job[at])} has parts and shares devices in mode {Mode(mode[at]).name}"
                raise InfeasiblePlanError(
                    what, fix="a job with parts owns its devices: leave out the mode, or name devices instead of parts"
                )


def _check_together(snapshot: Snapshot, table: Assignments) -> None:
    group, together = table.column("group"), table.column("together")
    for at in np.flatnonzero(together).tolist():
        if group[at] < 0:
            raise InfeasiblePlanError(f"{_name(snapshot, table.job[at])} is to start together and is in no group", fix="name its group")
    some = np.isin(group, group[together]) & ~together
    if some.any():
        at = int(np.flatnonzero(some)[0])
        what = f"group {group[at]} starts together, and its member {_name(snapshot, table.job[at])} does not say so"
        raise InfeasiblePlanError(what, fix="give `together` to all members of a group, or to none")


def _check_regime(snapshot: Snapshot, table: Assignments, regime: Regime, inside: Ints) -> None:
    group = table.column("group")[inside]
    order = np.argsort(group, kind="stable")
    inside, group = inside[order], group[order]
    same = group[1:] == group[:-1]
    if regime.equal_sizes:
        gpus = _sizes(snapshot, table)[inside]
        unequal = np.flatnonzero(same & (gpus[1:] != gpus[:-1]))
        if len(unequal):
            at = int(unequal[0])
            sizes = " and ".join(f"{_name(snapshot, table.job[inside[k]])} {gpus[k]}" for k in (at, at + 1))
            raise InfeasiblePlanError(f"group {group[at]} has members of unequal sizes: {sizes} GPUs", fix="group jobs of one size")
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    asked = np.add.reduceat(table.column("fraction")[inside], starts)
    beyond = np.flatnonzero(asked > regime.most_asked + 1e-9)
    if len(beyond):
        at = int(beyond[0])
        what = f"group {group[starts[at]]} asks for {asked[at]:g} of each device, and regime '{regime.name}' allows {regime.most_asked:g}"
        raise InfeasiblePlanError(what, fix="smaller fractions, or fewer members")


def _sizes(snapshot: Snapshot, table: Assignments) -> Ints:
    """Devices per assignment: as it says, else as the job asks."""
    gpus = table.column("gpus")
    found: Ints = np.where(gpus >= 0, gpus, snapshot.jobs.gpus[table.job])
    for at, devices in enumerate(table.entries("devices")) if table.has("devices") else ():
        if devices:
            found[at] = len(devices)
    return found


def _name(snapshot: Snapshot, job: int) -> str:
    return f"job '{snapshot.jobs.ids[job]}'"


# A plan that comes late: what is left of it for the jobs that are still there.


def plan_for_those_there(plan: Plan, there: Bools) -> Plan:
    """The plan without the jobs of its snapshot that are gone; jobs are counted among those that are there."""
    place = np.cumsum(there) - 1
    if plan.ranking is not None:
        plan = replace(plan, ranking=replace(plan.ranking, key=plan.ranking.key[there]))
    elif plan.assignments is not None:
        kept = [replace(item, job=int(place[item.job])) for item in plan.assignments if there[item.job]]
        plan = replace(plan, assignments=Assignments.of(kept))
    refusals = tuple(replace(one, job=int(place[one.job])) for one in plan.refusals if there[one.job])
    standing = tuple(r if r.job < 0 else replace(r, job=int(place[r.job])) for r in plan.reservations if r.job < 0 or there[r.job])
    return replace(plan, refusals=refusals, reservations=standing)


# Plans for machines whose executor puts one gang on a device: gangs that would share devices are placed apart.
#
# Such a gang gets devices of its own: those that the plan names for it, if no other gang has them, or any where the
# plan names none. One for which none are left waits, and its reason says why.

_ALONE = {"group": -1, "mode": Mode.EXCLUSIVE, "together": False, "size": 0, "fraction": 1.0, "share": 1.0, "offset": 0.0, "turns": -1}


def placed_apart(table: Assignments) -> tuple[Assignments, Ints]:
    """The plan with gangs of their own in place of those that share devices; also the positions of these."""
    if not (table.has("mode") or table.has("turns")):
        return table, np.zeros(0, dtype=np.int64)
    items = list(table)
    named = Counter(device for item in items for device in set(item.devices))
    shares = [_shares(item, named) for item in items]
    if not any(shares):
        return table, np.zeros(0, dtype=np.int64)
    apart = [replace(item, **_ALONE) if one else item for item, one in zip(items, shares)]  # type: ignore[arg-type]
    return Assignments.of(apart), table.job[np.array(shares)]


def _shares(item: Assignment, named: Counter[int]) -> bool:
    """Whether it may be on devices of others. Gangs whose phases interleave may share links only: then they name devices of their own."""
    if item.mode is Mode.INTERLEAVE and item.devices:
        return any(named[device] > 1 for device in item.devices)
    return item.mode is not Mode.EXCLUSIVE or item.turns >= 0


def write_reasons_of_apart(t: Tables, rows: Ints) -> None:
    """Rows that wait although the plan had a place for them beside others."""
    t.jobs.reason[rows[t.jobs.phase[rows] == PENDING]] = int(Reason.ONE_GANG)
