"""What one gang does when a plan changes what it shares: is a place free, taking it, leaving it, other CPUs there. Compiled.

A gang is on seats (`seats.py`) or owns a chain of devices; both are handled alike here. All nodes are up and no device is cordoned.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from gantline.core.arrays import Ints
from gantline.core.beside import SLACK, asks_beside
from gantline.core.columns import FREE, HOST_RESOURCES, SHARED, Device, Job, Node, Option
from gantline.core.jit import kernel
from gantline.core.tables import Matrices
from gantline.engine.commit.resize_gang import restyle
from gantline.engine.gang import give_back
from gantline.engine.seats import GANG_FIRST, SEAT_BESIDE, SEAT_DEVICE, SEAT_KEPT, SEAT_NEXT, SEAT_ROW, SharedSeats, rise, sit, spread_of

#: lines of `MayShare.row`: which gangs may be on a device together by this plan, and by what is in force; whether it changes; whether its
#: speed may have changed. Equal codes from zero on, or OPEN, may be together
NOW, BEFORE, CHANGES, TOUCHED, COMPANY_LINES = range(5)
ALONE: Final = -1
OPEN: Final = -2  # with every gang that shares without a group
STRANGER: Final = -3  # with no other gang, also not by this plan


class MayShare(NamedTuple):
    """Which gangs may share, and lists of devices: those that gangs had, and those that they get."""

    row: Ints  # (NOW .. TOUCHED, row of the tables)
    had: Ints
    gets: Ints


@kernel
def list_devices(t: Matrices, seats: SharedSeats, row: int, into: Ints, first: int) -> int:
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
def leave_devices(t: Matrices, seats: SharedSeats, company: MayShare, row: int) -> None:
    """The gang gives up all devices; gangs beside it may go faster."""
    seat = seats.gang[GANG_FIRST, row]
    if seat < 0:
        give_back(t, row)
        return
    touch_beside(seats, company, row)
    rise(t, seats, row)


@kernel
def touch_beside(seats: SharedSeats, company: MayShare, row: int) -> None:
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
    t: Matrices, seats: SharedSeats, company: MayShare, row: int, option: int, devices: Ints, first: int, count: int, shared: bool
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
def may_share(company: MayShare, row: int, other: int, again: bool) -> bool:
    """Whether two gangs may be on a device together, by this plan or (`again`) by the one before."""
    code, before = company.row[NOW, row], company.row[BEFORE, row]
    if code != ALONE and company.row[NOW, other] == code:
        return True
    return again and before != ALONE and company.row[BEFORE, other] == before


@kernel
def is_free(
    t: Matrices,
    seats: SharedSeats,
    company: MayShare,
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
def keeps_seats(t: Matrices, seats: SharedSeats, company: MayShare, row: int, shares: bool, devices: Ints, first: int, count: int) -> bool:
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
def restyle_seated(t: Matrices, seats: SharedSeats, company: MayShare, row: int, option: int, only_less: bool, at: int) -> bool:
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
def own_seats(t: Matrices, seats: SharedSeats, company: MayShare, row: int, at: int) -> None:
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
