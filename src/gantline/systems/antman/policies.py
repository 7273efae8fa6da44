"""`antman`: guaranteed jobs as if alone, and guests on what they leave idle (OSDI 2020)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gantline.core.errors import UsageError
from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy, parameter
from gantline.core.snapshot import Snapshot
from gantline.models.sharing.device_contention import MINIBATCH, NEED, USE, USE_NOW

# Where AntMan puts jobs: guaranteed ones on devices of their own, whole or reserved in part; guests where devices are used least.


def gang_devices(gpus: int, free: Sequence[Sequence[int]], width: Sequence[int]) -> list[int]:
    """Devices for a gang, perhaps too few or too many: those of the first node that has enough, else of the node with most.

    A gang that is wider than any node gets whole nodes. `free` are the devices of each node that no other guaranteed job has.
    """
    if gpus > max(width, default=0):
        return [device for devices, all_of_it in zip(free, width, strict=True) if len(devices) == all_of_it for device in devices]
    for devices in free:
        if len(devices) >= gpus:
            return list(devices)
    most: Sequence[int] = max(free, key=len) if free else ()
    return list(most)


def guest_devices(gpus: int, use: Mapping[int, float], busy: float) -> list[int] | None:
    """The devices that are used least, wherever they are; None: too few are used less than `busy`."""
    chosen = sorted((device for device, part in use.items() if part < busy), key=lambda device: (use[device], device))[:gpus]
    return chosen if len(chosen) == gpus else None


# Device memory (section 3.2): owners have all that they need, guests share the rest, and it goes to the one that gains most by it.
#
# A guest cannot do without its floor (the metric `memory_floor`, GB per device: parameters and optimizer; where
# unknown, all of its need). What it has beyond that it gains speed by; of two guests the one that uses more of the
# device per GB of its need gains more.

FLOOR = "memory_floor"
_ROUNDING = 1e-9
DevicesByJob = Mapping[int, tuple[int, ...]]


class MemoryShares:
    """What jobs need of each of their devices, and what devices have."""

    def __init__(self, snapshot: Snapshot, use: Sequence[float]) -> None:
        cluster, jobs = snapshot.cluster, snapshot.jobs
        has = np.array([memory or math.inf for memory in cluster.device_memory])
        self._has: list[float] = has[cluster.node_type[cluster.device_node]].tolist()
        need, floor = jobs.metric(NEED), jobs.metric(FLOOR)
        self._need: list[float] = np.where(need > 0.0, need, 0.0).tolist()
        self._floor: list[float] = np.where(floor >= 0.0, np.minimum(floor, self._need), self._need).tolist()
        self._use = use
        self.counts = any(map(math.isfinite, self._has))

    def left(self, device: int, owners: Sequence[int], guests: Sequence[int]) -> float:
        """GB that are left when owners have their need and guests their floor."""
        return self._has[device] - sum(self._need[at] for at in owners) - sum(self._floor[at] for at in guests)

    def admits(self, at: int, device: int, owners: Sequence[int], guests: Sequence[int]) -> bool:
        """Whether another guest has its floor there."""
        return self.left(device, owners, guests) >= self._floor[at] - _ROUNDING

    def caps(self, owners: DevicesByJob, guests: DevicesByJob) -> dict[int, float]:
        """GB per device for each guest: the floor, and what is left to the one that gains most, then to the next."""
        there, hosts = _by_device(guests), _by_device(owners)
        room = {device: self.left(device, hosts.get(device, ()), neighbours) for device, neighbours in there.items()}
        found = {}
        for at in sorted(guests, key=lambda at: (-self._use[at] / self._need[at] if self._need[at] else 0.0, at)):
            more = min([self._need[at] - self._floor[at], *(room[device] for device in guests[at])])
            for device in guests[at]:
                room[device] -= more
            found[at] = self._floor[at] + more if self._need[at] else math.inf
        return found

    def too_many(self, owners: DevicesByJob, guests: DevicesByJob) -> list[int]:
        """Guests that must leave for the owners to have what they need: the last to come first."""
        left = dict(guests)
        hosts = _by_device(owners)
        gone = []
        for at in reversed(list(guests)):
            there = _by_device(left)
            if any(self.left(device, hosts.get(device, ()), there[device]) < -_ROUNDING for device in guests[at]):
                gone.append(at)
                del left[at]
        return gone


def _by_device(chosen: DevicesByJob) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for at, devices in chosen.items():
        for device in devices:
            found.setdefault(device, []).append(at)
    return found


# How much of a device a guest may use: more step by step while its hosts do not notice, less at once when they do (section 3.3).
#
# A host is what it was if its mini-batches take no longer than alone, within a tolerance. A share at which a host
# noticed the guest is not tried again until its neighbours change: another host, or one that uses more or less of the
# device than before.

LEAST = 0.01
"""A guest never stops altogether; it would not find out that its hosts have become idle."""

Neighbours = tuple[tuple[int, float], ...]


class GuestShare(NamedTuple):
    """What a guest may use of each of its devices."""

    part: float
    ceiling: float = 1.0  # the most that may be tried
    neighbours: Neighbours = ()  # row of each host, and how much it uses

    @property
    def rises(self) -> bool:
        """Whether more may be tried later."""
        return bool(self.neighbours) and self.part < self.ceiling

    def after(self, neighbours: Neighbours, slowdown: Sequence[float], tolerance: float, step: float, *, due: bool) -> GuestShare:
        """The next share, by how many times longer than alone the hosts' mini-batches take (NaN: not known yet); `due`: time for more."""
        if not neighbours:
            return GuestShare(1.0)
        if {row for row, _ in neighbours} - {row for row, _ in self.neighbours}:  # a host has come: it is to run as alone first
            return GuestShare(min(self.part, step), 1.0, neighbours)
        ceiling = self.ceiling if neighbours == self.neighbours else 1.0
        if any(each > 1.0 + tolerance for each in slowdown):
            return GuestShare(max(self.part / 2.0, LEAST), max(self.part - step, LEAST), neighbours)
        known = all(each == each for each in slowdown)
        return GuestShare(min(self.part + step, ceiling) if due and known else min(self.part, ceiling), ceiling, neighbours)


