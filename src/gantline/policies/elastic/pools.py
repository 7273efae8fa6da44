"""The devices of one type and the jobs that share them: what an elastic policy decides on.

Systems of this kind run one scheduler per device type. A job that may run on several goes where it runs already; one
that waits goes, in order of arrival, to the type that has the least asked of it. Gangs whose grant is locked or in
flight stay out, and so do their devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import FREE, Option
from gantline.core.jit import kernel
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.core.plan import Assignments, Plan
from gantline.core.snapshot import Snapshot
from gantline.models.model import overrides


@dataclass(frozen=True)
class Curves:
    """Sizes in rising order: those of job i are entries [first[i], first[i + 1])."""

    first: Ints
    size: Ints
    rate: Floats  # work per second
    option: Ints  # which of the job's options (-1: a way derived from one)

    def __len__(self) -> int:
        return len(self.first) - 1

    @cached_property
    def owner(self) -> Ints:
        """Per entry: the job whose size it is."""
        return np.repeat(np.arange(len(self)), self.count)

    @property
    def count(self) -> Ints:
        """How many sizes each job may have."""
        return np.diff(self.first)

    @property
    def least(self) -> Ints:
        """The smallest size of each job; zero: it has none."""
        return self._edge(self.first[:-1])

    @property
    def most(self) -> Ints:
        """The largest size of each job; zero: it has none."""
        return self._edge(self.first[1:] - 1)

    def _edge(self, entries: Ints) -> Ints:
        some = self.count > 0
        found = np.zeros(len(self), dtype=np.int64)
        found[some] = self.size[entries[some]]
        return found

    @property
    def unit(self) -> Floats:
        """Speed of one worker, which speedups and remaining times refer to: measured, else a worker's part at the smallest size."""
        some = self.count > 0
        found = np.ones(len(self))
        entry = self.first[:-1][some]
        found[some] = self.rate[entry] / self.size[entry]
        return found

    @property
    def speedup(self) -> Floats:
        """Per entry: how many single workers it is worth."""
        return self.rate / np.repeat(self.unit, self.count)

    def at_most(self, size: Ints) -> Ints:
        """Per job the entry of the largest size that is not above the given one; -1: there is none."""
        below = np.bincount(self.owner[self.size <= size[self.owner]], minlength=len(self))
        return np.where(below > 0, self.first[:-1] + below - 1, -1)

    def only(self, keep: Bools) -> Curves:
        """The same jobs with fewer sizes."""
        owner = self.owner[keep]
        first = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=len(self))))).astype(np.int64)
        return Curves(first, self.size[keep], self.rate[keep], self.option[keep])

    def powers_of_two(self) -> Curves:
        """Sizes that fill halves, quarters and so on of a machine; a job that has none keeps what it has."""
        even = (self.size & (self.size - 1)) == 0
        some = np.bincount(self.owner[even], minlength=len(self)) > 0
        return self if even.all() else self.only(even | ~some[self.owner])

    def entry_of(self, grants: Ints) -> Ints:
        """Per job the entry of the size it was granted; -1 for those granted nothing."""
        return np.where(grants > 0, self.at_most(grants), -1)


def read_curves(snapshot: Snapshot, jobs: Ints, kind: int, capacity: int) -> Curves:
    """The sizes that the jobs at these positions may have on one device type; those that the pool will never have are left out."""
    return Curves(*snapshot.jobs.sizes_table(kind, jobs, capacity))


RATE_LIMIT = "seconds between two times of sharing out, at least; what happens meanwhile is answered then"


@dataclass(frozen=True)
class Pool:
    """One device type: the jobs that compete for it, in order of arrival, and how many devices there are for them."""

    snapshot: Snapshot
    kind: int
    capacity: int
    jobs: Ints  # positions in snapshot.jobs
    curves: Curves

    def __len__(self) -> int:
        return len(self.jobs)

    def of(self, column: NDArray[Any]) -> NDArray[Any]:
        """A column of the snapshot's jobs, for those of the pool."""
        return column[self.jobs]

    @property
    def remaining(self) -> Floats:
        """Estimated seconds left on one worker."""
        left: Floats = self.of(self.snapshot.jobs.remaining) / self.curves.unit
        return left


