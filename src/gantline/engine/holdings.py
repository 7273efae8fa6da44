"""Which gang holds what: taking and giving back devices and what is beside them, owned or shared. The only Python to change it.

A gang of its own is a chain through the device table, as the kernels keep it. A gang that shares devices is listed as a tenant of
each, and what it needs beside (CPUs, memory, storage bandwidth) is kept per node, because the kernels count it per chained device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import DOWN, FREE, HOST_RESOURCES, SHARED, Device, Job, Node, Option
from gantline.core.host_resources import SLACK
from gantline.engine.gang import give_back
from gantline.engine.shared_devices import (
    GANG_FIRST,
    GANG_OPTION,
    SEAT_BESIDE,
    SEAT_DEVICE,
    SEAT_NEXT,
    SEAT_ROW,
    SharedDevices,
    no_seats,
    rise,
    rise_and_list,
    sit,
    with_room,
)
from gantline.engine.state import State

Beside = tuple[float, float, float]  # CPUs, GB of memory, MB/s of storage
Side = tuple[tuple[int, float, float, float], ...]  # the same with the node
NOTHING: Beside = (0.0, 0.0, 0.0)


def added(one: Beside, other: Sequence[float]) -> Beside:
    """Two amounts together."""
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


@dataclass(frozen=True, slots=True)
class Holding:
    """What one row holds, or would."""

    option: int  # row of the option table
    devices: tuple[int, ...] = ()  # in rank order
    node: int = -1  # of a grant without devices
    shared: bool = False
    side: Side = ()  # (node, CPUs, GB, MB/s) beside what the option says per device


class Holdings:
    """The books of all rows; plain gangs are read from the tables."""

    def __init__(self, state: State) -> None:
        self.state = state
        t = state.tables
        self._seats = no_seats(t.F.shape[1], t.D.shape[1])
        self._marks: Ints = np.zeros(0, dtype=np.int64)  # by row; zero between uses
        self._near: Ints = self._marks  # a list of rows
        self.with_parts: dict[int, Holding] = {}  # rows that own their devices, and hold something beside that no option says
        for row, grant in t.granted.items():
            option = int(t.I[Job.OPTION, row])
            if grant.shared:
                for side in grant.side:  # it is entered again, with its seats
                    t.NF[:HOST_RESOURCES, side[0]] += side[1:]
                self._sit(row, option, grant.devices)
            elif grant.side:
                self.with_parts[row] = Holding(option, grant.devices, int(t.I[Job.NODE, row]), side=grant.side)

    def seats(self, more: int = 0) -> SharedDevices:
        """Which gangs are on which shared devices, with so many seats to spare."""
        t = self.state.tables
        self._seats = with_room(self._seats, t.F.shape[1], t.D.shape[1], more)
        return self._seats

    def _sit(self, row: int, option: int, devices: tuple[int, ...]) -> None:
        sit(self.state.matrices, self.seats(len(devices)), row, option, np.array(devices, dtype=np.int64), 0, len(devices))

    def shares(self, row: int) -> bool:
        """Whether the row is on devices that it shares."""
        gang = self._seats.gang
        return row < gang.shape[1] and bool(gang[GANG_FIRST, row] >= 0)

    def tenants(self, device: int) -> list[int]:
        """The rows that share a device."""
        seats, found = self._seats, []
        seat, here = seats.seat, int(seats.device[device]) if device < len(seats.device) else -1
        while here >= 0:
            found.append(int(seat[SEAT_ROW, here]))
            here = int(seat[SEAT_BESIDE, here])
        return found

    def _shared(self, row: int) -> tuple[int, ...]:
        """The devices that a row shares, in rank order."""
        seat, here, found = self._seats.seat, int(self._seats.gang[GANG_FIRST, row]), []
        while here >= 0:
            found.append(int(seat[SEAT_DEVICE, here]))
            here = int(seat[SEAT_NEXT, here])
        return tuple(found)

    def of(self, row: int) -> Holding:
        """What the row holds now."""
        if self.shares(row):
            return self.gang(int(self._seats.gang[GANG_OPTION, row]), self._shared(row), shared=True)
        found = self.with_parts.get(row)
        if found is not None:
            return found
        I = self.state.tables.I
        return Holding(int(I[Job.OPTION, row]), self.chain(row), int(I[Job.NODE, row]))

    def has(self, row: int) -> bool:
        """Whether there is anything that the row could give back."""
        I = self.state.tables.I
        return self.shares(row) or row in self.with_parts or bool(I[Job.HEAD, row] >= 0 or I[Job.NODE, row] >= 0)

    def chain(self, row: int) -> tuple[int, ...]:
        """The devices that a row owns, in rank order."""
        return tuple(self.state.tables.chain(row))

    def nodes(self, devices: Iterable[int]) -> list[int]:
        """The nodes of some devices, in order of first mention."""
        of = self.state.tables.D[Device.NODE]
        return list(dict.fromkeys(int(of[device]) for device in devices))

    def rows_on(self, node: int) -> set[int]:
        """Rows with a stake in a node: its devices, owned or shared, or what it has beside."""
        t = self.state.tables
        first, count = int(t.NI[Node.FIRST, node]), int(t.NI[Node.GPUS, node])
        found = {int(row) for row in t.D[Device.HOLDER, first : first + count] if row >= 0}
        found |= {row for device in range(first, first + count) for row in self.tenants(device)}
        found |= {row for row, held in self.with_parts.items() if any(where == node for where, *_ in held.side)}
        return found | {int(row) for row in self.state.rows if t.I[Job.NODE, row] == node}

    def demand(self, held: Holding) -> dict[int, Beside]:
        """CPUs, memory and storage bandwidth per node."""
        t = self.state.tables
        found: dict[int, Beside] = {}
        F = t.options.F
        per_device = (float(F[Option.CPUS, held.option]), float(F[Option.MEMORY, held.option]), float(F[Option.STORAGE, held.option]))
        where = [] if held.shared else ([held.node] if held.node >= 0 else [int(t.D[Device.NODE, d]) for d in held.devices])
        if not held.side and per_device == NOTHING:  # the usual case, and a hot path: thousands of gangs at every decision
            return dict.fromkeys(where, NOTHING)
        for node, *amounts in [*((node, *per_device) for node in where), *held.side]:
            found[node] = added(found.get(node, NOTHING), amounts)
        return found

    def gang(self, option: int, devices: tuple[int, ...], shared: bool) -> Holding:
        """A gang on these devices; for one that shares, what it takes beside is listed per node."""
        owned = Holding(option, devices)
        if not shared:
            return owned
        side = tuple((node, *amounts) for node, amounts in self.demand(owned).items() if amounts != NOTHING)
        return replace(owned, shared=True, side=side)

    def free_of(self, kind: int) -> int:
        """Free devices of a type."""
        NI = self.state.tables.NI
        return int(NI[Node.FREE][NI[Node.TYPE] == kind].sum())

    def is_open(self, device: int) -> bool:
        """Whether a new gang may have the device: its node is up, and neither of them is cordoned."""
        t = self.state.tables
        return bool(t.NI[Node.UP, t.D[Device.NODE, device]] == 1 and t.D[Device.CLOSED, device] == 0)

    def beside(self, row: int) -> set[int]:
        """Other rows on devices that the row shares."""
        return {other for device in self._shared(row) for other in self.tenants(device) if other != row} if self.shares(row) else set()

    def first_device(self, row: int) -> int:
        """The first device of a row that holds any."""
        seat = int(self._seats.gang[GANG_FIRST, row]) if self.shares(row) else -1
        return int(self._seats.seat[SEAT_DEVICE, seat] if seat >= 0 else self.state.tables.I[Job.HEAD, row])

    def fits(self, held: Holding, company: frozenset[int], home: Holding | None = None) -> bool:
        """Whether a row that holds nothing could take this: devices free, or shared within its company; CPUs, memory and storage there.

        What it held until now (`home`) may be cordoned or lie on a node that drains: a gang that is there may stay.
        """
        t = self.state.tables
        mine = set(home.devices) if home is not None else set()
        places = {*self.nodes(mine), *(node for node, *_ in home.side), home.node} if home is not None else set()
        for device in held.devices:
            holder = int(t.D[Device.HOLDER, device])
            together = held.shared and holder == SHARED and company.issuperset(self.tenants(device))
            if not (holder == FREE or (together and (device in mine or self.is_open(device))) or (holder == DOWN and device in mine)):
                return False
        return all(
            (t.NI[Node.UP, node] == 1 or node in places) and (amounts == NOTHING or (t.NF[:HOST_RESOURCES, node] + SLACK >= amounts).all())
            for node, amounts in self.demand(held).items()
        )

    def take(self, row: int, held: Holding) -> None:
        """Enter what the row holds from now on; it held nothing, and `fits` returned true."""
        t = self.state.tables
        if held.shared:
            self._sit(row, held.option, held.devices)
            return
        for node, amounts in self.demand(held).items():
            if amounts != NOTHING:
                t.NF[:HOST_RESOURCES, node] -= amounts
        t.I[Job.OPTION, row], t.I[Job.NODE, row], t.I[Job.HEAD, row] = held.option, held.node, -1
        t.I[Job.HELD, row] = len(held.devices)
        t.I[Job.SPREAD, row] = len(self.nodes(held.devices)) if held.devices else int(held.node >= 0)
        last = -1
        for device in held.devices:
            if t.D[Device.HOLDER, device] == FREE:
                t.NI[Node.FREE, t.D[Device.NODE, device]] -= 1
            t.D[Device.HOLDER, device], t.D[Device.NEXT, device] = row, -1
            if last < 0:
                t.I[Job.HEAD, row] = device
            else:
                t.D[Device.NEXT, last] = device
            last = device
        if held.side:
            self.with_parts[row] = held

    def rise(self, row: int) -> list[int]:
        """The row leaves the devices that it shares. Returns the other rows there."""
        if len(self._marks) < self.state.tables.F.shape[1]:
            self._marks, self._near = np.zeros((2, self.state.tables.F.shape[1]), dtype=np.int64)
        count = rise_and_list(self.state.matrices, self.seats(), row, self._marks, self._near)
        return self._near[:count].tolist()  # type: ignore[no-any-return]

    def give_back(self, row: int) -> Holding:
        """The row gives up everything. Returns what it held."""
        t, held = self.state.tables, self.of(row)
        if held.shared:
            rise(self.state.matrices, self._seats, row)
            return held
        self.with_parts.pop(row, None)
        for node, *amounts in held.side:
            t.NF[:HOST_RESOURCES, node] += amounts
        give_back(self.state.matrices, row)
        return held

    def share(self, row: int) -> None:
        """The gang goes on where it is; from now on its company may join it there."""
        held = self.of(row)
        if not held.shared:
            self.give_back(row)
            self.take(row, self.gang(held.option, held.devices, shared=True))

    def own(self, row: int) -> None:
        """The gang goes on where it is, alone from now on (or still shared, if others are there that may not be touched)."""
        held = self.of(row)
        if held.shared and all(len(self.tenants(device)) == 1 for device in held.devices):
            self.give_back(row)
            self.take(row, Holding(held.option, held.devices))