# The devices as AntMan sees them while it decides: which guaranteed job owns or has reserved each, and how much guests and owners use.


class Floor:
    """Owners, reservations and guests; begins with what runs."""

    def __init__(self, snapshot: Snapshot, guests: Collection[int]) -> None:
        """`guests` are the rows that run as guests; all others that run own their devices."""
        self._jobs, self._cluster = snapshot.jobs, snapshot.cluster
        jobs, node = self._jobs, self._cluster.device_node
        self._node_of = node.tolist()
        self._open = self._cluster.device_open.tolist()
        self._width = np.bincount(node, minlength=self._cluster.nodes).tolist()
        use = jobs.metric(USE_NOW)
        use = np.where(np.isnan(use), jobs.metric(USE), use)
        self.use = np.where(np.isnan(use), 1.0, use).tolist()  # of a device, by each job
        self.memory = MemoryShares(snapshot, self.use)
        self.owners: dict[int, tuple[int, ...]] = {}
        self.guests: dict[int, tuple[int, ...]] = {}
        self._taken: dict[int, int] = {}  # device -> its owner, or the job that has reserved it
        rows = jobs.rows.tolist()
        for at in np.flatnonzero(jobs.running).tolist():
            if rows[at] in guests:
                self.guests[at] = jobs.devices(at)
            else:
                self.own(at, jobs.devices(at))

    def own(self, at: int, devices: tuple[int, ...]) -> None:
        """A guaranteed job gets these, and is a guest no longer."""
        self.owners[at] = devices
        self.guests.pop(at, None)
        self._taken.update(dict.fromkeys(devices, at))

    def place(self, at: int) -> None:
        """Give a guaranteed job devices of its own, or reserve what there is. Where it is a guest without a host, it stays."""
        held = self.guests.get(at, ())
        if held and not any(device in self._taken for device in held):
            self.own(at, held)
            return
        gpus, type = int(self._jobs.gpus[at]), self._type(at)
        free: list[list[int]] = [[] for _ in self._width]
        for device, node in enumerate(self._node_of):
            if self._open[device] and device not in self._taken and self._cluster.node_type[node] == type:
                free[node].append(device)
        chosen = gang_devices(gpus, free, self._width)[:gpus]
        if len(chosen) == gpus:
            self.own(at, tuple(chosen))
        else:
            self._taken.update(dict.fromkeys(chosen, at))

    def let_in(self, at: int, busy: float) -> None:
        """Put a guest where devices are used least, if they are used less than `busy`; one that runs stays where it is."""
        if at in self.guests:
            return
        use = dict.fromkeys((device for device in range(len(self._node_of)) if self._fits(at, device)), 0.0)
        for job, devices in (*self.owners.items(), *self.guests.items()):
            for device in devices:
                if device in use:
                    use[device] += self.use[job]
        chosen = guest_devices(int(self._jobs.gpus[at]), use, busy)
        if chosen is not None:
            self.guests[at] = tuple(chosen)

    def hosts(self, at: int) -> list[int]:
        """The owners of the devices of a guest that run; a reservation is no host."""
        found = dict.fromkeys(self._taken.get(device, -1) for device in self.guests[at])
        return [host for host in found if host in self.owners]

    def neighbours(self, at: int) -> int:
        """How many guests, itself included, are on the device where they are most."""
        mine = set(self.guests[at])
        counts = [sum(device in devices for devices in self.guests.values()) for device in mine]
        return max(counts)

    def _type(self, at: int) -> int:
        """The device type on which a job runs, or that of its first option."""
        here = int(self._jobs.type[at])
        return here if here >= 0 else self._jobs.options(at)[0].type

    def make_room(self) -> None:
        """Guests leave where the owners need the memory that they cannot do without."""
        for at in self.memory.too_many(self.owners, self.guests) if self.memory.counts else ():
            del self.guests[at]

    def _fits(self, at: int, device: int) -> bool:
        if not self._open[device] or int(self._cluster.node_type[self._node_of[device]]) != self._type(at):
            return False
        owner = self._taken.get(device, -1)
        there = [guest for guest, devices in self.guests.items() if device in devices] if self.memory.counts else []
        return self.memory.admits(at, device, [owner] if owner >= 0 else [], there)


