"""Which gangs are on which shared devices, as columns: they join and leave, and are listed for speeds. Compiled.

A seat is one gang on one device. The seats of a gang are linked in rank order, those of a device in no order. What a gang takes beside its
devices follows from its option.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import DOWN, FREE, HOST_RESOURCES, SHARED, Device, Job, Node, Option
from gantline.core.jit import kernel
from gantline.core.tables import Matrices
from gantline.engine.gang import spread_of
from gantline.engine.log import Interval, LogColumns, LogSize

#: lines of `SharedDevices.seat`: whose, where, the next seat of the gang, the next on the device
SEAT_ROW, SEAT_DEVICE, SEAT_NEXT, SEAT_BESIDE, SEAT_LINES = range(5)
#: lines of `SharedDevices.gang`: its first seat (-1: it shares nothing), the option that it has there
GANG_FIRST: Final = 0
GANG_OPTION: Final = 1


class SharedDevices(NamedTuple):
    """The columns; `spare` is the first seat that is not in use, and how many are not."""

    seat: Ints
    gang: Ints  # (GANG_FIRST and GANG_OPTION, row)
    device: Ints  # the first seat on each device (-1: none)
    spare: Ints


def no_shared_devices(rows: int, devices: int) -> SharedDevices:
    """Columns for so many rows and devices."""
    empty = SharedDevices(np.full((SEAT_LINES, 0), -1), np.full((2, rows), -1), np.full(devices, -1), np.array([-1, 0]))
    return with_room(empty, rows, devices, 64)


def with_room(shared: SharedDevices, rows: int, devices: int, more: int) -> SharedDevices:
    """The same with all rows and devices, both of which may have become more, and so many shared to spare."""
    used = shared.seat.shape[1]
    if shared.gang.shape[1] < rows:
        shared = shared._replace(gang=np.pad(shared.gang, ((0, 0), (0, rows - shared.gang.shape[1])), constant_values=-1))
    if len(shared.device) < devices:
        shared = shared._replace(device=np.pad(shared.device, (0, devices - len(shared.device)), constant_values=-1))
    if shared.spare[1] >= more:
        return shared
    seat = np.full((SEAT_LINES, 2 * used + more), -1)
    seat[:, :used] = shared.seat
    seat[SEAT_NEXT, used:-1] = np.arange(used + 1, seat.shape[1])
    seat[SEAT_NEXT, -1] = shared.spare[0]
    return shared._replace(seat=seat, spare=np.array([used, shared.spare[1] + seat.shape[1] - used]))


@kernel
def sit(t: Matrices, shared: SharedDevices, row: int, option: int, devices: Ints, count: int) -> None:
    """The gang, which held nothing, shares the first so many of these devices from now on."""
    I, NF, NI, OF, D, seat = t.I, t.NF, t.NI, t.OF, t.D, shared.seat
    following = -1
    for k in range(count - 1, -1, -1):
        device = devices[k]
        node = D[Device.NODE, device]
        if D[Device.HOLDER, device] == FREE:
            NI[Node.FREE, node] -= 1
        D[Device.HOLDER, device] = SHARED
        for side in range(HOST_RESOURCES):
            NF[side, node] -= OF[Option.CPUS + side, option]
        new = shared.spare[0]
        shared.spare[0] = seat[SEAT_NEXT, new]
        seat[SEAT_ROW, new], seat[SEAT_DEVICE, new], seat[SEAT_NEXT, new] = row, device, following
        seat[SEAT_BESIDE, new] = shared.device[device]
        shared.device[device] = following = new
    shared.spare[1] -= count
    shared.gang[GANG_FIRST, row], shared.gang[GANG_OPTION, row] = following, option
    I[Job.OPTION, row], I[Job.NODE, row], I[Job.HEAD, row], I[Job.HELD, row] = option, -1, -1, count
    I[Job.SPREAD, row] = spread_of(D, devices, count)


@kernel
def rise(t: Matrices, shared: SharedDevices, row: int) -> None:
    """The gang leaves the devices that it shares; one without another gang is free."""
    NF, NI, OF, D, seat = t.NF, t.NI, t.OF, t.D, shared.seat
    option, here = shared.gang[GANG_OPTION, row], shared.gang[GANG_FIRST, row]
    while here >= 0:
        following, device = seat[SEAT_NEXT, here], seat[SEAT_DEVICE, here]
        node = D[Device.NODE, device]
        for side in range(HOST_RESOURCES):
            NF[side, node] += OF[Option.CPUS + side, option]
        if shared.device[device] == here:
            shared.device[device] = seat[SEAT_BESIDE, here]
        else:
            other = shared.device[device]
            while seat[SEAT_BESIDE, other] != here:
                other = seat[SEAT_BESIDE, other]
            seat[SEAT_BESIDE, other] = seat[SEAT_BESIDE, here]
        if shared.device[device] < 0:
            if NI[Node.UP, node] == 1 and D[Device.CLOSED, device] == 0:
                D[Device.HOLDER, device] = FREE
                NI[Node.FREE, node] += 1
            else:
                D[Device.HOLDER, device] = DOWN
        seat[SEAT_ROW, here], seat[SEAT_NEXT, here] = -1, shared.spare[0]
        shared.spare[0] = here
        shared.spare[1] += 1
        here = following
    shared.gang[GANG_FIRST, row] = -1


@kernel
def log_seats(I: Ints, shared: SharedDevices, row: int, log: LogColumns) -> None:
    """Shared devices are in no chain that the log could follow: enter them in the interval that has just begun."""
    count, seat = log.written[LogSize.DEVICES], shared.gang[GANG_FIRST, row]
    while seat >= 0:
        log.device[count] = shared.seat[SEAT_DEVICE, seat]
        count += 1
        seat = shared.seat[SEAT_NEXT, seat]
    log.entry[Interval.COUNT, I[Job.INTERVAL, row]] = count - log.written[LogSize.DEVICES]
    log.written[LogSize.DEVICES] = count


@kernel
def mark_beside(shared: SharedDevices, rows: Ints, marks: Ints) -> None:
    """Mark these rows and all that are on devices that they share."""
    for k in range(rows.shape[0]):
        marks[rows[k]] = 1
        seat = shared.gang[GANG_FIRST, rows[k]]
        while seat >= 0:
            other = shared.device[shared.seat[SEAT_DEVICE, seat]]
            while other >= 0:
                marks[shared.seat[SEAT_ROW, other]] = 1
                other = shared.seat[SEAT_BESIDE, other]
            seat = shared.seat[SEAT_NEXT, seat]


# Which gangs are beside which on shared devices, for speeds: what is asked of a device in all, and lists for models.

_NONE: Final = 1 << 60


@kernel
def _next_beside(shared: SharedDevices, device: int, row: int, last: int) -> int:
    """The next gang after `last` on a device, by rising row, without this one; `_NONE`: there is none."""
    found, seat = _NONE, shared.device[device]
    while seat >= 0:
        other = shared.seat[SEAT_ROW, seat]
        if other != row and other > last and other < found:
            found = other
        seat = shared.seat[SEAT_BESIDE, seat]
    return found


@kernel
def crowd_of(shared: SharedDevices, row: int, asked: Floats) -> float:
    """What is asked in all of the device of a gang that is asked most of; the others are added in rising order of rows."""
    seat, most = shared.gang[GANG_FIRST, row], 0.0
    while seat >= 0:
        device, total = shared.seat[SEAT_DEVICE, seat], 0.0
        other = _next_beside(shared, device, row, -1)
        while other != _NONE:
            total += asked[other]
            other = _next_beside(shared, device, row, other)
        most = max(most, asked[row] + total)
        seat = shared.seat[SEAT_NEXT, seat]
    return most


@kernel
def count_beside(shared: SharedDevices, rows: Ints, sizes: Ints) -> None:
    """How many places and entries the company of these rows has; see `models.gangs.DeviceSharers`."""
    for k in range(rows.shape[0]):
        seat = shared.gang[GANG_FIRST, rows[k]]
        while seat >= 0:
            sizes[0] += 1
            other = shared.device[shared.seat[SEAT_DEVICE, seat]]
            while other >= 0:
                sizes[1] += int(shared.seat[SEAT_ROW, other] != rows[k])
                other = shared.seat[SEAT_BESIDE, other]
            seat = shared.seat[SEAT_NEXT, seat]


@kernel
def list_beside(shared: SharedDevices, rows: Ints, places: Ints, entries: Ints) -> None:
    """Write down the places (gang, device) and the entries (place, row)."""
    place, entry = 0, 0
    for k in range(rows.shape[0]):
        seat = shared.gang[GANG_FIRST, rows[k]]
        while seat >= 0:
            device = shared.seat[SEAT_DEVICE, seat]
            places[0, place], places[1, place] = k, device
            other = _next_beside(shared, device, rows[k], -1)
            while other != _NONE:
                entries[0, entry], entries[1, entry] = place, other
                entry += 1
                other = _next_beside(shared, device, rows[k], other)
            place += 1
            seat = shared.seat[SEAT_NEXT, seat]
