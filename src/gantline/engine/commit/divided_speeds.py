"""How fast gangs go that share devices, where no model says: by their options and their parts of the devices. Compiled.

The gangs that started or changed and those beside them are found, asked about and set in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import Device, Job, Node, Option
from gantline.core.grant import Grant
from gantline.core.jit import kernel
from gantline.core.phases import RUNNING, STARTING
from gantline.core.plan import Assignment, Mode
from gantline.core.tables import Matrices
from gantline.engine.commit.granted import LINES
from gantline.engine.gang import set_due, settle
from gantline.engine.shared_devices import GANG_FIRST, SEAT_BESIDE, SEAT_DEVICE, SEAT_NEXT, SEAT_ROW, SharedDevices, crowd_of, mark_beside

_MODE: Final = LINES["mode"]
_FRACTION: Final = LINES["fraction"]
_SHARE: Final = LINES["share"]
_SPACE: Final = int(Mode.SPACE)
_TIME: Final = int(Mode.TIME)


class WhatDivides(NamedTuple):
    """What was granted by row, and room for the rows that are looked at."""

    special: Bools  # whether the row has more than a gang with an option
    number: Floats  # (line, row), see `granted_columns.LINES`
    noted: Ints  # by row: the grant that these numbers are of
    changes: Ints  # how often the speed of a row has changed; empty: not counted
    marks: Ints  # zero between uses
    near: Ints


@kernel
def set_divided_speeds(t: Matrices, seats: SharedDevices, by: WhatDivides, rows: Ints, now: float) -> bool:
    """Set the speeds of these rows and of those on their devices; False: nothing is done, because some of them save in between, or the
    numbers say nothing of the grants beside them.
    """
    count, known = 0, True
    for k in range(rows.shape[0]):
        count = _note(by, rows[k], count)
        seat = seats.gang[GANG_FIRST, rows[k]]
        while seat >= 0:
            other = seats.device[seats.seat[SEAT_DEVICE, seat]]
            while other >= 0:
                count = _note(by, seats.seat[SEAT_ROW, other], count)
                other = seats.seat[SEAT_BESIDE, other]
            seat = seats.seat[SEAT_NEXT, seat]
    for k in range(count):
        by.marks[by.near[k]] = 0
        known = known and not t.F[Job.CHECKPOINT, by.near[k]] > 0.0 and _are_noted(t, seats, by, by.near[k])
    if not known:
        return False
    for k in range(count):
        row = by.near[k]
        if t.I[Job.PHASE, row] == RUNNING or t.I[Job.PHASE, row] == STARTING:
            _set_speed(t, row, _divided(t, seats, by, row), by.changes, now)
    return True


@kernel
def read_divided_speeds(t: Matrices, seats: SharedDevices, by: WhatDivides, rows: Ints, alone: Floats, divided: Floats) -> None:
    """Work per second of these rows by their options, and by their parts of what they share; nothing is set."""
    for k in range(rows.shape[0]):
        alone[k], divided[k] = _alone(t, seats, rows[k]), _divided(t, seats, by, rows[k])


@kernel
def list_around(t: Matrices, seats: SharedDevices, by: WhatDivides, team: Ints, rows: Ints, among: Ints, slots: Ints) -> int:
    """List those that hold something of these rows and of those on their devices or, `among` some, in their groups: in rising order.

    Members of groups are shown together although some may share no device with the others. `slots` is room for the groups.
    """
    mark_beside(seats, rows, by.marks)
    if among.shape[0] > 0:
        _mark_teams(team, by.special, rows, among, slots, by.marks)
    count = 0
    for row in range(by.marks.shape[0]):
        if by.marks[row] == 1:
            by.marks[row] = 0
            if t.I[Job.PHASE, row] == RUNNING or t.I[Job.PHASE, row] == STARTING:
                by.near[count] = row
                count += 1
    return count


@kernel
def _mark_teams(team: Ints, special: Bools, rows: Ints, among: Ints, slots: Ints, marks: Ints) -> None:
    """Mark those `among` these rows that are in a group with one of `rows`; `slots` is room for the groups, twice as many and more."""
    last = 1
    while last < 2 * rows.shape[0] + 1:
        last = 2 * last + 1
    slots[: last + 1] = 0
    for k in range(rows.shape[0]):
        if special[rows[k]] and team[rows[k]] != 0:
            slots[_slot(slots, last, team[rows[k]])] = team[rows[k]]
    for k in range(among.shape[0]):
        if team[among[k]] != 0 and slots[_slot(slots, last, team[among[k]])] != 0:
            marks[among[k]] = 1


@kernel
def _slot(slots: Ints, last: int, team: int) -> int:
    """Where a group is noted, or would be."""
    at = team & last  # sums of scrambled numbers: any bits of them will do
    while slots[at] != 0 and slots[at] != team:
        at = (at + 1) & last
    return at


@kernel
def _note(by: WhatDivides, row: int, count: int) -> int:
    if by.marks[row] == 0:
        by.marks[row], by.near[count] = 1, row
        return count + 1
    return count


@kernel
def _are_noted(t: Matrices, seats: SharedDevices, by: WhatDivides, row: int) -> bool:
    """Whether the numbers are those of the present grants of a gang and of those on its devices."""
    if by.special[row] and by.noted[row] != t.I[Job.EPOCH, row]:
        return False
    seat = seats.gang[GANG_FIRST, row]
    while seat >= 0:
        other = seats.device[seats.seat[SEAT_DEVICE, seat]]
        while other >= 0:
            if by.noted[seats.seat[SEAT_ROW, other]] != t.I[Job.EPOCH, seats.seat[SEAT_ROW, other]]:
                return False
            other = seats.seat[SEAT_BESIDE, other]
        seat = seats.seat[SEAT_NEXT, seat]
    return True


@kernel
def _divided(t: Matrices, seats: SharedDevices, by: WhatDivides, row: int) -> float:
    """Work per second by its part of what it shares: in space by fractions, in time by shares; stages do not collide."""
    alone = _alone(t, seats, row)
    if not by.special[row]:
        return alone
    mode = by.number[_MODE, row]
    asked = by.number[_SHARE] if mode == _TIME else by.number[_FRACTION]
    crowd = max(1.0, crowd_of(seats, row, asked)) if mode == _TIME or mode == _SPACE else 1.0
    return float(alone * asked[row] / crowd)


@kernel
def _alone(t: Matrices, seats: SharedDevices, row: int) -> float:
    """Work per second by its option, by whether it sits on as few nodes as it can."""
    option, spread = t.I[Job.OPTION, row], t.I[Job.SPREAD, row]
    if spread > 1:
        seat = seats.gang[GANG_FIRST, row]
        first = seats.seat[SEAT_DEVICE, seat] if seat >= 0 else t.I[Job.HEAD, row]
        size = t.NI[Node.GPUS, t.D[Device.NODE, first]]
        if spread > (t.I[Job.HELD, row] + size - 1) // size:
            return float(t.OF[Option.RATE_SPREAD, option])
    return float(t.OF[Option.RATE, option])


@kernel
def _set_speed(t: Matrices, row: int, rate: float, changes: Ints, now: float) -> None:
    t.F[Job.SPEED_UNTIL, row] = np.inf
    if rate == t.F[Job.RATE, row]:
        return
    if changes.shape[0] > 0 and t.F[Job.LAST_START, row] < now:
        changes[row] += 1
    settle(t.F, t.I, row, now)
    t.F[Job.RATE, row] = rate
    set_due(t.F, row)


# How fast a gang goes that shares, when no performance model says otherwise.
#
# Devices are divided: in space by the fractions that members ask for, in time by their shares; stages and
# communication phases that are interleaved are taken not to collide.


def of_gang(grant: Grant, mates: Mapping[int, Grant], alone: float) -> float:
    """An unshared gang, on devices that the engine or the plan chose: the speed of its option, less what it does not use."""
    return alone * grant.assignment.fraction


def of_shared(grant: Grant, mates: Mapping[int, Grant], alone: float) -> float:
    """Members of a group on the same devices get what they ask for, or their part of it where too much is asked."""
    item = grant.assignment
    if item.mode == Mode.TIME:
        return alone * item.share / max(1.0, _crowd(item.share, grant, mates, "share"))
    if item.mode == Mode.SPACE:
        return alone * item.fraction / max(1.0, _crowd(item.fraction, grant, mates, "fraction"))
    return alone * item.fraction


def _crowd(own: float, grant: Grant, mates: Mapping[int, Grant], amount: str) -> float:
    """What is asked in all of the device that is asked most of: a gang is as fast as its slowest worker."""

    def asked(item: Assignment) -> float:
        return float(getattr(item, amount))

    if grant.fluid:
        return own + sum(asked(mate.assignment) for mate in mates.values())
    return max((own + sum(asked(m.assignment) for m in mates.values() if device in m.devices) for device in grant.devices), default=own)


Speed = Callable[[Grant, Mapping[int, Grant], float], float]

#: kind of grant -> its speed, given its mates and the speed that its option has alone
SPEEDS: dict[str, Speed] = {"gang": of_shared, "exact": of_shared, "parts": of_gang, "shared": of_shared, "share of time": of_shared}