# AntMan on the engine: guaranteed jobs as if alone, and guests on what they leave idle.

OPPORTUNISTIC = "opportunistic"
"""The metric that says whether a job is a guest (1) or guaranteed (0, or unknown)."""
_MINIBATCH = 1.0
"""Seconds after which a share that was cut is looked at again: a few mini-batches."""
_SOON = 1e-6


@dataclass(frozen=True)
class AntMan(Policy):
    """Guaranteed jobs get devices of their own, in order of arrival; opportunistic ones share them as guests, and never slow them down.

    A guaranteed job that does not fit whole reserves what there is: other guaranteed jobs stay away, guests do not.
    """

    name = "antman"
    names_devices = True
    paper = "Xiao et al.: AntMan: Dynamic Scaling on GPU Clusters for Deep Learning (OSDI 2020)"

    quotas: str = parameter("", "devices that the guaranteed jobs of a user may hold: alice=8,bob=16; others: any")
    patience: float = parameter(math.inf, "seconds that a guaranteed job waits before it may start as a guest", low=0.0, unit="seconds")
    busy: float = parameter(0.8, "guests go to devices that are used less than this", above=0.0, high=1.0)
    tolerance: float = parameter(0.02, "how much longer a host's mini-batch may take", above=0.0, finite=True)
    step: float = parameter(0.05, "by how much the share of a guest is raised", above=0.0, high=1.0)
    interval: float = parameter(60.0, "seconds between two rises of shares", above=0.0, finite=True, unit="seconds")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._quotas()

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, now = snapshot.jobs, snapshot.now
        known: dict[str, GuestShare] = {row: GuestShare(*share) for row, share in (snapshot.memory or {}).get("shares", {}).items()}
        floor = Floor(snapshot, {int(row) for row in known})
        order = np.argsort(jobs.arrival, kind="stable").tolist()
        guest = (jobs.metric(OPPORTUNISTIC) > 0.0).tolist()
        self._place_guaranteed(snapshot, floor, [at for at in order if not guest[at]])
        floor.make_room()
        arrival = jobs.arrival.tolist()
        for at in order:
            if at not in floor.owners and (guest[at] or now - arrival[at] >= self.patience - _SOON):
                floor.let_in(at, self.busy)
        due = now >= (snapshot.memory or {}).get("rise", -math.inf) - _SOON
        shares = self._shares(snapshot, floor, known, due)
        plan = [Assignment(at, devices=devices, mode=Mode.SPACE) for at, devices in floor.owners.items()]
        caps = floor.memory.caps(floor.owners, floor.guests) if floor.memory.counts else {}
        plan += [
            Assignment(at, devices=devices, mode=Mode.SPACE, fraction=shares[at].part, memory_cap=caps.get(at, math.inf))
            for at, devices in floor.guests.items()
        ]
        rise = (math.floor(now / self.interval + _SOON) + 1) * self.interval
        before = {at: known.get(str(jobs.rows[at]), share) for at, share in shares.items() if share.neighbours}
        cut = any(share.part < before[at].part for at, share in shares.items() if at in before)
        tried = any(share.rises or share.part > before[at].part for at, share in shares.items() if at in before)
        wake = [now + _MINIBATCH] if cut else [rise] if tried else []
        wake += [arrival[at] + self.patience for at in order if not guest[at] and at not in floor.owners and at not in floor.guests]
        memory = {"rise": rise, "shares": {str(jobs.rows[at]): tuple(share) for at, share in shares.items()}}
        return Plan.assign(plan, valid_until=min((time for time in wake if time > now), default=math.inf), memory=memory)

    def _place_guaranteed(self, snapshot: Snapshot, floor: Floor, order: list[int]) -> None:
        """In order of arrival, each as far as its user's quota goes."""
        gpus, user, quotas = snapshot.jobs.gpus.tolist(), snapshot.jobs.user.tolist(), self._quotas()
        names = snapshot.users
        held = dict.fromkeys(user, 0)
        for at in floor.owners:
            held[user[at]] += gpus[at]
        for at in order:
            bound = quotas.get(names[user[at]] if user[at] >= 0 else "", math.inf)
            if at not in floor.owners and held[user[at]] + gpus[at] <= bound:
                held[user[at]] += gpus[at]
                floor.place(at)

    def _shares(self, snapshot: Snapshot, floor: Floor, known: dict[str, GuestShare], due: bool) -> dict[int, GuestShare]:
        """What each guest may use from now on."""
        rows, slowdown = snapshot.jobs.rows.tolist(), snapshot.jobs.metric(MINIBATCH).tolist()
        found = {}
        for at in floor.guests:
            hosts = floor.hosts(at)
            neighbours = tuple((rows[host], round(floor.use[host], 2)) for host in hosts)
            before = known.get(str(rows[at]), GuestShare(self.step))
            share = before.after(neighbours, [slowdown[host] for host in hosts], self.tolerance, self.step, due=due)
            found[at] = share if neighbours else share._replace(part=1.0 / floor.neighbours(at))
        return found

    def _quotas(self) -> dict[str, float]:
        found = {}
        for part in filter(None, self.quotas.split(",")):
            user, _, devices = part.partition("=")
            if not user.strip() or not devices.strip().isdigit():
                raise UsageError(
                    f"parameter 'quotas' has '{part}'", where="policy 'antman'", fix="give user=devices, such as alice=8,bob=16"
                )
            found[user.strip()] = float(devices)
        return found
