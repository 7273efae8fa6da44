"""Policies without a program: queues, fixed shares, AlloX and Gandiva as Gavel defines them (OSDI 2020, section 7.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, TypedDict

import numpy as np
from scipy.optimize import linear_sum_assignment

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError
from gantline.core.policy import param
from gantline.systems.gavel.policies.allocation import Allocation, isolated, no_pairs, proportional, split
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.policy import GavelPolicy, PackingPolicy

# Random draws as the artifact makes them: Python's ``random.Random``, its state kept in the policy's memory.
#
# A policy object holds no state, so the generator is rebuilt from plain numbers before a call and stored after it.

Drawn = list[int]  # 624 words and the position: what JSON can keep


def generator(seed: int, state: Drawn | None) -> Random:
    """The generator of this seed, where the last call left it."""
    draws = Random(seed)
    if state is not None:
        draws.setstate((3, tuple(state), None))
    return draws


def state_of(draws: Random) -> Drawn:
    """Where the generator stands, as plain numbers."""
    return list(draws.getstate()[1])


# First in, first out: whole types for jobs in order of arrival (Gavel, OSDI 2020, section 4.2).
#
# *Aware*: every job takes the fastest type that has room; the first one without room ends the pass (no backfilling).
# *Packed*: the rest of the queue may join a running job of the same size where the two together get more than one and a
# half times the work done. *Agnostic*: running jobs stay, a new one takes a random type among those with room. The
# artifact's agnostic form promises more devices than there are; :func:`fifo_artifact` keeps that defect for comparison.

WORTHWHILE = 1.5  # two jobs share only if they do more than this together, alone being one each


class QueueMemory(TypedDict):
    """Which job holds which type (lists of [job, type]), and the state of the draws."""

    held: list[list[Any]]
    draws: Drawn


def fifo_perf(instance: Instance) -> Allocation:
    """The aware form, from scratch in every call."""
    return _whole(instance, _fastest_first(instance)[0])


def fifo_packed(instance: Instance) -> Allocation:
    """The aware form, and then pairs for the head of the waiting queue."""
    chosen, queue = _fastest_first(instance)
    share = _whole(instance, chosen).share.copy()
    paired = no_pairs(instance)
    if instance.pairs is None:
        return Allocation(share, paired)
    rows = {(int(a), int(b)): p for p, (a, b) in enumerate(instance.pairs.members)}
    singles = [int(i) for i in np.flatnonzero(chosen >= 0)]
    for job in queue:
        best, partner = WORTHWHILE, -1
        for other in singles:
            row = rows.get((min(job, other), max(job, other)), -1)
            if row >= 0 and instance.scale[job] == instance.scale[other]:
                worth = pair_worth(instance, row, int(chosen[other]))
                if worth > best:
                    best, partner = worth, other
        if partner < 0:
            break
        paired[rows[min(job, partner), max(job, partner)], chosen[partner]] = 1.0
        share[partner] = 0.0
        singles.remove(partner)
    return Allocation(share, paired)


def pair_worth(instance: Instance, row: int, type: int) -> float:
    """What two jobs do together on a type, each measured by what it does there alone."""
    assert instance.pairs is not None
    alone = instance.throughput[instance.pairs.members[row], type]
    together = instance.pairs.throughput[row, :, type]
    return float(sum(t / a for t, a in zip(together, alone) if t > 0 and a > 0))


def fifo(instance: Instance, memory: QueueMemory | None, seed: int) -> tuple[Allocation, QueueMemory]:
    """The agnostic form: a running job stays where it is, a new one gets a random type among those with room."""
    draws = generator(seed, memory["draws"] if memory else None)
    held = dict(memory["held"]) if memory else {}
    free = dict(zip(instance.types, instance.capacity))
    chosen = np.full(len(instance), -1, dtype=np.int64)
    for i, job in enumerate(instance.jobs):
        type = held.get(job)
        if type in free and instance.scale[i] <= free[type]:
            chosen[i] = instance.types.index(str(type))
            free[type] -= instance.scale[i]
    for i in map(int, np.flatnonzero(chosen < 0)):
        room = [j for j, name in enumerate(instance.types) if free[name] >= instance.scale[i] and instance.throughput[i, j] > 0]
        if not room:
            break
        chosen[i] = room[draws.randrange(len(room))]
        free[instance.types[chosen[i]]] -= instance.scale[i]
    return _whole(instance, chosen), _remember_held(instance, chosen, state_of(draws))


def fifo_artifact(instance: Instance, memory: QueueMemory | None, seed: int) -> tuple[Allocation, QueueMemory]:
    """The artifact's agnostic form, with its defect: the last listed type is given beyond its capacity.

    A draw is made but not used to choose the type; it names the entry that is struck off the list, and only when the
    last type's count is exactly zero.
    """
    draws = generator(seed, memory["draws"] if memory else None)
    place = {job: i for i, job in enumerate(instance.jobs)}
    free = instance.capacity.copy()
    chosen = np.full(len(instance), -1, dtype=np.int64)
    running = [(job, instance.types.index(str(type))) for job, type in memory["held"]] if memory else []
    queue = [i for i, job in enumerate(instance.jobs) if job not in {known for known, _ in running}]
    for job, type in running:
        if job in place:
            chosen[place[job]] = type
            free[type] -= instance.scale[place[job]]
        elif queue and instance.scale[queue[0]] <= free[type] and instance.throughput[queue[0], type] > 0:
            head = queue.pop(0)
            chosen[head] = type
            free[type] -= instance.scale[head]
    listed = [type for type in range(len(instance.types)) if free[type] > 0]  # anew in every call: a type that is full is not listed
    while queue:
        room = [entry for entry, type in enumerate(listed) if free[type] >= instance.scale[queue[0]]]
        if not room:
            break
        drawn = room[draws.randrange(len(room))]
        head, last = queue.pop(0), listed[-1]
        if instance.throughput[head, last] > 0:
            chosen[head] = last
            free[last] -= instance.scale[head]
            if free[last] == 0:
                listed.pop(drawn)
    return _whole(instance, chosen), _remember_held(instance, chosen, state_of(draws))


def _fastest_first(instance: Instance) -> tuple[Ints, list[int]]:
    """Types of the jobs that fit, in order, and the queue behind them."""
    free = instance.capacity.copy()
    chosen = np.full(len(instance), -1, dtype=np.int64)
    for i in range(len(instance)):
        room = free >= instance.scale[i]
        if not room.any():
            # With devices left over, the artifact drops the head of the queue from pairing; with none it keeps it.
            return chosen, list(range(i if free.max(initial=0.0) <= 0 else i + 1, len(instance)))
        speed = np.where(room, instance.throughput[i], -1.0)
        best = int(speed.argmax())
        if speed[best] > 0:
            chosen[i] = best
            free[best] -= instance.scale[i]
    return chosen, []


def _whole(instance: Instance, chosen: Ints) -> Allocation:
    share: Floats = np.zeros((len(instance), len(instance.types)))
    rows = np.flatnonzero(chosen >= 0)
    share[rows, chosen[rows]] = 1.0
    return Allocation(share, no_pairs(instance))


def _remember_held(instance: Instance, chosen: Ints, draws: Drawn) -> QueueMemory:
    held: list[list[Any]] = [[instance.jobs[i], instance.types[chosen[i]]] for i in np.flatnonzero(chosen >= 0)]
    return QueueMemory(held=held, draws=draws)


# AlloX as Gavel defines it: waiting jobs and free devices are matched so that the sum of completion times is smallest.
#
# A job in the k-th place from the end of a device's queue delays k jobs, itself included, so it costs k times its run time
# there (AlloX, EuroSys 2020, section 4). Jobs that hold a device keep it to the end. Single-device jobs only.


class MatchingMemory(TypedDict):
    """Which job holds a device of which type: lists of [job, type]."""

    held: list[list[Any]]


def allox(instance: Instance, memory: MatchingMemory | None = None, *, alpha: float = 1.0) -> tuple[Allocation, MatchingMemory]:
    """Whole devices for the jobs that run now. ``alpha`` limits the matching to the oldest part of the waiting jobs."""
    steps, elapsed = instance.needing("steps", "elapsed")
    if (instance.scale != 1).any():
        job = instance.jobs[int(np.argmax(instance.scale != 1))]
        raise UsageError("AlloX places single-device jobs only", where=f"job '{job}'", fix="use a policy that knows gangs")
    held = dict(memory["held"]) if memory else {}
    share = np.zeros((len(instance), len(instance.types)))
    free = instance.capacity.astype(np.int64)
    waiting = []
    for i, job in enumerate(instance.jobs):
        type = instance.types.index(str(held[job])) if held.get(job) in instance.types else -1
        if type >= 0 and free[type] > 0:
            share[i, type] = 1.0
            free[type] -= 1
        else:
            waiting.append(i)
    devices = np.repeat(np.arange(len(free)), free)
    waiting.sort(key=lambda i: -elapsed[i])
    waiting = waiting[: max(int(alpha * len(waiting)), len(devices))]
    if waiting and len(devices):
        speed = instance.throughput[waiting][:, devices]
        run = steps[waiting][:, None] / np.where(speed > 0, speed, 1e-10)
        places = np.arange(1, len(waiting) + 1)
        # Column (k - 1) * n + g: device g, k-th place from the end.
        cost = (places[None, :, None] * run[:, None, :]).reshape(len(waiting), -1) + elapsed[waiting][:, None]
        rows, columns = linear_sum_assignment(cost)
        runs_now: dict[int, tuple[int, int]] = {}
        for row, column in zip(rows, columns):
            place, device = divmod(int(column), len(devices))
            if place >= runs_now.get(device, (-1, -1))[0]:
                runs_now[device] = (place, int(row))
        for device, (_, row) in runs_now.items():
            share[waiting[row], devices[device]] = 1.0
    now: list[list[Any]] = [[instance.jobs[i], instance.types[int(share[i].argmax())]] for i in np.flatnonzero(share.any(axis=1))]
    return Allocation(share, no_pairs(instance)), MatchingMemory(held=now)


# Gandiva's random packing as Gavel defines it: try random pairs when the cluster is full, drop those that do badly.
#
# A pair is dropped when a member leaves, or when what the two do together, summed over all device types, is less than one
# job alone (Gavel, OSDI 2020, section 7.1; Gandiva, OSDI 2018). Draws imitate the artifact's.


class PackingMemory(TypedDict):
    """Pairs of jobs that share devices (lists of [job, job]), and the state of the draws."""

    together: list[list[Any]]
    draws: Drawn


def gandiva(instance: Instance, memory: PackingMemory | None, seed: int) -> tuple[Allocation, PackingMemory]:
    """Equal parts of the cluster for every combination of jobs; pairs only when the jobs do not all fit."""
    draws = generator(seed, memory["draws"] if memory else None)
    place = {job: i for i, job in enumerate(instance.jobs)}
    rows = {} if instance.pairs is None else {(int(a), int(b)): p for p, (a, b) in enumerate(instance.pairs.members)}
    kept = []
    for one, two in memory["together"] if memory else []:
        if one in place and two in place:
            pair = (min(place[one], place[two]), max(place[one], place[two]))
            if pair in rows and total_worth(instance, rows[pair]) >= 1.0:
                kept.append(pair)
    if instance.scale.sum() <= instance.capacity.sum():
        return isolated(instance), _remember_pairs(instance, kept, state_of(draws))
    taken = {i for pair in kept for i in pair}
    single = [i for i in range(len(instance)) if i not in taken]
    for _ in range(len(single)):
        if len(single) < 2:
            break
        one, two = draws.sample(single, 2)
        if instance.scale[one] == instance.scale[two]:
            kept.append((min(one, two), max(one, two)))
            single.remove(one)
            single.remove(two)
    share, paired = np.zeros((len(instance), len(instance.types))), no_pairs(instance)
    combinations = len(single) + len(kept)
    share[single] = split(instance.capacity, instance.scale[single], combinations)
    for pair in kept:
        if pair in rows:
            paired[rows[pair]] = split(instance.capacity, instance.scale[[pair[0]]], combinations)[0]
    return Allocation(share, paired), _remember_pairs(instance, kept, state_of(draws))


def total_worth(instance: Instance, row: int) -> float:
    """What a pair does, member by member against running alone, summed over all types; 0 if one of them stands still."""
    assert instance.pairs is not None
    alone = instance.throughput[instance.pairs.members[row]]
    together = instance.pairs.throughput[row]
    if (together == 0).any():
        return 0.0
    return float((together / np.where(alone > 0, alone, 1.0)).sum())


def _remember_pairs(instance: Instance, pairs: list[tuple[int, int]], draws: Drawn) -> PackingMemory:
    return PackingMemory(together=[[instance.jobs[a], instance.jobs[b]] for a, b in pairs], draws=draws)


@dataclass(frozen=True)
class GavelFifo(GavelPolicy):
    """First come, first served; a job takes a random type that has room. With compat it promises devices that are not there."""

    name: ClassVar[str] = "gavel.fifo"
    aware: ClassVar[bool] = False
    strict: ClassVar[bool] = True

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        return fifo_artifact(instance, memory, seed) if self.is_artifact else fifo(instance, memory, seed)


@dataclass(frozen=True)
class FifoPerf(GavelPolicy):
    """First come, first served; a job takes the fastest type that has room."""

    name: ClassVar[str] = "gavel.fifo_perf"
    strict: ClassVar[bool] = True

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        return fifo_perf(instance), None


@dataclass(frozen=True)
class FifoPacked(PackingPolicy):
    """First come, first served, and the head of the queue may join a running job."""

    name: ClassVar[str] = "gavel.fifo_packed"
    strict: ClassVar[bool] = True

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        return fifo_packed(instance), None


@dataclass(frozen=True)
class Isolated(GavelPolicy):
    """Every one of m jobs has the m-th part of the cluster."""

    name: ClassVar[str] = "gavel.isolated"
    aware: ClassVar[bool] = False

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        return isolated(instance), None


@dataclass(frozen=True)
class GandivaFair(GavelPolicy):
    """Equal shares of time for all jobs, whatever their gangs (the baseline of Shockwave, NSDI 2023)."""

    name: ClassVar[str] = "gavel.gandiva_fair"
    paper: ClassVar[str] = "Chaudhary et al.: Balancing Efficiency and Fairness in Heterogeneous GPU Clusters (EuroSys 2020)"
    aware: ClassVar[bool] = False

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        equal = split(instance.capacity, np.ones(len(instance)), len(instance))
        return Allocation(equal, no_pairs(instance)), None


@dataclass(frozen=True)
class Proportional(GavelPolicy):
    """Every job wants the cluster's mix of types for all of its time; turns are all that limits it."""

    name: ClassVar[str] = "gavel.proportional"
    aware: ClassVar[bool] = False

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        return proportional(instance), None


