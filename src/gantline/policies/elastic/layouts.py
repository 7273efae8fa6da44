"""Which devices the workers of elastic jobs sit on: as the engine's placement rule finds them, or by a layout of all jobs of a type.

A layout is a pure function of counts per node (`gantline.placement`): jobs span few nodes first, and few workers move second. Devices that
a job has on a node where it stays are kept. Whoever keeps everything is not named, and newcomers only where they would not fall into place
by themselves, the largest first: what is not named costs the engine next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Bools, Ints
from gantline.core.errors import UsageError, near
from gantline.core.snapshot import Snapshot
from gantline.placement.buddies import fits_buddies, place_buddies
from gantline.placement.defragment import defragment
from gantline.placement.migration import Layout, pack, rearrange

LAYOUTS = {
    "engine": "by the placement rule, one gang at a time; who runs stays",
    "packed": "all jobs are packed anew, the largest first, and bound to nodes so that the fewest workers move (Voda)",
    "buddies": "the same in buddy blocks, where sizes and nodes are powers of two (ElasticFlow)",
    "defragmented": "who runs stays, but for gangs to whom fewer nodes are worth more than the move costs (Gandiva)",
}
LAYOUT = "which nodes: " + "; ".join(f"'{name}' {told}" for name, told in LAYOUTS.items())
MOVE_COST = "seconds that a move costs, for layout=defragmented; 'auto': as --costs"
NamedDevices = dict[int, tuple[int, ...]]


def check_layout(layout: str, move_cost: str, policy: str) -> None:
    """Refuse a layout that nobody knows, and costs that are none."""
    if layout not in LAYOUTS:
        raise UsageError(f"layout is '{layout}'", where=f"policy '{policy}'", fix=near(layout, LAYOUTS))
    try:
        valid = move_cost == "auto" or 0.0 <= float(move_cost) < float("inf")
    except ValueError:
        valid = False
    if not valid:
        raise UsageError(f"move_cost is '{move_cost}'", where=f"policy '{policy}'", fix="seconds, zero or more, or auto")


def move_seconds(snapshot: Snapshot, move_cost: str) -> float:
    """What a move costs: as the parameter says, or as the run does on the default engine (others count costs in ways of their own)."""
    if move_cost != "auto":
        return float(move_cost)
    return snapshot.costs.move if snapshot.regime == "default" else 0.0


@dataclass(frozen=True)
class SeatedWorkers:
    """How many workers of which job are on which node now, by node, then by job."""

    node: Ints
    job: Ints
    workers: Ints

    @staticmethod
    def of(node: Ints, job: Ints, jobs: int) -> SeatedWorkers:
        """From the node and the job of every device that is held."""
        pair, workers = np.unique(node * jobs + job, return_counts=True)
        return SeatedWorkers(pair // jobs, pair % jobs, workers)

    def spread(self, capacity: Ints) -> bool:
        """Whether some gang spans more nodes than it would have to."""
        spans, total = np.bincount(self.job), np.bincount(self.job, weights=self.workers)
        return bool((spans > np.ceil(total / capacity.max(initial=1))).any())

    def as_layout(self, nodes: int) -> Layout:
        now: Layout = [{} for _ in range(nodes)]
        for node, job, workers in zip(self.node.tolist(), self.job.tolist(), self.workers.tolist()):
            now[node][str(job)] = workers
        return now


def _fits_in_order(free: list[int], sizes: list[int], largest: int) -> bool:
    """Whether gangs of these sizes, each taking what is free in order, span no more nodes than they would have to."""
    first = 0
    for size in sizes:
        left, spans = size, 0
        while left > 0:
            while not free[first]:
                first += 1
            taken = min(free[first], left)
            free[first], left, spans = free[first] - taken, left - taken, spans + 1
        if spans > -(-size // largest):
            return False
    return True


@dataclass(frozen=True)
class TypeLayout:
    """The jobs of one device type, how many devices each gets, and who may not be moved."""

    snapshot: Snapshot
    kind: int
    jobs: Ints  # positions in snapshot.jobs
    grants: Ints
    pinned: Bools | None = None

    def devices(self, layout: str, move_cost: str = "auto") -> NamedDevices:
        """The devices, in rank order, of those who change or move, by their place among `jobs`; empty: the engine places."""
        if layout == "engine" or not self._simple():
            return {}
        nodes, shared = self._rooms()
        at = np.full(len(self.snapshot.cluster.node_type), -1, dtype=np.int64)
        at[nodes] = np.arange(len(nodes))
        node_of = self.snapshot.cluster.device_node
        held = {place: self.snapshot.jobs.devices(int(self.jobs[place])) for place in np.flatnonzero(self._runs).tolist()}
        flat = np.array([device for devices in held.values() for device in devices], dtype=np.int64)
        capacity = np.bincount(at[node_of[shared]], minlength=len(nodes))
        if not self.snapshot.cluster.device_open[flat].all() or self.grants.sum() > capacity.sum():
            return {}  # a node or a device is about to go, or more is given than there is: the engine sees to it
        owner = np.repeat(np.array(list(held), dtype=np.int64), [len(devices) for devices in held.values()])
        seated = SeatedWorkers.of(at[node_of[flat]], owner, len(self.jobs))
        if not seated.spread(capacity) and self._fall_into_place(seated, capacity):
            return {}
        found = self._laid_out(
            layout, seated.as_layout(len(nodes)), capacity.tolist(), move_seconds(self.snapshot, move_cost), nodes.tolist()
        )
        rooms = np.split(shared[np.argsort(at[node_of[shared]], kind="stable")], np.cumsum(capacity)[:-1])
        return self._named(found, [room.tolist() for room in rooms], held)

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
        options = self.snapshot.options
        return not (options.I[c.O_NODES].any() or options.F[c.O_CPUS].any() or options.F[c.O_MEMORY].any())

    def _rooms(self) -> tuple[Ints, Ints]:
        """The nodes of the type, and of them the devices that these jobs may share: free ones and their own."""
        cluster, rows = self.snapshot.cluster, self.snapshot.jobs.rows
        mine = np.append(rows[self.jobs], c.FREE)
        usable = (cluster.node_type == self.kind) & cluster.node_up
        shared = usable[cluster.device_node] & cluster.device_open & np.isin(cluster.device_holder, mine)
        return np.flatnonzero(usable), np.flatnonzero(shared)

    def _fall_into_place(self, seated: SeatedWorkers, capacity: Ints) -> bool:
        """Whether nobody who runs changes, and newcomers, the largest first, find the fewest nodes by taking what is free in order."""
        new = self._changed & (self.grants > 0)
        if (new & self._runs).any():
            return False
        staying = self.grants[seated.job] > 0
        free = capacity - np.bincount(seated.node[staying], weights=seated.workers[staying], minlength=len(capacity)).astype(np.int64)
        return _fits_in_order(free.tolist(), sorted(self.grants[new].tolist(), reverse=True), int(capacity.max(initial=1)))

    # --- where they go --------------------------------------------------------------------------------------------------
    def _laid_out(self, layout: str, now: Layout, capacity: list[int], seconds: float, nodes: list[int]) -> Layout:
        changed = self._changed
        pinned = (np.zeros(len(self.jobs), dtype=np.bool_) if self.pinned is None else self.pinned) & ~changed
        stays = pinned | (layout == "defragmented") & ~changed
        fixed = [{job: workers for job, workers in node.items() if stays[int(job)]} for node in now]
        free = [room - sum(node.values()) for room, node in zip(capacity, fixed)]
        moving = [{job: workers for job, workers in node.items() if not stays[int(job)]} for node in now]
        sizes = {str(place): int(size) for place, size in enumerate(self.grants.tolist()) if size > 0 and not stays[place]}
        blocks = layout == "buddies" and fits_buddies(sizes, free)
        packed = place_buddies(sizes, len(free), free[0]) if blocks else pack(sizes, free)
        found = [{**mine, **others} for mine, others in zip(fixed, rearrange(sizes, moving, free, packed).layout)]
        if layout != "defragmented":
            return found

        def saved(job: str, before: Sequence[int], after: Sequence[int]) -> float:
            mine, size = int(self.jobs[int(job)]), int(self.grants[int(job)])
            speed = [self._speed(mine, size, [nodes[at] for at in where]) for where in (before, after)]
            left = float(self.snapshot.jobs.remaining[mine])
            return left / speed[0] - left / speed[1] if min(speed) > 0.0 else 0.0

        return defragment(found, capacity, saved, lambda job: 0.0 if changed[int(job)] else np.inf if pinned[int(job)] else seconds)

    def _speed(self, job: int, size: int, nodes: Sequence[int]) -> float:
        """Work per second on these nodes: as the performance model knows, or as the option of that size lists."""
        snapshot = self.snapshot
        model = snapshot.performance
        told = None if model is None else model.rate_on(snapshot.jobs.ids[job], self.kind, size, nodes, snapshot.cluster.description)
        if told is not None:
            return float(told)
        first, count = int(snapshot.jobs.option_first[job]), int(snapshot.jobs.option_count[job])
        OI, OF = snapshot.options.I[:, first : first + count], snapshot.options.F[:, first : first + count]
        same = np.flatnonzero((OI[c.O_TYPE] == self.kind) & (OI[c.O_GPUS] == size))
        if not len(same):
            return 0.0
        few = len(nodes) <= -(-size // int(snapshot.cluster.node_gpus[nodes[0]]))
        return float(OF[c.O_RATE if few else c.O_RATE_SPREAD, same[0]])

    # --- devices --------------------------------------------------------------------------------------------------------
    def _named(self, layout: Layout, rooms: Sequence[Sequence[int]], held: NamedDevices) -> NamedDevices:
        """Counts per node as devices: those that a job has there already, then others that nobody keeps."""
        kept: dict[int, list[int]] = {place: [] for place in range(len(self.jobs))}
        fresh: dict[int, list[int]] = {place: [] for place in range(len(self.jobs))}
        for node, devices in zip(layout, rooms):
            here, taken, missing = set(devices), set[int](), {}
            for job, workers in node.items():
                own = [device for device in held.get(int(job), ()) if device in here][:workers]
                kept[int(job)] += own
                taken.update(own)
                missing[int(job)] = workers - len(own)
            free = iter([device for device in devices if device not in taken])
            for place, more in missing.items():
                fresh[place] += islice(free, more)
        order = {place: {device: rank for rank, device in enumerate(devices)} for place, devices in held.items()}
        found = {place: (*sorted(kept[place], key=lambda d, p=place: order[p][d]), *fresh[place]) for place in kept}  # type: ignore[misc]
        return {place: devices for place, devices in found.items() if devices and devices != held.get(place)}