def pools(snapshot: Snapshot) -> Iterator[Pool]:
    """Every device type that some job competes for."""
    phase = snapshot.jobs.phase
    free_to_change = (phase == PENDING) | (((phase == STARTING) | (phase == RUNNING)) & ~snapshot.jobs.locked)
    capacity = snapshot.cluster.capacity - _held(snapshot, np.flatnonzero(~free_to_change))
    competing = np.flatnonzero(free_to_change)
    kinds = _kinds(snapshot, competing, capacity)
    for kind in range(len(capacity)):
        mine = competing[kinds == kind]
        if len(mine):
            room = max(int(capacity[kind]), 0)
            yield Pool(snapshot, kind, room, mine, read_curves(snapshot, mine, kind, room))


def rooms(pool: Pool) -> dict[int, list[int]]:
    """Per node of the pool's type the devices that its jobs may share: free ones and their own."""
    return by_node(pool.snapshot, np.flatnonzero(may_share(pool)))


def may_share(pool: Pool) -> Bools:
    """Per device of the cluster: whether the pool's jobs may share it."""
    cluster, holders = pool.snapshot.cluster, free_or_held_by(pool.snapshot, pool.jobs)
    found: Bools = (cluster.node_type[cluster.device_node] == pool.kind) & cluster.device_open & holders
    return found


def free_or_held_by(snapshot: Snapshot, jobs: Ints) -> Bools:
    """Per device of the cluster: whether no job holds it, or one of these."""
    rows, holder = snapshot.jobs.rows[jobs], snapshot.cluster.device_holder
    held = holder >= 0
    mine = np.zeros(max(int(rows.max(initial=0)), int(holder.max(initial=0))) + 1, dtype=np.bool_)
    mine[rows] = True
    found: Bools = np.where(held, mine[np.where(held, holder, 0)], holder == FREE)
    return found


def by_node(snapshot: Snapshot, devices: Ints) -> dict[int, list[int]]:
    """Devices listed by the node that they are on."""
    node = snapshot.cluster.device_node[devices]
    order = np.argsort(node, kind="stable")
    listed, ends = devices[order].tolist(), np.cumsum(np.bincount(node)).tolist()
    return {node: listed[begin:end] for node, (begin, end) in enumerate(zip([0, *ends], ends)) if end > begin}


def _held(snapshot: Snapshot, staying: Ints) -> Ints:
    """Devices per type held by gangs that stay as they are."""
    kept = np.zeros(len(snapshot.cluster.types), dtype=np.int64)
    for place in staying.tolist():
        for device in snapshot.jobs.devices(place):
            kept[snapshot.cluster.node_type[snapshot.cluster.device_node[device]]] += 1
    return kept


def _kinds(snapshot: Snapshot, competing: Ints, capacity: Ints) -> Ints:
    """The device type each job competes for; -1: none, it wants no devices."""
    jobs, OI = snapshot.jobs, snapshot.options.I
    possible = np.zeros((len(competing), len(capacity)), dtype=np.bool_)
    _mark_possible(jobs.option_first[competing], jobs.option_count[competing], OI, capacity, possible)
    choices = possible.sum(axis=1)
    kinds = np.where(choices > 0, np.argmax(possible, axis=1), -1)
    if (choices > 1).any():
        used, wanted = jobs.type[competing], jobs.min_gpus[competing]
        asked = np.zeros(len(capacity))
        for i in range(len(competing)):
            if choices[i] > 1:
                at = int(used[i])
                load = np.where(possible[i], (asked + wanted[i]) / np.maximum(capacity, 1), np.inf)
                kinds[i] = at if at >= 0 and possible[i, at] else int(np.argmin(load))
            if kinds[i] >= 0:
                asked[kinds[i]] += wanted[i]
    return kinds


@kernel
def _mark_possible(first: Ints, count: Ints, OI: Ints, capacity: Ints, possible: Bools) -> None:
    """Which types some option of each job names, if there are devices of them."""
    for i in range(first.size):
        for o in range(first[i], first[i] + count[i]):
            if OI[Option.GPUS, o] > 0 and capacity[OI[Option.TYPE, o]] > 0:
                possible[i, OI[Option.TYPE, o]] = True


DevicesOf = Callable[[Pool, Ints], dict[int, tuple[int, ...]]]


@dataclass(frozen=True)
class SharedOut:
    """How many devices each job of each pool gets, until when, and what to remember."""

    shares: list[tuple[Pool, Ints]]
    memory: dict[str, Any]
    until: float = math.inf


