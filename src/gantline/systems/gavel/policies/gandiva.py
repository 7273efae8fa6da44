"""Gandiva's random packing as Gavel defines it: try random pairs when the cluster is full, drop those that do badly.

A pair is dropped when a member leaves, or when what the two do together, summed over all device types, is less than one
job alone (Gavel, OSDI 2020, section 7.1; Gandiva, OSDI 2018). Draws imitate the artifact's.
"""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np

from gantline.systems.gavel.policies.allocation import Allocation
from gantline.systems.gavel.policies.draws import Drawn, generator, state_of
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.shares import isolated, no_pairs, split


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
        return isolated(instance), _remember(instance, kept, state_of(draws))
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
    return Allocation(share, paired), _remember(instance, kept, state_of(draws))


def total_worth(instance: Instance, row: int) -> float:
    """What a pair does, member by member against running alone, summed over all types; 0 if one of them stands still."""
    assert instance.pairs is not None
    alone = instance.throughput[instance.pairs.members[row]]
    together = instance.pairs.throughput[row]
    if (together == 0).any():
        return 0.0
    return float((together / np.where(alone > 0, alone, 1.0)).sum())


def _remember(instance: Instance, pairs: list[tuple[int, int]], draws: Drawn) -> PackingMemory:
    return PackingMemory(together=[[instance.jobs[a], instance.jobs[b]] for a, b in pairs], draws=draws)
