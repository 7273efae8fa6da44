"""Which gang holds what: taking and giving back devices and what is beside them, owned or shared. The only Python to change it.

A gang of its own is a chain through the device table, as the kernels keep it. A gang that shares devices is listed as a tenant of
each, and what it needs beside (CPUs, memory, storage bandwidth) is kept per node, because the kernels count it per chained device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.columns import DOWN, FREE, HOST_RESOURCES, SHARED, Option
from gantline.core.host_resources import SLACK
from gantline.engine.gang import give_back, take_these
from gantline.engine.shared_devices import (
    GANG_FIRST,
    GANG_OPTION,
    STAKE_BESIDE,
    STAKE_DEVICE,
    STAKE_NEXT,
    STAKE_ROW,
    SharedDevices,
    mark_beside,
    no_shared_devices,
    rise,
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


class Holding(NamedTuple):
    """What one row holds, or would."""

    option: int  # row of the option table
    devices: tuple[int, ...] = ()  # in rank order
    node: int = -1  # of a grant without devices
    shared: bool = False
    side: Side = ()  # of roles: (node, CPUs, GB, MB/s) beside what the option says per device


HOLDS_NOTHING = Holding(-1)


class Holdings:
    """The books of all rows; plain gangs are read from the tables."""

    def __init__(self, state: State) -> None:
        self.state = state
        t = state.tables
        self._shared_devices = no_shared_devices(t.F.shape[1], t.D.shape[1])
        self._beside: dict[int, Beside] = {}
        self._listed: Ints = np.zeros(0, dtype=np.int64)
        self.with_parts: dict[int, Holding] = {}  # rows that own their devices, and hold something beside that no option says
        for row, grant in t.granted.items():
            option = int(t.jobs.option[row])
            if grant.shared:
                for side in grant.side:  # it is entered again, with its stakes
                    t.NF[:HOST_RESOURCES, side[0]] += side[1:]
                self._sit(row, option, grant.devices)
            elif grant.side:
                self.with_parts[row] = Holding(option, grant.devices, int(t.jobs.node[row]), side=grant.side)

    def shared_devices(self, more: int = 0) -> SharedDevices:
        """Which gangs are on which shared devices, with so many stakes to spare."""
        t = self.state.tables
        self._shared_devices = with_room(self._shared_devices, t.F.shape[1], t.D.shape[1], more)
        return self._shared_devices

    def listed(self, devices: Sequence[int] = ()) -> Ints:
        """A list for kernels that begins with these devices; it is always the same one, so that they are told of it once."""
        if len(self._listed) <= self.state.tables.D.shape[1]:
            self._listed = np.zeros(2 * self.state.tables.D.shape[1] + 1, dtype=np.int64)
        self._listed[: len(devices)] = devices
        return self._listed

    def _sit(self, row: int, option: int, devices: tuple[int, ...]) -> None:
        sit(self.state.matrices, self.shared_devices(len(devices)), row, option, self.listed(devices), len(devices))

    def shares(self, row: int) -> bool:
        """Whether the row is on devices that it shares."""
        gang = self._shared_devices.gang
        return row < gang.shape[1] and bool(gang[GANG_FIRST, row] >= 0)

    def sharing(self, rows: Ints) -> Bools:
        """Which of these rows are."""
        return np.asarray(self.shared_devices().gang[GANG_FIRST][rows] >= 0)

    def tenants(self, device: int) -> list[int]:
        """The rows that share a device."""
        shared, found = self._shared_devices, []
        stake, here = shared.stake, int(shared.device[device]) if device < len(shared.device) else -1
        while here >= 0:
            found.append(int(stake[STAKE_ROW, here]))
            here = int(stake[STAKE_BESIDE, here])
        return found

    def _shared(self, row: int) -> tuple[int, ...]:
        """The devices that a row shares, in rank order."""
        stake, here, found = self._shared_devices.stake, int(self._shared_devices.gang[GANG_FIRST, row]), []
        while here >= 0:
            found.append(int(stake[STAKE_DEVICE, here]))
            here = int(stake[STAKE_NEXT, here])
        return tuple(found)

    def of(self, row: int) -> Holding:
        """What the row holds now."""
        if self.shares(row):
            return Holding(int(self._shared_devices.gang[GANG_OPTION, row]), self._shared(row), shared=True)
        found = self.with_parts.get(row)
        if found is not None:
            return found
        jobs = self.state.tables.jobs
        return Holding(int(jobs.option[row]), self.chain(row), int(jobs.node[row]))

    def has(self, row: int) -> bool:
        """Whether there is anything that the row could give back."""
        jobs = self.state.tables.jobs
        return self.shares(row) or row in self.with_parts or bool(jobs.head[row] >= 0 or jobs.node[row] >= 0)

    def chain(self, row: int) -> tuple[int, ...]:
        """The devices that a row owns, in rank order."""
        return tuple(self.state.tables.chain(row))

    def nodes(self, devices: Iterable[int]) -> list[int]:
        """The nodes of some devices, in order of first mention."""
        of = self.state.tables.devices.node
        return list(dict.fromkeys(int(of[device]) for device in devices))

    def rows_on(self, node: int) -> set[int]:
        """Rows with a stake in a node: its devices, owned or shared, or what it has beside."""
        t = self.state.tables
        first, count = int(t.nodes.first[node]), int(t.nodes.gpus[node])
        found = {int(row) for row in t.devices.holder[first : first + count] if row >= 0}
        found |= {row for device in range(first, first + count) for row in self.tenants(device)}
        found |= {row for row, held in self.with_parts.items() if any(where == node for where, *_ in held.side)}
        return found | {int(row) for row in self.state.rows if t.jobs.node[row] == node}

    def demand(self, held: Holding) -> dict[int, Beside]:
        """CPUs, memory and storage bandwidth per node."""
        each, found = self._each(held.option), dict[int, Beside]()
        nodes = [held.node] if held.node >= 0 else self.state.tables.devices.node[list(held.devices)].tolist()
        for node, amounts in [*((node, each) for node in nodes), *((node, amounts) for node, *amounts in held.side)]:
            found[node] = added(found.get(node, NOTHING), amounts)
        return found

    def _each(self, option: int) -> Beside:
        """What an option takes beside each device; options never change."""
        if option not in self._beside:
            self._beside[option] = tuple(self.state.tables.options.F[Option.CPUS : Option.CPUS + HOST_RESOURCES, option].tolist())
        return self._beside[option]

    def side(self, held: Holding) -> Side:
        """What is to be kept of a grant on these devices: what roles take beside them, or gangs that share."""
        if not held.shared:
            return held.side
        return tuple((node, *amounts) for node, amounts in self.demand(held).items() if amounts != NOTHING)

    def free_of(self, kind: int) -> int:
        """Free devices of a type."""
        nodes = self.state.tables.nodes
        return int(nodes.free[nodes.type == kind].sum())

    def is_open(self, device: int) -> bool:
        """Whether a new gang may have the device: its node is up, and neither of them is cordoned."""
        t = self.state.tables
        return bool(t.nodes.up[t.devices.node[device]] == 1 and t.devices.closed[device] == 0)

    def beside(self, row: int) -> set[int]:
        """Other rows on devices that the row shares."""
        return {other for device in self._shared(row) for other in self.tenants(device) if other != row} if self.shares(row) else set()

    def beside_any(self, rows: Ints) -> Ints:
        """These rows and all that share a device with one of them."""
        marks: Ints = np.zeros(self.state.tables.F.shape[1], dtype=np.int64)
        mark_beside(self.shared_devices(), rows, marks)
        return np.flatnonzero(marks)

    def fits(self, held: Holding, partners: frozenset[int], home: Holding | None = None) -> bool:
        """Whether a row that holds nothing could take this: devices free, or shared within its partners; CPUs, memory and storage there.

        What it held until now (`home`) may be cordoned or lie on a node that drains: a gang that is there may stay.
        """
        t = self.state.tables
        mine = () if home is None else home.devices
        for device, holder in zip(held.devices, t.devices.holder[list(held.devices)].tolist()):
            if holder != FREE:
                together = held.shared and holder == SHARED and partners.issuperset(self.tenants(device))
                if not (device in mine if holder == DOWN else together and (device in mine or self.is_open(device))):
                    return False
        if held.devices and not held.side and self._each(held.option) == NOTHING:
            return True
        for node, amounts in self.demand(held).items():
            if t.nodes.up[node] != 1 and (home is None or node not in (*self.nodes(mine), *(at for at, *_ in home.side), home.node)):
                return False
            if amounts != NOTHING and (t.NF[:HOST_RESOURCES, node] + SLACK < amounts).any():
                return False
        return True

    def take(self, row: int, held: Holding) -> None:
        """Enter what the row holds from now on; it held nothing, and `fits` returned true."""
        if held.shared:
            self._sit(row, held.option, held.devices)
            return
        take_these(self.state.matrices, row, held.option, held.node, self.listed(held.devices), len(held.devices))
        for node, *amounts in held.side:
            self.state.tables.NF[:HOST_RESOURCES, node] -= amounts
        if held.side:
            self.with_parts[row] = held

    def give_back(self, row: int) -> None:
        """The row gives up everything."""
        if self.shares(row):
            rise(self.state.matrices, self._shared_devices, row)
            return
        held = self.with_parts.pop(row, None)
        for node, *amounts in () if held is None else held.side:
            self.state.tables.NF[:HOST_RESOURCES, node] += amounts
        give_back(self.state.matrices, row)

    def share(self, row: int) -> None:
        """The gang goes on where it is; from now on its partners may join it there."""
        held = self.of(row)
        if not held.shared:
            self.give_back(row)
            self.take(row, held._replace(shared=True))

    def own(self, row: int) -> None:
        """The gang goes on where it is, alone from now on (or still shared, if others are there that may not be touched)."""
        held = self.of(row)
        if held.shared and all(len(self.tenants(device)) == 1 for device in held.devices):
            self.give_back(row)
            self.take(row, held._replace(shared=False))

    def restyle(self, row: int, option: int, partners: frozenset[int], only_less: bool) -> bool:
        """Another option on the same devices, if every node has what it takes beside; with `only_less` just where it takes no more."""
        t, held = self.state.tables, self.of(row)
        more = tuple(after - before for after, before in zip(self._each(option), self._each(held.option)))
        if only_less and max(more) > 0.0:
            return True
        if not partners.issuperset(self.beside(row)):
            return False
        if any(more):
            nodes, left = [held.node] if held.node >= 0 else t.devices.node[list(held.devices)].tolist(), t.NF[:HOST_RESOURCES]
            for node in nodes:
                left[:, node] -= more
            if any(amount > 0.0 and left[k, node] < -SLACK for node in nodes for k, amount in enumerate(more)):
                for node in nodes:
                    left[:, node] += more
                return False
        t.jobs.option[row] = option
        if held.shared:
            self._shared_devices.gang[GANG_OPTION, row] = option
        return True
