"""The constraints of section 3.1 over kinds of jobs, as the sparse columns that both solvers read.

A column is the share of time one row of the paper's matrix (a job, or a pair of jobs that share devices) spends on one
device type; it stands for all rows of its kind. Every kind of job ``a`` and every type ``j`` has rows::

    2a      time      shares of one job of this kind              <= 1
    2a + 1  floor     required - effective throughput of the job  <= 0
    2n + j  devices   devices of type j kept busy                 <= capacity
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats, Ints
from gantline.systems.gavel.policies.instance import Instance

# Jobs that are the same for a policy are solved as one: kinds, their counts, and the way back to jobs.
#
# Two jobs are of one kind when nothing the linear program reads tells them apart: throughputs, gang size, coefficients,
# and (with space sharing) how many partners of which kind they have at which speeds. That is the coarsest *equitable
# partition* of the program; averaging a solution over an equitable partition keeps feasibility and every symmetric
# concave objective (Grohe, Kersting, Mladenov, Selman: Dimension Reduction via Colour Refinement, ESA 2014).

Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Kinds:
    """Which kind each job (and each pair) is of, how many of each there are, and one example of each."""

    of_job: Ints  # [m]
    first: Ints  # [n] an example: position of a job
    count: Ints  # [n]
    of_pair: Ints  # [p]
    pair_first: Ints  # [q]
    pair_count: Ints  # [q]

    def __len__(self) -> int:
        return len(self.first)


def kinds(instance: Instance, *columns: Floats) -> Kinds:
    """The kinds of an instance; ``columns`` are further numbers per job that the objective reads."""
    features = np.column_stack((instance.throughput, instance.scale, *columns))
    first, colour = group(features)
    pairs = instance.pairs
    if pairs is None or len(pairs) == 0:
        none = np.zeros(0, dtype=np.int64)
        return Kinds(colour, first, np.bincount(colour, minlength=len(first)), none, none, none)
    while True:
        pair_first, of_pair, side = _pair_kinds(colour, pairs.members, pairs.throughput)
        signature = np.zeros(len(colour), dtype=np.uint64)
        for member in (0, 1):
            code = _mix(of_pair.astype(np.uint64) * np.uint64(2) + side[:, member].astype(np.uint64))
            np.add.at(signature, pairs.members[:, member], code)
        first, finer = group(np.column_stack((colour.view(np.uint64), signature)).view(np.float64), exact_bits=True)
        if len(first) == colour.max() + 1:
            break
        colour = finer
    return Kinds(
        finer,
        first,
        np.bincount(finer, minlength=len(first)),
        of_pair,
        pair_first,
        np.bincount(of_pair, minlength=len(pair_first)),
    )


def apart(instance: Instance) -> Kinds:
    """Every job its own kind: the plain program, for comparison."""
    jobs = np.arange(len(instance))
    pairs = np.arange(0 if instance.pairs is None else len(instance.pairs))
    return Kinds(jobs, jobs, np.ones_like(jobs), pairs, pairs, np.ones_like(pairs))


def group(rows: Floats, *, exact_bits: bool = False) -> tuple[Ints, Ints]:
    """Positions of the first of each distinct row, in order of appearance, and for each row its number."""
    bits = np.ascontiguousarray(rows if exact_bits else rows + 0.0).view(np.uint64)  # + 0.0 makes -0.0 and 0.0 one
    place = np.arange(bits.shape[1], dtype=np.uint64) * np.uint64(0xD1342543DE82EF95)
    key = _mix(bits + place).sum(axis=1, dtype=np.uint64)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    if (bits[first][inverse] != bits).any():  # two rows with one hash value: sort whole rows instead
        _, first, inverse = np.unique(bits, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse.reshape(-1)]


def _pair_kinds(colour: Ints, members: Ints, rates: Floats) -> tuple[Ints, Ints, Ints]:
    """Kinds of pairs, and on which side of its kind each member stands (both on side 0 if the sides are alike)."""
    ends = np.column_stack((colour[members[:, 0]], rates[:, 0])), np.column_stack((colour[members[:, 1]], rates[:, 1]))
    differ = ends[0] != ends[1]
    lead = differ.argmax(axis=1)
    rows = np.arange(len(members))
    alike = ~differ.any(axis=1)
    swap = ~alike & (ends[0][rows, lead] > ends[1][rows, lead])
    low = np.where(swap[:, None], ends[1], ends[0])
    high = np.where(swap[:, None], ends[0], ends[1])
    first, of_pair = group(np.column_stack((low, high)))
    side = np.column_stack((swap, ~swap & ~alike)).astype(np.int64)
    return first, of_pair, side


def _mix(values: Words) -> Words:
    """Scramble 64-bit words (the finaliser of SplitMix64), so that sums of them tell multisets apart."""
    z = values + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclass(frozen=True, slots=True)
class Program:
    """Columns in compressed form (``start``, ``index``, ``value``), right-hand sides, and what each stands for."""

    kinds: Kinds
    types: int
    row: Ints  # [c] kind of job, or n + kind of pair
    type: Ints  # [c]
    start: Ints  # [c + 1]
    index: Ints
    value: Floats
    column: Ints  # the column of every entry
    bound: Floats  # [r]
    column_weight: Floats  # [c] how many shares a column stands for
    row_weight: Floats  # [r] how many constraints a row stands for
    reach: Floats  # [n] throughput of a job that had the whole cluster; 0 if it fits nowhere

    @property
    def size(self) -> int:
        """Number of kinds of jobs."""
        return len(self.kinds)

    def spread(self, x: Floats) -> tuple[Floats, Floats]:
        """Shares of every job and of every pair from the columns' values."""
        rows = self.size + len(self.kinds.pair_first)
        table = np.zeros((rows, self.types))
        table[self.row, self.type] = x
        return table[self.kinds.of_job], table[self.size + self.kinds.of_pair]


