"""Which devices the workers of elastic jobs sit on: by the placement rule, or by a layout of all jobs of a type.

A layout is a pure function of counts per node (`packing.py`): jobs span few nodes first, and few workers move second.
From workers per node to devices, a job keeps those that it has on a node where it stays, and takes others that no job
keeps. Whoever keeps everything is not named, and newcomers only where they would not fall into place by themselves,
the largest first: what is not named costs the engine next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.columns import Option
from gantline.core.jit import kernel
from gantline.core.policy import Policy, param
from gantline.core.snapshot import Snapshot
from gantline.policies.elastic.packing import defragment, fits_buddies, pack, place_buddies, rearrange
from gantline.policies.elastic.pools import DevicesOf, Pool, free_or_held_by

NamedDevices = dict[int, tuple[int, ...]]  # job -> devices in rank order


@dataclass(frozen=True)
class HeldDevices:
    """The devices that jobs hold now, in rank order, one job after the other."""

    first: Ints  # of each job, and one behind the last
    device: Ints
    owner: Ints

    @staticmethod
    def of(held: Sequence[tuple[int, ...]]) -> HeldDevices:
        count = np.array(list(map(len, held)), dtype=np.int64)
        device = np.array(list(chain.from_iterable(held)), dtype=np.int64)
        return HeldDevices(np.append(0, np.cumsum(count)), device, np.repeat(np.arange(len(held)), count))

    def named(self, layout: Ints, turn: Ints, node: Ints, rooms: Ints, capacity: Ints) -> NamedDevices:
        """The devices of those jobs that do not have them already, for a layout of jobs x nodes.

        ``node`` is the layout's node of every device, ``rooms`` the devices that may be given, node by node, ``capacity`` how many of
        them each node has. What jobs do not keep goes to those that lack devices there, in that ``turn``.
        """
        first = np.append(0, np.cumsum(layout.sum(axis=1)))
        found, other = np.empty(first[-1], dtype=np.int64), np.zeros(len(layout), dtype=np.bool_)
        begins, taken = np.append(0, np.cumsum(capacity)), np.zeros(len(node), dtype=np.bool_)
        write = np.stack((first[:-1], first[1:]))
        _name(layout.copy(), turn, self.first, self.device, node, rooms, begins, taken, write, found, other)
        devices, ends = found.tolist(), first.tolist()
        return {job: tuple(devices[ends[job] : ends[job + 1]]) for job in np.flatnonzero(other & (np.diff(first) > 0)).tolist()}


@kernel
def _name(
    lacking: Ints, turn: Ints, first: Ints, held: Ints, node: Ints, rooms: Ints, begins: Ints, taken: Bools, write: Ints, found: Ints,
    other: Bools,
) -> None:  # fmt: skip
    """Fill ``found`` for each job: ``write`` says from which place on, and its end. ``lacking`` is the layout, less what has been found;
    ``other`` marks jobs that lose a device or get a new one."""
    (jobs, nodes), following, end = lacking.shape, write[0], write[1]
    for job in range(jobs):
        for k in range(first[job], first[job + 1]):
            at = node[held[k]]
            if at >= 0 and lacking[job, at] > 0:
                lacking[job, at] -= 1
                taken[held[k]] = True
                found[following[job]] = held[k]
                following[job] += 1
            else:
                other[job] = True
    for at in range(nodes):
        place = begins[at]
        for job in turn:
            if following[job] == end[job]:
                continue  # as most are before long: it has all that it gets
            while lacking[job, at] > 0:
                while taken[rooms[place]]:
                    place += 1
                found[following[job]] = rooms[place]
                following[job] += 1
                lacking[job, at] -= 1
                place += 1
                other[job] = True


LAYOUTS = {
    "engine": "by the placement rule, one gang at a time; running gangs stay",
    "packed": "all jobs are packed anew, the largest first, and bound to nodes so that the fewest workers move (Voda)",
    "buddies": "the same in buddy blocks, where sizes and nodes are powers of two (ElasticFlow)",
    "defragmented": "running gangs stay, but for those to which fewer nodes are worth more than the move costs (Gandiva)",
}
LAYOUT = "which nodes: " + "; ".join(f"'{name}' {text}" for name, text in LAYOUTS.items())
MOVE_COST = "seconds that a move costs, for layout=defragmented; 'auto': as --costs"


def move_seconds(snapshot: Snapshot, move_cost: str) -> float:
    """What a move costs: as the parameter says, or as the run does on the default engine (others count costs in ways of their own)."""
    if move_cost != "auto":
        return float(move_cost)
    return snapshot.costs.move if snapshot.regime == "default" else 0.0


@kernel
def _fits_in_order(free: Ints, sizes: Ints, largest: int) -> bool:
    """Whether gangs of these sizes, each taking what is free in order, span no more nodes than they would have to."""
    first = 0
    for size in sizes:
        left, spans = size, 0
        while left > 0:
            while free[first] == 0:
                first += 1
            taken = min(free[first], left)
            free[first] -= taken
            left -= taken
            spans += 1
        if spans > -(-size // largest):
            return False
    return True


@dataclass(frozen=True)
class TypeLayout:
    """The jobs of one device type, how many devices each gets, and which may not be moved."""

    snapshot: Snapshot
    kind: int
    jobs: Ints  # positions in snapshot.jobs
    grants: Ints
    pinned: Bools | None = None

    def devices(self, layout: str, move_cost: str = "auto") -> NamedDevices:
        """The devices, in rank order, of gangs that change or move, by their place among `jobs`; empty: the engine places."""
        if layout == "engine" or not self._simple():
            return {}
        nodes, shared = self._rooms()
        cluster = self.snapshot.cluster
        place_of = np.full(len(cluster.node_type), -1, dtype=np.int64)
        place_of[nodes] = np.arange(len(nodes))
        node = place_of[cluster.device_node]
        devices = self.snapshot.jobs.devices
        held = HeldDevices.of([devices(job) if runs else () for job, runs in zip(self.jobs.tolist(), self._runs.tolist())])
        capacity = np.bincount(node[shared], minlength=len(nodes))
        if not cluster.device_open[held.device].all() or self.grants.sum() > capacity.sum():
            return {}  # a node or a device is about to go, or more is given than there is: the engine sees to it
        now = np.zeros((len(self.jobs), len(nodes)), dtype=np.int64)
        _count(held.owner, node[held.device], now)
        if not _spread(now, int(capacity.max(initial=1))) and self._fall_into_place(now, capacity):
            return {}
        found, turn = self._laid_out(layout, now, capacity, move_seconds(self.snapshot, move_cost), nodes.tolist())
        return held.named(found, turn, node, shared[np.argsort(node[shared], kind="stable")], capacity)

    # --- what is there --------------------------------------------------------------------------------------------------
    @cached_property
    def _runs(self) -> Bools:
        jobs = self.snapshot.jobs
        runs: Bools = jobs.running[self.jobs] & (jobs.type[self.jobs] == self.kind)
        return runs

    @cached_property
    def _changed(self) -> Bools:
        held = np.where(self._runs, self.snapshot.jobs.held[self.jobs], 0)
        changed: Bools = held != self.grants
        return changed

    def _simple(self) -> bool:
        """Whether devices are all that anybody wants: CPUs, memory and numbers of nodes are the engine's business."""
        return self.snapshot.options.only_devices

    def _rooms(self) -> tuple[Ints, Ints]:
        """The nodes of the type, and of them the devices that these jobs may share: free ones and their own."""
        cluster = self.snapshot.cluster
        usable = (cluster.node_type == self.kind) & cluster.node_up
        shared = usable[cluster.device_node] & cluster.device_open & free_or_held_by(self.snapshot, self.jobs)
        return np.flatnonzero(usable), np.flatnonzero(shared)

    def _fall_into_place(self, now: Ints, capacity: Ints) -> bool:
        """Whether no gang that runs changes, and newcomers, the largest first, find the fewest nodes by taking what is free in order."""
        new = self._changed & (self.grants > 0)
        if (new & self._runs).any():
            return False
        free = capacity - now[self.grants > 0].sum(axis=0)
        return bool(_fits_in_order(free, -np.sort(-self.grants[new]), int(capacity.max(initial=1))))

    # --- where they go --------------------------------------------------------------------------------------------------
    def _laid_out(self, layout: str, now: Ints, capacity: Ints, seconds: float, nodes: list[int]) -> tuple[Ints, Ints]:
        """Workers of each job on each node, and the order in which jobs choose among the devices of a node."""
        changed = self._changed
        pinned = (np.zeros(len(self.jobs), dtype=np.bool_) if self.pinned is None else self.pinned) & ~changed
        stays = pinned | (layout == "defragmented") & ~changed
        any_stays = bool(stays.any())
        fixed = np.where(stays[:, None], now, 0) if any_stays else now[:0]
        free = capacity - fixed.sum(axis=0)
        sizes = np.where(stays, 0, self.grants)
        packed = place_buddies(sizes, len(free), int(free[0])) if layout == "buddies" and fits_buddies(sizes, free) else pack(sizes, free)
        found = fixed + rearrange(sizes, now - fixed, free, packed) if any_stays else rearrange(sizes, now, free, packed)
        turn = np.lexsort((-sizes, ~stays))
        if layout != "defragmented":
            return found, turn

        def saved(job: int, before: Sequence[int], after: Sequence[int]) -> float:
            mine, size = int(self.jobs[job]), int(self.grants[job])
            speed = [self._speed(mine, size, [nodes[at] for at in where]) for where in (before, after)]
            left = float(self.snapshot.jobs.remaining[mine])
            return left / speed[0] - left / speed[1] if min(speed) > 0.0 else 0.0

        together = defragment(found, capacity, saved, lambda job: 0.0 if changed[job] else np.inf if pinned[job] else seconds)
        return together, turn[np.argsort((together != found).any(axis=1)[turn], kind="stable")]

    def _speed(self, job: int, size: int, nodes: Sequence[int]) -> float:
        """Work per second on these nodes: as the performance model knows, or as the option of that size lists."""
        snapshot = self.snapshot
        model = snapshot.performance
        found = None if model is None else model.rate_on(snapshot.jobs.ids[job], self.kind, size, nodes, snapshot.cluster.description)
        if found is not None:
            return float(found)
        first, count = int(snapshot.jobs.option_first[job]), int(snapshot.jobs.option_count[job])
        OI, OF = snapshot.options.I[:, first : first + count], snapshot.options.F[:, first : first + count]
        same = np.flatnonzero((OI[Option.TYPE] == self.kind) & (OI[Option.GPUS] == size))
        if not len(same):
            return 0.0
        few = len(nodes) <= -(-size // int(snapshot.cluster.node_gpus[nodes[0]]))
        return float(OF[Option.RATE if few else Option.RATE_SPREAD, same[0]])


@kernel
def _count(owner: Ints, node: Ints, now: Ints) -> None:
    """Workers of each job on each node, from the owner and the node of every device."""
    for k in range(owner.size):
        now[owner[k], node[k]] += 1


@kernel
def _spread(now: Ints, largest: int) -> bool:
    """Whether some gang spans more nodes than it would have to, where the largest has so many devices."""
    jobs, nodes = now.shape
    for job in range(jobs):
        workers, spans = 0, 0
        for node in range(nodes):
            workers += now[job, node]
            spans += now[job, node] > 0
        if spans > -(-workers // largest):
            return True
    return False


@dataclass(frozen=True)
class LaysOut(Policy):
    """Shares out devices, and may say which."""

    layout: str = field(default="engine", kw_only=True, metadata=param(LAYOUT, one_of=LAYOUTS))
    move_cost: str = field(default="auto", kw_only=True, metadata=param(MOVE_COST, one_of=("auto",), low=0.0, finite=True, unit="seconds"))

    @property
    def devices_of(self) -> DevicesOf | None:
        """What finds the devices of gangs that change or move; None: the engine."""
        return None if self.layout == "engine" else self._devices_of

    def _devices_of(self, pool: Pool, grants: Ints) -> NamedDevices:
        return TypeLayout(pool.snapshot, pool.kind, pool.jobs, grants).devices(self.layout, self.move_cost)
