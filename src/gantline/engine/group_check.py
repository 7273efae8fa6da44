"""Refuses plans whose groups can never be committed, before anything is changed: each mistake in words, with the jobs that it is about."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.plan import Assignments, Mode
from gantline.core.snapshot import Snapshot
from gantline.engine.plan_check import InfeasiblePlanError
from gantline.engine.regime import Regime
from gantline.engine.wanted import divides_time


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
            told = " and ".join(f"{_name(snapshot, table.job[inside[k]])} {gpus[k]}" for k in (at, at + 1))
            raise InfeasiblePlanError(f"group {group[at]} has members of unequal sizes: {told} GPUs", fix="group jobs of one size")
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
