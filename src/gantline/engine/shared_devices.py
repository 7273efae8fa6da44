"""Which gangs are on which shared devices, as columns: they join and leave, and are listed for speeds. Compiled.

A stake is one gang on one device. The stakes of a gang are linked in rank order, those of a device in no order. What a gang takes
beside its devices follows from its option.
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

#: lines of `SharedDevices.stake`: whose, where, the next stake of the gang, the next on the device
STAKE_ROW, STAKE_DEVICE, STAKE_NEXT, STAKE_BESIDE, STAKE_LINES = range(5)
#: lines of `SharedDevices.gang`: its first stake (-1: it shares nothing), the option that it has there
GANG_FIRST: Final = 0
GANG_OPTION: Final = 1


class SharedDevices(NamedTuple):
    """The columns; `spare` is the first stake that is not in use, and how many are not."""

    stake: Ints
    gang: Ints  # (GANG_FIRST and GANG_OPTION, row)
    device: Ints  # the first stake on each device (-1: none)
    spare: Ints


def no_shared_devices(rows: int, devices: int) -> SharedDevices:
    """Columns for so many rows and devices."""
    empty = SharedDevices(np.full((STAKE_LINES, 0), -1), np.full((2, rows), -1), np.full(devices, -1), np.array([-1, 0]))
    return with_room(empty, rows, devices, 64)


def with_room(shared: SharedDevices, rows: int, devices: int, more: int) -> SharedDevices:
    """The same with all rows and devices, both of which may have become more, and so many shared to spare."""
    used = shared.stake.shape[1]
    if shared.gang.shape[1] < rows:
        shared = shared._replace(gang=np.pad(shared.gang, ((0, 0), (0, rows - shared.gang.shape[1])), constant_values=-1))
    if len(shared.device) < devices:
        shared = shared._replace(device=np.pad(shared.device, (0, devices - len(shared.device)), constant_values=-1))
    if shared.spare[1] >= more:
        return shared
    stake = np.full((STAKE_LINES, 2 * used + more), -1)
    stake[:, :used] = shared.stake
    stake[STAKE_NEXT, used:-1] = np.arange(used + 1, stake.shape[1])
    stake[STAKE_NEXT, -1] = shared.spare[0]
    return shared._replace(stake=stake, spare=np.array([used, shared.spare[1] + stake.shape[1] - used]))


@kernel
def sit(t: Matrices, shared: SharedDevices, row: int, option: int, devices: Ints, count: int) -> None:
    """The gang, which held nothing, shares the first so many of these devices from now on."""
    I, NF, NI, OF, D, stake = t.I, t.NF, t.NI, t.OF, t.D, shared.stake
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
        shared.spare[0] = stake[STAKE_NEXT, new]
        stake[STAKE_ROW, new], stake[STAKE_DEVICE, new], stake[STAKE_NEXT, new] = row, device, following
        stake[STAKE_BESIDE, new] = shared.device[device]
        shared.device[device] = following = new
    shared.spare[1] -= count
    shared.gang[GANG_FIRST, row], shared.gang[GANG_OPTION, row] = following, option
    I[Job.OPTION, row], I[Job.NODE, row], I[Job.HEAD, row], I[Job.HELD, row] = option, -1, -1, count
    I[Job.SPREAD, row] = spread_of(D, devices, count)


@kernel
def rise(t: Matrices, shared: SharedDevices, row: int) -> None:
    """The gang leaves the devices that it shares; one without another gang is free."""
    NF, NI, OF, D, stake = t.NF, t.NI, t.OF, t.D, shared.stake
    option, here = shared.gang[GANG_OPTION, row], shared.gang[GANG_FIRST, row]
    while here >= 0:
        following, device = stake[STAKE_NEXT, here], stake[STAKE_DEVICE, here]
        node = D[Device.NODE, device]
        for side in range(HOST_RESOURCES):
            NF[side, node] += OF[Option.CPUS + side, option]
        if shared.device[device] == here:
            shared.device[device] = stake[STAKE_BESIDE, here]
        else:
            other = shared.device[device]
            while stake[STAKE_BESIDE, other] != here:
                other = stake[STAKE_BESIDE, other]
            stake[STAKE_BESIDE, other] = stake[STAKE_BESIDE, here]
        if shared.device[device] < 0:
            if NI[Node.UP, node] == 1 and D[Device.CLOSED, device] == 0:
                D[Device.HOLDER, device] = FREE
                NI[Node.FREE, node] += 1
            else:
                D[Device.HOLDER, device] = DOWN
        stake[STAKE_ROW, here], stake[STAKE_NEXT, here] = -1, shared.spare[0]
        shared.spare[0] = here
        shared.spare[1] += 1
        here = following
    shared.gang[GANG_FIRST, row] = -1


@kernel
def log_stakes(I: Ints, shared: SharedDevices, row: int, log: LogColumns) -> None:
    """Shared devices are in no chain that the log could follow: enter them in the interval that has just begun."""
    count, stake = log.written[LogSize.DEVICES], shared.gang[GANG_FIRST, row]
    while stake >= 0:
        log.device[count] = shared.stake[STAKE_DEVICE, stake]
        count += 1
        stake = shared.stake[STAKE_NEXT, stake]
    log.entry[Interval.COUNT, I[Job.INTERVAL, row]] = count - log.written[LogSize.DEVICES]
    log.written[LogSize.DEVICES] = count


@kernel
def mark_beside(shared: SharedDevices, rows: Ints, marks: Ints) -> None:
    """Mark these rows and all that are on devices that they share."""
    for k in range(rows.shape[0]):
        marks[rows[k]] = 1
        stake = shared.gang[GANG_FIRST, rows[k]]
        while stake >= 0:
            other = shared.device[shared.stake[STAKE_DEVICE, stake]]
            while other >= 0:
                marks[shared.stake[STAKE_ROW, other]] = 1
                other = shared.stake[STAKE_BESIDE, other]
            stake = shared.stake[STAKE_NEXT, stake]


# Which gangs are beside which on shared devices, for speeds: what is asked of a device in all, and lists for models.

_NONE: Final = 1 << 60


@kernel
def _next_beside(shared: SharedDevices, device: int, row: int, last: int) -> int:
    """The next gang after `last` on a device, by rising row, without this one; `_NONE`: there is none."""
    found, stake = _NONE, shared.device[device]
    while stake >= 0:
        other = shared.stake[STAKE_ROW, stake]
        if other != row and other > last and other < found:
            found = other
        stake = shared.stake[STAKE_BESIDE, stake]
    return found


@kernel
def crowd_of(shared: SharedDevices, row: int, asked: Floats) -> float:
    """What is asked in all of the device of a gang that is asked most of; the others are added in rising order of rows."""
    stake, most = shared.gang[GANG_FIRST, row], 0.0
    while stake >= 0:
        device, total = shared.stake[STAKE_DEVICE, stake], 0.0
        other = _next_beside(shared, device, row, -1)
        while other != _NONE:
            total += asked[other]
            other = _next_beside(shared, device, row, other)
        most = max(most, asked[row] + total)
        stake = shared.stake[STAKE_NEXT, stake]
    return most


@kernel
def count_beside(shared: SharedDevices, rows: Ints, sizes: Ints) -> None:
    """How many places and entries the sharers of these rows make; see `models.gangs.DeviceSharers`."""
    for k in range(rows.shape[0]):
        stake = shared.gang[GANG_FIRST, rows[k]]
        while stake >= 0:
            sizes[0] += 1
            other = shared.device[shared.stake[STAKE_DEVICE, stake]]
            while other >= 0:
                sizes[1] += int(shared.stake[STAKE_ROW, other] != rows[k])
                other = shared.stake[STAKE_BESIDE, other]
            stake = shared.stake[STAKE_NEXT, stake]


@kernel
def list_beside(shared: SharedDevices, rows: Ints, places: Ints, entries: Ints) -> None:
    """Write down the places (gang, device) and the entries (place, row)."""
    place, entry = 0, 0
    for k in range(rows.shape[0]):
        stake = shared.gang[GANG_FIRST, rows[k]]
        while stake >= 0:
            device = shared.stake[STAKE_DEVICE, stake]
            places[0, place], places[1, place] = k, device
            other = _next_beside(shared, device, rows[k], -1)
            while other != _NONE:
                entries[0, entry], entries[1, entry] = place, other
                entry += 1
                other = _next_beside(shared, device, rows[k], other)
            place += 1
            stake = shared.stake[STAKE_NEXT, stake]
