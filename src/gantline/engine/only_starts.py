"""Commits that only start gangs: running gangs keep what they have, and waiting ones take their turns as the plan lists them.

This is the usual step of a policy that lets gangs run to their end. The result is that of a full commit, without its general checks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import Job
from gantline.core.grant import Grant
from gantline.core.phases import PENDING
from gantline.core.plan import Assignment, Assignments
from gantline.core.reasons import Reason
from gantline.engine.gang_turns import take_turns
from gantline.engine.grants import Grants
from gantline.engine.holdings import Holding
from gantline.engine.option_rows import IMPOSSIBLE
from gantline.engine.transitions import Transitions
from gantline.engine.wanted import exact_option

_NO_ROWS: frozenset[int] = frozenset()


def start_gangs(grants: Grants) -> None:
    """The waiting rows that the last comparison listed start with their options, where the engine finds a place for them."""
    state, turns = grants.state, grants.plan_reader.turns
    t, count = state.tables, grants.plan_reader.waiting
    rows = turns.rows[:count]
    take_turns(state.matrices, turns, 0, count, grants.fluid.used, state.now, state.rules, state.log.columns, state.scratch, state.out)
    t.F[Job.LIMIT_END, rows[t.I[Job.PHASE][rows] != PENDING]] = np.inf


def start_on_devices(grants: Grants, rows: Ints, table: Assignments) -> bool:
    """The waiting rows that the last comparison listed start on the devices they name; False: one names an impossible set."""
    asked, found = table.entries("devices"), []
    for place in grants.plan_reader.seen.places[: grants.plan_reader.waiting].tolist():
        row, devices = int(rows[place]), asked[place]
        option = _option(grants, row, devices)
        if option == IMPOSSIBLE:
            return False
        found.append((row, Holding(option, devices)))
    state, t, books, force = grants.state, grants.state.tables, grants.holdings, grants.in_force
    begins, column = Transitions(state, books), force.column("devices")
    for row, held in found:
        if not books.fits(held, _NO_ROWS):
            t.I[Job.REASON, row] = int(Reason.RESOURCES)
            force.forget(row)
            continue
        begins.start(row, held)
        t.F[Job.LIMIT_END, row] = t.F[Job.SPEED_UNTIL, row] = np.inf
        grants.by_row[row] = Grant((Assignment(row, devices=held.devices),), (_NO_ROWS,), held.devices)
        column[row] = held.devices
        force.enter(row)
        state.out[0] += 1
    return True


def _option(grants: Grants, row: int, devices: Any) -> int:
    """The option that a row has with these devices; `IMPOSSIBLE` also where they are written in an unusual way."""
    if row in grants.by_row or type(devices) is not tuple or not devices or len(set(devices)) < len(devices):
        return IMPOSSIBLE
    if not all(type(device) is int for device in devices):
        return IMPOSSIBLE
    return exact_option(grants.state.tables, grants.options, row, devices)
