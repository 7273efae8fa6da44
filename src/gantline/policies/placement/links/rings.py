"""Rings through a set of GPUs, for all sets of one size at once: the most bandwidth, and which mixes of links occur.

Paths are counted by dynamic programming over sets (Held and Karp, 1962). A set is a word of bits, its first GPU the highest bit, so that
of sets with as many GPUs the lexicographically first is the largest word. Paths begin at the first GPU of their set. A mix is a bit: x
double and y single NVLinks are bit `x * stride + y`; how many hops of PCIe remain follows from the length of the path.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.core.topology import DOUBLE, SINGLE, LinkGraph

Words = NDArray[np.uint64]

_ONE = np.uint64(1)
_EQUAL = 1e-9
_DOUBLE, _SINGLE = DOUBLE, SINGLE


class PathMixes(NamedTuple):
    """Mixes of paths: `words[set, end]` are bits over `x * stride + y`, in as many words as that takes."""

    words: Words
    stride: int

    @staticmethod
    def room(gpus: int, size: int) -> PathMixes:
        """A path through `size` GPUs has at most `size - 1` links of one class."""
        stride = 8 if size <= 8 else 16
        return PathMixes(np.empty((1 << gpus, gpus, stride * stride // 64), dtype=np.uint64), stride)


def path_mixes(graph: LinkGraph, size: int) -> PathMixes:
    """Of every set of up to `size` GPUs, by its last GPU: the mixes of links of the paths through it."""
    found = PathMixes.room(len(graph.gpus), size)
    shift = np.array([0, 1, found.stride])[graph.kind]
    members = np.empty(len(graph.gpus), dtype=np.int64)
    _mix_paths(shift, size, found, members)
    return found


def most_bandwidth_paths(graph: LinkGraph, size: int) -> Floats:
    """Of every set of up to `size` GPUs, by its last GPU: the most GB/s that a path through it sums up to."""
    best = np.empty((1 << len(graph.gpus), len(graph.gpus)))
    _sum_paths(graph.bandwidth, size, best, np.empty(len(graph.gpus), dtype=np.int64))
    return best


@kernel
def members_of(chosen: int, gpus: int, members: Ints) -> int:
    """Write down the GPUs of a set, the first one first; how many they are."""
    count = 0
    for at in range(gpus):
        if (chosen >> (gpus - 1 - at)) & 1:
            members[count] = at
            count += 1
    return count


@kernel
def _sum_paths(bandwidth: Floats, size: int, best: Floats, members: Ints) -> None:
    gpus = bandwidth.shape[0]
    for chosen in range(1, 1 << gpus):
        count = members_of(chosen, gpus, members)
        if count < 2 or count > size:
            continue
        for e in range(1, count):
            end = members[e]
            if count == 2:
                best[chosen, end] = bandwidth[members[0], end]
                continue
            before, most = chosen ^ (1 << (gpus - 1 - end)), -1.0
            for m in range(1, count):
                last = members[m]
                if m != e:
                    most = max(most, best[before, last] + bandwidth[last, end])
            best[chosen, end] = most


@kernel
def _mix_paths(shift: Ints, size: int, found: PathMixes, members: Ints) -> None:
    """What is shifted out of one word enters the next, where it takes several."""
    gpus, words = shift.shape[0], found.words.shape[2]
    for chosen in range(1, 1 << gpus):
        count = members_of(chosen, gpus, members)
        if count < 2 or count > size:
            continue
        for e in range(1, count):
            end = members[e]
            for word in range(words):
                found.words[chosen, end, word] = np.uint64(0)
            if count == 2:
                found.words[chosen, end, 0] = _ONE << np.uint64(shift[members[0], end])
                continue
            before = chosen ^ (1 << (gpus - 1 - end))
            for m in range(1, count):
                last = members[m]
                if m == e:
                    continue
                by = shift[last, end]
                for word in range(words):
                    had = found.words[before, last, word] << np.uint64(by)
                    if word > 0 and by > 0:
                        had |= found.words[before, last, word - 1] >> np.uint64(64 - by)
                    found.words[chosen, end, word] |= had


@kernel
def best_sums(bandwidth: Floats, size: int, paths: Floats, sets: Ints, sums: Floats, members: Ints) -> int:
    """All sets of `size` GPUs in lexicographic order, and the most GB/s around a ring of each; how many there are."""
    gpus, written = bandwidth.shape[0], 0
    for chosen in range((1 << gpus) - 1, 0, -1):
        if members_of(chosen, gpus, members) != size:
            continue
        most = 0.0
        for e in range(1, size):
            most = max(most, paths[chosen, members[e]] + bandwidth[members[e], members[0]])
        sets[written], sums[written] = chosen, most
        written += 1
    return written


@kernel
def left_between(bandwidth: Floats, sets: Ints, left: Floats, members: Ints) -> None:
    """GB/s between the GPUs that each set leaves."""
    gpus = bandwidth.shape[0]
    for at in range(sets.size):
        count = members_of(((1 << gpus) - 1) ^ sets[at], gpus, members)
        left[at] = 0.0
        for a in range(count):
            for b in range(a):
                left[at] += bandwidth[members[a], members[b]]


@kernel
def best_mixes(shift: Ints, size: int, paths: PathMixes, mixes: Ints, sets: Ints, members: Ints, closing: Words) -> tuple[int, int]:
    """Which of the mixes, given from the best on, is the first that a ring has, and how many sets have one; these in lexicographic order.

    `mixes` are places of bits of whole rings; the last link of a ring is taken from them before its path is looked up.
    """
    gpus, words, best, written = shift.shape[0], paths.words.shape[2], mixes.size, 0
    for chosen in range((1 << gpus) - 1, 0, -1):
        if members_of(chosen, gpus, members) != size:
            continue
        for kind in range(closing.shape[0]):
            for word in range(words):
                closing[kind, word] = np.uint64(0)
        for e in range(1, size):
            by = shift[members[e], members[0]]
            kind = 0 if by == 0 else 1 if by == 1 else 2
            for word in range(words):
                closing[kind, word] |= paths.words[chosen, members[e], word]
        for rank in range(min(best + 1, mixes.size)):
            double, single = mixes[rank] // (size + 1), mixes[rank] % (size + 1)
            found = False
            for kind in range(closing.shape[0]):
                x, y = double - (kind == 2), single - (kind == 1)
                if x >= 0 and y >= 0 and x < paths.stride and y < paths.stride:
                    bit = x * paths.stride + y
                    found = found or (closing[kind, bit // 64] >> np.uint64(bit % 64)) & _ONE != np.uint64(0)
            if found:
                if rank < best:
                    best, written = rank, 0
                sets[written] = chosen
                written += 1
                break
    return best, written


class Walk(NamedTuple):
    """Room for a walk through the rings of one set, step by step."""

    ring: Ints
    tried: Ints
    rest: Ints
    double: Ints
    single: Ints
    total: Floats
    members: Ints
    found: Ints

    @staticmethod
    def room(gpus: int) -> Walk:
        whole = [np.zeros(gpus + 1, dtype=np.int64) for _ in range(7)]
        return Walk(whole[0], whole[1], whole[2], whole[3], whole[4], np.zeros(gpus + 1), whole[5], whole[6])


@kernel
def ring_of_mix(kind: Ints, bandwidth: Floats, chosen: int, double: int, single: int, bound: float, paths: PathMixes, walk: Walk) -> float:
    """The most GB/s of the rings with this mix of links through a set; the first such ring is left in `walk.found`.

    Rings are tried in lexicographic order, only as far as the rest of the mix can be had; one that has `bound` ends the search. What
    remains of a ring is a path from its first GPU through those that are left, walked backwards.
    """
    gpus = kind.shape[0]
    size = members_of(chosen, gpus, walk.members)
    best, depth = -1.0, 0
    walk.ring[0], walk.tried[0], walk.rest[0] = walk.members[0], 1, chosen
    walk.double[0], walk.single[0], walk.total[0] = double, single, 0.0
    while depth >= 0:
        if depth == size - 1:
            total = walk.total[depth] + bandwidth[walk.ring[depth], walk.members[0]]
            if total > best + _EQUAL:
                best = total
                for at in range(size):
                    walk.found[at] = walk.ring[at]
            if best >= bound - _EQUAL:
                return best
            depth -= 1
            continue
        m = walk.tried[depth]
        if m == size:
            depth -= 1
            continue
        walk.tried[depth] = m + 1
        at, rest = walk.members[m], walk.rest[depth]
        if (rest >> (gpus - 1 - at)) & 1 == 0:
            continue
        last = walk.ring[depth]
        x = walk.double[depth] - (kind[last, at] == _DOUBLE)
        y = walk.single[depth] - (kind[last, at] == _SINGLE)
        if x < 0 or y < 0 or x >= paths.stride or y >= paths.stride:
            continue
        bit = x * paths.stride + y
        if (paths.words[rest, at, bit // 64] >> np.uint64(bit % 64)) & _ONE == np.uint64(0):
            continue
        depth += 1
        walk.ring[depth], walk.tried[depth], walk.rest[depth] = at, 1, rest ^ (1 << (gpus - 1 - at))
        walk.double[depth], walk.single[depth] = x, y
        walk.total[depth] = walk.total[depth - 1] + bandwidth[last, at]
    return best
