"""The groups of a plan, numbered as they come, and what stands for the rows of each. Compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Ints
from gantline.core.jit import kernel


class GroupNumbers(NamedTuple):
    """Room for the groups of a plan."""

    code: Ints  # per assignment: a number for its group, from zero on (below zero: it is in none)
    sums: NDArray[np.uint64]  # per group: a number that tells sets of rows apart
    slots: Ints  # (the plan's number for a group + 1, its code), by a hash of the former


def room_for_groups(size: int) -> GroupNumbers:
    """Room for plans of so many assignments."""
    slots = np.zeros((2, 1 << (2 * size + 1).bit_length()), dtype=np.int64)
    return GroupNumbers(np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.uint64), slots)


@kernel
def number_groups(rows: Ints, group: Ints, count: int, found: GroupNumbers) -> int:
    """Number the groups of the first so many assignments. How many groups there are."""
    groups, size = 0, 2
    while size < 2 * count:
        size *= 2
    found.slots[0, :size] = 0
    for k in range(count):
        found.code[k] = -1
        number = group[k]
        if number < 0:
            continue
        at = (number * 0x9E3779B1) & (size - 1)
        while found.slots[0, at] != 0 and found.slots[0, at] != number + 1:
            at = (at + 1) & (size - 1)
        if found.slots[0, at] == 0:
            found.slots[0, at], found.slots[1, at] = number + 1, groups
            found.sums[groups] = np.uint64(0)
            groups += 1
        found.code[k] = found.slots[1, at]
        found.sums[found.code[k]] += _scrambled(np.uint64(rows[k]))
    return groups


@kernel
def team_of(found: GroupNumbers, k: int) -> np.int64:
    """What stands for the rows of the group of an assignment; 0: it is in none."""
    return np.int64(found.sums[found.code[k]] >> np.uint64(1)) if found.code[k] >= 0 else np.int64(0)


@kernel
def write_teams(found: GroupNumbers, teams: Ints) -> None:
    """The same for all assignments."""
    for k in range(teams.shape[0]):
        teams[k] = team_of(found, k)


@kernel
def _scrambled(row: np.uint64) -> np.uint64:
    """Numbers whose sum tells sets of rows apart, but for one chance in 10^19 (the finaliser of SplitMix64)."""
    mixed = (row + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