@dataclass(frozen=True)
class GavelAlloX(GavelPolicy):
    """The smallest sum of completion times by matching, for jobs of one device; they run to their end.

    The matching knows no gangs: those get what is left over (the artifact refuses them, and so does compat).
    """

    name: ClassVar[str] = "gavel.allox"
    paper: ClassVar[str] = "AlloX (Le et al., EuroSys 2020) as in Gavel (OSDI 2020)"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    alpha: float = field(
        default=1.0, metadata=param("part of the waiting jobs, oldest first, that is matched", above=0.0, high=1.0, unit="a part")
    )

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        single = np.flatnonzero(instance.scale == 1)
        if self.is_artifact or len(single) == len(instance):
            return allox(instance, memory, alpha=self.alpha)
        allocation, memory = allox(instance.subset(single), memory, alpha=self.alpha)
        share = np.zeros((len(instance), len(instance.types)))
        share[single] = allocation.share
        return Allocation(share, no_pairs(instance)), memory


@dataclass(frozen=True)
class GavelGandiva(PackingPolicy):
    """Equal parts for all; when the cluster is full, random pairs share devices while that does not hurt."""

    name: ClassVar[str] = "gavel.gandiva"
    paper: ClassVar[str] = "Gandiva (Xiao et al., OSDI 2018) as in Gavel (OSDI 2020)"

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        return gandiva(instance, memory, seed)