def share_again(
    snapshot: Snapshot, memory: dict[str, Any], signs: list[int], share: Callable[[Pool], Ints], rate_limit: float = 0.0
) -> SharedOut:
    """Share out every pool, or repeat the last answer while jobs, devices and the given signs are the same.

    Systems of this kind decide when something happens, not on a timer: in between nothing moves. With a `rate_limit` they wait until so
    many seconds have passed since they last shared out; whatever happens meanwhile is answered then, at once. Who ends leaves its devices
    idle, and newcomers wait; but devices that were lost are shared out anew without delay.
    """
    found = list(pools(snapshot))
    cause = [snapshot.jobs.rows.tolist(), signs, [[pool.kind, pool.capacity, *pool.jobs.tolist()] for pool in found]]
    if memory.get("cause") == cause:
        return SharedOut([(pool, np.array(before, dtype=np.int64)) for pool, before in zip(found, memory["shares"])], memory)
    last = memory.get("at", -math.inf)
    given = _given_before(memory, snapshot, found) if rate_limit > 0.0 and snapshot.now < last + rate_limit else None
    if given is not None:
        return SharedOut(given, memory, last + rate_limit)
    shared = [(pool, share(pool)) for pool in found]
    kept = {"cause": cause, "shares": [grants.tolist() for _, grants in shared]}
    return SharedOut(shared, kept | {"at": snapshot.now} if rate_limit > 0.0 else kept)


def _given_before(memory: dict[str, Any], snapshot: Snapshot, found: list[Pool]) -> list[tuple[Pool, Ints]] | None:
    """What the jobs still present were given; None: there are fewer devices now than that takes."""
    rows, _, places = memory["cause"]
    before = [(kind, rows[place], size) for (kind, _, *jobs), sizes in zip(places, memory["shares"]) for place, size in zip(jobs, sizes)]
    size_of = {(kind, row): size for kind, row, size in before}
    now = snapshot.jobs.rows
    given = [(pool, np.array([size_of.get((pool.kind, row), 0) for row in now[pool.jobs].tolist()], dtype=np.int64)) for pool in found]
    return None if any(grants.sum() > pool.capacity for pool, grants in given) else given


def plan_of(snapshot: Snapshot, shared: Sequence[tuple[Pool, Ints]], devices_of: DevicesOf | None = None, **rest: Any) -> Plan:
    """The plan in which the jobs of each pool get so many devices; jobs that want none run as they ask.

    `devices_of` may name the devices of some jobs of a pool, by their place there; the engine places the others.
    """
    job: list[Any] = [np.flatnonzero(snapshot.jobs.gpus == 0)]
    option, gpus, kind = [np.zeros(len(job[0]), np.int64)], [np.full(len(job[0]), -1)], [np.full(len(job[0]), -1)]
    devices: list[tuple[int, ...]] = [()] * len(job[0])
    for pool, grants in shared:
        some = _in_turn(pool, grants, largest_first=devices_of is not None)
        named = {} if devices_of is None else devices_of(pool, grants)
        devices += [named.get(place, ()) for place in some.tolist()]
        job.append(pool.jobs[some])
        gpus.append(grants[some])
        kind.append(np.full(len(some), pool.kind))
        option.append(exact_options(pool, grants)[some])
    columns: dict[str, Any] = {"option": np.concatenate(option), "gpus": np.concatenate(gpus), "type": np.concatenate(kind)}
    if any(devices):
        columns["devices"] = devices
    return Plan.assign(Assignments(np.concatenate(job), **columns), **rest)


def settled_until(snapshot: Snapshot, shared: Sequence[tuple[Pool, Ints]]) -> float | None:
    """Infinity where every job has as many devices as it can use: nothing changes until something happens. None: ask again."""
    learns = overrides(snapshot.performance, "observe")
    inside = sum(len(pool) for pool, _ in shared) == np.count_nonzero(snapshot.jobs.gpus)
    return np.inf if inside and not learns and all((grants >= pool.curves.most).all() for pool, grants in shared) else None


def _in_turn(pool: Pool, grants: Ints, largest_first: bool) -> Ints:
    """The jobs that get something, in the order in which it can be carried out: those that shrink or stay, then start, then grow."""
    held = np.where(pool.of(pool.snapshot.jobs.running), pool.of(pool.snapshot.jobs.held), 0)
    turn = np.where(held == 0, 1, np.where(grants > held, 2, 0))
    size = np.where((turn == 1) & largest_first, -grants, 0)
    order = np.lexsort((size, turn))
    return order[grants[order] > 0]


def exact_options(pool: Pool, grants: Ints) -> Ints:
    """The option of that very size, where the job lists one."""
    entry = pool.curves.entry_of(grants)
    if not len(pool.curves.size):
        return np.full(len(pool), -1)
    exact = (entry >= 0) & (pool.curves.size[entry] == grants)
    return np.where(exact, pool.curves.option[entry], -1)