def constraints(instance: Instance, kinds: Kinds, *, every_column: bool = False) -> Program:
    """C(X) over kinds. Columns that bring nothing (no throughput, a gang larger than the type) are left out.

    ``every_column`` keeps them, as the artifact does: they change no objective, but a central answer.
    """
    n, k = len(kinds), len(instance.types)
    speed, scale = instance.throughput[kinds.first], instance.scale[kinds.first]
    useful = (speed > 0) & (scale[:, None] <= instance.capacity) | every_column
    useful &= instance.capacity > 0
    a, j = np.nonzero(useful)
    columns = _columns(n, a, j, speed, scale, kinds)
    if len(kinds.pair_first):
        columns = tuple(np.concatenate(part) for part in zip(columns, _pair_columns(instance, kinds, every_column)))
    row, type, width, index, value, weight = columns
    start = np.zeros(len(width) + 1, dtype=np.int64)
    np.cumsum(width, out=start[1:])
    bound, row_weight = np.zeros(2 * n + k), np.empty(2 * n + k)
    bound[0 : 2 * n : 2], bound[2 * n :] = 1.0, instance.capacity
    row_weight[0 : 2 * n : 2] = row_weight[1 : 2 * n : 2] = kinds.count
    row_weight[2 * n :] = instance.capacity > 0
    return Program(
        kinds=kinds,
        types=k,
        row=row,
        type=type,
        start=start,
        index=index,
        value=value,
        column=np.repeat(np.arange(len(width)), width),
        bound=bound,
        column_weight=weight,
        row_weight=row_weight,
        reach=np.where(useful, speed, 0.0).max(axis=1, initial=0.0),
    )


def _columns(n: int, a: Ints, j: Ints, speed: Floats, scale: Floats, kinds: Kinds) -> tuple[NDArray[Any], ...]:
    """Row, type, number of entries, entries and weight of the columns of single jobs: time, floor, devices."""
    index, value = np.empty((len(a), 3), dtype=np.int64), np.empty((len(a), 3))
    index[:, 0] = 2 * a
    index[:, 1] = index[:, 0] + 1
    index[:, 2] = 2 * n + j
    value[:, 0] = 1.0
    value[:, 1] = -speed[a, j]
    value[:, 2] = (kinds.count * scale)[a]
    return a, j, np.full(len(a), 3), index.ravel(), value.ravel(), kinds.count[a].astype(np.float64)


def _pair_columns(instance: Instance, kinds: Kinds, every_column: bool) -> tuple[NDArray[Any], ...]:
    """Row, type, number of entries, entries and weight of the columns of pairs: time and floor of both members, devices once."""
    assert instance.pairs is not None
    n = len(kinds)
    members = instance.pairs.members[kinds.pair_first]
    rates = instance.pairs.throughput[kinds.pair_first]
    one, two = kinds.of_job[members[:, 0]], kinds.of_job[members[:, 1]]
    scale = instance.scale[members]
    useful = (rates > 0).all(axis=1) & (scale[:, :1] <= instance.capacity) | every_column
    useful &= (scale[:, 0] == scale[:, 1])[:, None] & (instance.capacity > 0)
    q, j = np.nonzero(useful)
    a, b, count = one[q], two[q], kinds.pair_count[q].astype(np.float64)
    of_a, of_b = count / kinds.count[a], count / kinds.count[b]  # pairs of this kind that one job belongs to
    index = np.stack((2 * a, 2 * a + 1, 2 * b, 2 * b + 1, 2 * n + j), axis=1)
    value = np.stack((of_a, -of_a * rates[q, 0, j], of_b, -of_b * rates[q, 1, j], count * scale[q, 0]), axis=1)
    same = a == b  # both members are of one kind: their entries lie in the same rows
    value[same, 0] += value[same, 2]
    value[same, 1] += value[same, 3]
    keep = np.ones_like(index, dtype=bool)
    keep[same, 2:4] = False
    return n + q, j, keep.sum(axis=1), index[keep], value[keep], count
