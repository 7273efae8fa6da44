"""Which gangs are on which shared devices, as columns, and what they do there: join, leave, change what they take beside. Compiled.

A seat is one gang on one device. The seats of a gang are linked in rank order, those of a device in no order. What a gang takes beside its
devices follows from its option.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import DOWN, FREE, HOST_RESOURCES, SHARED, Device, Job, Node, Option
from gantline.core.host_resources import SLACK, asks_beside
from gantline.core.jit import kernel
from gantline.core.tables import Matrices
from gantline.engine.commit.resize import restyle
from gantline.engine.gang import give_back

#: lines of `SharedDevices.seat`: whose, where, the next seat of the gang, the next on the device, whether the gang keeps it in this commit
SEAT_ROW, SEAT_DEVICE, SEAT_NEXT, SEAT_BESIDE, SEAT_KEPT, SEAT_LINES = range(6)
#: lines of `SharedDevices.gang`: its first seat (-1: it shares nothing), the option that it has there
GANG_FIRST: Final = 0
GANG_OPTION: Final = 1


class SharedDevices(NamedTuple):
    """The columns; `spare` is the first seat that is not in use, and how many are not."""

    seat: Ints
    gang: Ints  # (GANG_FIRST and GANG_OPTION, row)
    device: Ints  # the first seat on each device (-1: none)
    spare: Ints


def no_seats(rows: int, devices: int) -> SharedDevices:
    """Columns for so many rows and devices."""
    empty = SharedDevices(np.full((SEAT_LINES, 0), -1), np.full((2, rows), -1), np.full(devices, -1), np.array([-1, 0]))
    return with_room(empty, rows, devices, 64)


def with_room(seats: SharedDevices, rows: int, devices: int, more: int) -> SharedDevices:
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
def sit(t: Matrices, seats: SharedDevices, row: int, option: int, devices: Ints, first: int, count: int) -> None:
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
def rise(t: Matrices, seats: SharedDevices, row: int) -> None:
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
def rise_and_list(t: Matrices, seats: SharedDevices, row: int, marks: Ints, near: Ints) -> int:
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
def mark_beside(seats: SharedDevices, rows: Ints, marks: Ints) -> None:
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


# What one gang does when a plan changes what it shares: is a place free, taking it, leaving it, other CPUs there.
#
# A gang is on seats (`seats.py`) or owns a chain of devices; both are handled alike here. All nodes are up and no
# device is cordoned.

#: lines of `Partners.row`: which gangs may be on a device together by this plan, and by what is in force; whether it changes; whether its
#: speed may have changed. Equal codes from zero on, or OPEN, may be together
NOW, BEFORE, CHANGES, TOUCHED, COMPANY_LINES = range(5)
ALONE: Final = -1
OPEN: Final = -2  # with every gang that shares without a group
STRANGER: Final = -3  # with no other gang, also not by this plan


class Partners(NamedTuple):
    """Which gangs may share, and lists of devices: those that gangs had, and those that they get."""

    row: Ints  # (NOW .. TOUCHED, row of the tables)
    had: Ints
    gets: Ints


@kernel
def list_devices(t: Matrices, seats: SharedDevices, row: int, into: Ints, first: int) -> int:
    """Write down the devices of a gang in rank order. How many they are."""
    count, seat = 0, seats.gang[GANG_FIRST, row]
    if seat >= 0:
        while seat >= 0:
            into[first + count] = seats.seat[SEAT_DEVICE, seat]
            count += 1
            seat = seats.seat[SEAT_NEXT, seat]
        return count
    device = t.I[Job.HEAD, row]
    while device >= 0:
        into[first + count] = device
        count += 1
        device = t.D[Device.NEXT, device]
    return count


@kernel
def leave_devices(t: Matrices, seats: SharedDevices, company: Partners, row: int) -> None:
    """The gang gives up all devices; gangs beside it may go faster."""
    seat = seats.gang[GANG_FIRST, row]
    if seat < 0:
        give_back(t, row)
        return
    touch_beside(seats, company, row)
    rise(t, seats, row)


@kernel
def touch_beside(seats: SharedDevices, company: Partners, row: int) -> None:
    """The speeds of a gang that shares, and of those on its devices, may change."""
    seat = seats.gang[GANG_FIRST, row]
    company.row[TOUCHED, row] = 1
    while seat >= 0:
        other = seats.device[seats.seat[SEAT_DEVICE, seat]]
        while other >= 0:
            company.row[TOUCHED, seats.seat[SEAT_ROW, other]] = 1
            other = seats.seat[SEAT_BESIDE, other]
        seat = seats.seat[SEAT_NEXT, seat]


@kernel
def settle_down(
    t: Matrices, seats: SharedDevices, company: Partners, row: int, option: int, devices: Ints, first: int, count: int, shared: bool
) -> None:
    """The gang, which holds nothing, takes these devices."""
    if shared:
        sit(t, seats, row, option, devices, first, count)
        touch_beside(seats, company, row)
        return
    I, D = t.I, t.D
    I[Job.OPTION, row], I[Job.NODE, row], I[Job.HELD, row] = option, -1, count
    I[Job.SPREAD, row] = spread_of(D, devices, first, count)
    I[Job.HEAD, row] = devices[first]
    for k in range(first, first + count):
        device = devices[k]
        node = D[Device.NODE, device]
        t.NI[Node.FREE, node] -= 1
        D[Device.HOLDER, device] = row
        D[Device.NEXT, device] = devices[k + 1] if k + 1 < first + count else -1
        for side in range(HOST_RESOURCES):
            t.NF[side, node] -= t.OF[Option.CPUS + side, option]
    company.row[TOUCHED, row] = 1


@kernel
def may_share(company: Partners, row: int, other: int, again: bool) -> bool:
    """Whether two gangs may be on a device together, by this plan or (`again`) by the one before."""
    code, before = company.row[NOW, row], company.row[BEFORE, row]
    if code != ALONE and company.row[NOW, other] == code:
        return True
    return again and before != ALONE and company.row[BEFORE, other] == before


@kernel
def is_free(
    t: Matrices,
    seats: SharedDevices,
    company: Partners,
    row: int,
    option: int,
    devices: Ints,
    first: int,
    count: int,
    shared: bool,
    again: bool,
) -> bool:
    """Whether a gang that holds nothing could take these devices: free, or shared by gangs that it may be with; CPUs and the like there."""
    D = t.D
    for k in range(first, first + count):
        holder = D[Device.HOLDER, devices[k]]
        if holder == FREE:
            continue
        if not shared or holder != SHARED:
            return False
        seat = seats.device[devices[k]]
        while seat >= 0:
            if not may_share(company, row, seats.seat[SEAT_ROW, seat], again):
                return False
            seat = seats.seat[SEAT_BESIDE, seat]
    if not asks_beside(t.OF, option):
        return True
    for k in range(first, first + count):
        node, here = D[Device.NODE, devices[k]], 0
        for other in range(first, first + count):
            here += int(D[Device.NODE, devices[other]] == node)
        for side in range(HOST_RESOURCES):
            amount = t.OF[Option.CPUS + side, option]
            if amount > 0.0 and t.NF[side, node] + SLACK < amount * here:
                return False
    return True


@kernel
def keeps_seats(
    t: Matrices, seats: SharedDevices, company: Partners, row: int, shares: bool, devices: Ints, first: int, count: int
) -> bool:
    """The gang stays on these of its devices, if each gang that stays there may be with it."""
    seat = seats.gang[GANG_FIRST, row]
    for mark in range(2):
        here = seat
        while here >= 0:
            kept = False
            for k in range(first, first + count):
                kept = kept or devices[k] == seats.seat[SEAT_DEVICE, here]
            other = seats.device[seats.seat[SEAT_DEVICE, here]] if kept and mark == 0 else -1
            while other >= 0:
                theirs = seats.seat[SEAT_ROW, other]
                stays = company.row[CHANGES, theirs] == 0 or seats.seat[SEAT_KEPT, other] == 1
                if theirs != row and stays and not (shares and may_share(company, row, theirs, False)):
                    return False
                other = seats.seat[SEAT_BESIDE, other]
            if mark == 1:
                seats.seat[SEAT_KEPT, here] = int(kept)
            here = seats.seat[SEAT_NEXT, here]
    return True


@kernel
def restyle_seated(t: Matrices, seats: SharedDevices, company: Partners, row: int, option: int, only_less: bool, at: int) -> bool:
    """Another option on the same devices, if every node has what it takes beside. Whether it is in use, or was not to be tried yet."""
    old = t.I[Job.OPTION, row]
    if old == option:
        return True
    if seats.gang[GANG_FIRST, row] < 0:
        return restyle(t, row, option, only_less)
    less = True
    for side in range(HOST_RESOURCES):
        less = less and t.OF[Option.CPUS + side, option] <= t.OF[Option.CPUS + side, old]
    if only_less and not less:
        return True
    count = list_devices(t, seats, row, company.gets, at)
    rise(t, seats, row)
    fits = is_free(t, seats, company, row, option, company.gets, at, count, True, False)
    sit(t, seats, row, option if fits else old, company.gets, at, count)
    return fits


@kernel
def own_seats(t: Matrices, seats: SharedDevices, company: Partners, row: int, at: int) -> None:
    """A gang that is alone on all its devices owns them from now on."""
    seat = seats.gang[GANG_FIRST, row]
    while seat >= 0:
        first = seats.device[seats.seat[SEAT_DEVICE, seat]]
        if seats.seat[SEAT_BESIDE, first] >= 0:
            return
        seat = seats.seat[SEAT_NEXT, seat]
    option, count = t.I[Job.OPTION, row], list_devices(t, seats, row, company.gets, at)
    rise(t, seats, row)
    settle_down(t, seats, company, row, option, company.gets, at, count, False)


# Which gangs are beside which on shared devices, for speeds: what is asked of a device in all, and lists for models.

_NONE: Final = 1 << 60


@kernel
def _next_beside(seats: SharedDevices, device: int, row: int, last: int) -> int:
    """The next gang after `last` on a device, by rising row, without this one; `_NONE`: there is none."""
    found, seat = _NONE, seats.device[device]
    while seat >= 0:
        other = seats.seat[SEAT_ROW, seat]
        if other != row and other > last and other < found:
            found = other
        seat = seats.seat[SEAT_BESIDE, seat]
    return found


@kernel
def crowd_of(seats: SharedDevices, row: int, asked: Floats) -> float:
    """What is asked in all of the device of a gang that is asked most of; the others are added in rising order of rows."""
    seat, most = seats.gang[GANG_FIRST, row], 0.0
    while seat >= 0:
        device, total = seats.seat[SEAT_DEVICE, seat], 0.0
        other = _next_beside(seats, device, row, -1)
        while other != _NONE:
            total += asked[other]
            other = _next_beside(seats, device, row, other)
        most = max(most, asked[row] + total)
        seat = seats.seat[SEAT_NEXT, seat]
    return most


@kernel
def count_company(seats: SharedDevices, rows: Ints, sizes: Ints) -> None:
    """How many places and entries the company of these rows has; see `performance.sharing_columns.DeviceCompany`."""
    for k in range(rows.shape[0]):
        seat = seats.gang[GANG_FIRST, rows[k]]
        while seat >= 0:
            sizes[0] += 1
            other = seats.device[seats.seat[SEAT_DEVICE, seat]]
            while other >= 0:
                sizes[1] += int(seats.seat[SEAT_ROW, other] != rows[k])
                other = seats.seat[SEAT_BESIDE, other]
            seat = seats.seat[SEAT_NEXT, seat]


@kernel
def list_company(seats: SharedDevices, rows: Ints, places: Ints, entries: Ints) -> None:
    """Write down the places (gang, device) and the entries (place, row)."""
    place, entry = 0, 0
    for k in range(rows.shape[0]):
        seat = seats.gang[GANG_FIRST, rows[k]]
        while seat >= 0:
            device = seats.seat[SEAT_DEVICE, seat]
            places[0, place], places[1, place] = k, device
            other = _next_beside(seats, device, rows[k], -1)
            while other != _NONE:
                entries[0, entry], entries[1, entry] = place, other
                entry += 1
                other = _next_beside(seats, device, rows[k], other)
            place += 1
            seat = seats.seat[SEAT_NEXT, seat]
