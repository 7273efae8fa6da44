"""Which gangs are on which shared devices, as columns: a seat is one gang on one device. Compiled.

The seats of a gang are linked in rank order, those of a device in no order. What a gang takes beside its devices follows from its option.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import DOWN, FREE, HOST_RESOURCES, SHARED, Device, Job, Node, Option
from gantline.core.jit import kernel
from gantline.core.tables import Matrices

#: lines of `SharedSeats.seat`: whose, where, the next seat of the gang, the next on the device, whether the gang keeps it in this commit
SEAT_ROW, SEAT_DEVICE, SEAT_NEXT, SEAT_BESIDE, SEAT_KEPT, SEAT_LINES = range(6)
#: lines of `SharedSeats.gang`: its first seat (-1: it shares nothing), the option that it has there
GANG_FIRST: Final = 0
GANG_OPTION: Final = 1


class SharedSeats(NamedTuple):
    """The columns; `spare` is the first seat that is not in use, and how many are not."""

    seat: Ints
    gang: Ints  # (GANG_FIRST and GANG_OPTION, row)
    device: Ints  # the first seat on each device (-1: none)
    spare: Ints


def no_seats(rows: int, devices: int) -> SharedSeats:
    """Columns for so many rows and devices."""
    empty = SharedSeats(np.full((SEAT_LINES, 0), -1), np.full((2, rows), -1), np.full(devices, -1), np.array([-1, 0]))
    return with_room(empty, rows, devices, 64)


def with_room(seats: SharedSeats, rows: int, devices: int, more: int) -> SharedSeats:
    """The same with all rows and devices, both of which may have become more, and so many seats to spare."""
    used = seats.seat.shape[1]
    if seats.gang.shape[1] < rows:
        seats = seats._replace(gang=np.pad(seats.gang, ((0, 0), (0, rows - seats.gang.shape[1])), constant_values=-1))
    if len(seats.device) < devices:
        seats = seats._replace(device=np.pad(seats.device, (0, devices - len(seats.device)), constant_values=-1))
    if seats.spare[1] >= more:
        return seats
    seat = np.full((SEAT_LINES, 2 * used + more), -1)
    seat[:, :used] = seats.seat
    seat[SEAT_NEXT, used:-1] = np.arange(used + 1, seat.shape[1])
    seat[SEAT_NEXT, -1] = seats.spare[0]
    return seats._replace(seat=seat, spare=np.array([used, seats.spare[1] + seat.shape[1] - used]))


@kernel
def sit(t: Matrices, seats: SharedSeats, row: int, option: int, devices: Ints, first: int, count: int) -> None:
    """The gang, which held nothing, shares these devices from now on."""
    I, NF, NI, OF, D, seat = t.I, t.NF, t.NI, t.OF, t.D, seats.seat
    following = -1
    for k in range(first + count - 1, first - 1, -1):
        device = devices[k]
        node = D[Device.NODE, device]
        if D[Device.HOLDER, device] == FREE:
            NI[Node.FREE, node] -= 1
        D[Device.HOLDER, device] = SHARED
        for side in range(HOST_RESOURCES):
            NF[side, node] -= OF[Option.CPUS + side, option]
        new = seats.spare[0]
        seats.spare[0] = seat[SEAT_NEXT, new]
        seat[SEAT_ROW, new], seat[SEAT_DEVICE, new], seat[SEAT_NEXT, new] = row, device, following
        seat[SEAT_BESIDE, new], seat[SEAT_KEPT, new] = seats.device[device], 0
        seats.device[device] = following = new
    seats.spare[1] -= count
    seats.gang[GANG_FIRST, row], seats.gang[GANG_OPTION, row] = following, option
    I[Job.OPTION, row], I[Job.NODE, row], I[Job.HEAD, row], I[Job.HELD, row] = option, -1, -1, count
    I[Job.SPREAD, row] = spread_of(D, devices, first, count)


@kernel
def rise(t: Matrices, seats: SharedSeats, row: int) -> None:
    """The gang leaves the devices that it shares; one without another gang is free."""
    NF, NI, OF, D, seat = t.NF, t.NI, t.OF, t.D, seats.seat
    option, here = seats.gang[GANG_OPTION, row], seats.gang[GANG_FIRST, row]
    while here >= 0:
        following, device = seat[SEAT_NEXT, here], seat[SEAT_DEVICE, here]
        node = D[Device.NODE, device]
        for side in range(HOST_RESOURCES):
            NF[side, node] += OF[Option.CPUS + side, option]
        if seats.device[device] == here:
            seats.device[device] = seat[SEAT_BESIDE, here]
        else:
            other = seats.device[device]
            while seat[SEAT_BESIDE, other] != here:
                other = seat[SEAT_BESIDE, other]
            seat[SEAT_BESIDE, other] = seat[SEAT_BESIDE, here]
        if seats.device[device] < 0:
            if NI[Node.UP, node] == 1 and D[Device.CLOSED, device] == 0:
                D[Device.HOLDER, device] = FREE
                NI[Node.FREE, node] += 1
            else:
                D[Device.HOLDER, device] = DOWN
        seat[SEAT_ROW, here], seat[SEAT_NEXT, here] = -1, seats.spare[0]
        seats.spare[0] = here
        seats.spare[1] += 1
        here = following
    seats.gang[GANG_FIRST, row] = -1


@kernel
def rise_and_list(t: Matrices, seats: SharedSeats, row: int, marks: Ints, near: Ints) -> int:
    """The gang leaves the devices that it shares; list the others there. How many they are; `marks` is zero before and after."""
    count, seat = 0, seats.gang[GANG_FIRST, row]
    marks[row] = 1
    while seat >= 0:
        other = seats.device[seats.seat[SEAT_DEVICE, seat]]
        while other >= 0:
            if marks[seats.seat[SEAT_ROW, other]] == 0:
                near[count] = seats.seat[SEAT_ROW, other]
                marks[near[count]] = 1
                count += 1
            other = seats.seat[SEAT_BESIDE, other]
        seat = seats.seat[SEAT_NEXT, seat]
    marks[row] = 0
    for k in range(count):
        marks[near[k]] = 0
    rise(t, seats, row)
    return count


@kernel
def mark_beside(seats: SharedSeats, rows: Ints, marks: Ints) -> None:
    """Mark these rows and all that are on devices that they share."""
    for k in range(rows.shape[0]):
        marks[rows[k]] = 1
        seat = seats.gang[GANG_FIRST, rows[k]]
        while seat >= 0:
            other = seats.device[seats.seat[SEAT_DEVICE, seat]]
            while other >= 0:
                marks[seats.seat[SEAT_ROW, other]] = 1
                other = seats.seat[SEAT_BESIDE, other]
            seat = seats.seat[SEAT_NEXT, seat]


@kernel
def spread_of(D: Ints, devices: Ints, first: int, count: int) -> int:
    """How many nodes some devices are on."""
    nodes = 0
    for k in range(first, first + count):
        fresh = True
        for before in range(first, k):
            fresh = fresh and D[Device.NODE, devices[before]] != D[Device.NODE, devices[k]]
        nodes += int(fresh)
    return nodes
