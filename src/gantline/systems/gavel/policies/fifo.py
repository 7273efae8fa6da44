"""First in, first out: whole types for jobs in order of arrival (Gavel, OSDI 2020, section 4.2).

*Aware*: every job takes the fastest type that has room; the first one without room ends the pass (no backfilling).
*Packed*: the rest of the queue may join a running job of the same size where the two together get more than one and a
half times the work done. *Agnostic*: running jobs stay, a new one takes a random type among those with room. The
artifact's agnostic form promises more devices than there are; :func:`fifo_artifact` keeps that defect for comparison.
"""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.systems.gavel.policies.allocation import Allocation
from gantline.systems.gavel.policies.draws import Drawn, generator, state_of
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.shares import no_pairs

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
    return _whole(instance, chosen), _remember(instance, chosen, state_of(draws))


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
    return _whole(instance, chosen), _remember(instance, chosen, state_of(draws))


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


def _remember(instance: Instance, chosen: Ints, draws: Drawn) -> QueueMemory:
    held: list[list[Any]] = [[instance.jobs[i], instance.types[chosen[i]]] for i in np.flatnonzero(chosen >= 0)]
    return QueueMemory(held=held, draws=draws)
