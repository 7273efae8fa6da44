"""Jobs that are the same for a policy are solved as one: kinds, their counts, and the way back to jobs.

Two jobs are of one kind when nothing the linear program reads tells them apart: throughputs, gang size, coefficients,
and (with space sharing) how many partners of which kind they have at which speeds. That is the coarsest *equitable
partition* of the program; averaging a solution over an equitable partition keeps feasibility and every symmetric
concave objective (Grohe, Kersting, Mladenov, Selman: Dimension Reduction via Colour Refinement, ESA 2014).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats, Ints
from gantline.systems.gavel.policies.instance import Instance

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
