"""MAPA's rules: which free GPUs of a server a ring of so many gets, in which order (SC 2021, section 4).

Rings are written from their first GPU; ties fall to the lexicographically first set of GPUs, then to its first ring.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError
from gantline.core.topology import DOUBLE, PCIE, SINGLE, LinkGraph
from gantline.models.placement_speeds import effective_bandwidth, links_of_ring, mix_of, ring_edges
from gantline.policies.placement.links.rings import Walk, best_mixes, best_sums, left_between, most_bandwidth_paths, path_mixes, ring_of_mix

_EQUAL = 1e-9


@dataclass(frozen=True)
class Ring:
    """GPUs in the order of the ring, by their places in the graph."""

    graph: LinkGraph
    order: tuple[int, ...]

    @property
    def gpus(self) -> tuple[str, ...]:
        return tuple(self.graph.gpus[at] for at in self.order)

    @property
    def links(self) -> tuple[int, int, int]:
        """Double NVLinks, single ones, hops of PCIe."""
        return links_of_ring(self.graph, self.order)

    @property
    def aggregate(self) -> float:
        """GB/s of all its links together."""
        return float(sum(self.graph.bandwidth[a, b] for a, b in ring_edges(self.order)))

    @property
    def effective(self) -> float | None:
        """The effective bandwidth that is predicted; a single GPU has none."""
        return effective_bandwidth(*self.links) if len(self.order) > 1 else None


RingRule = Callable[[LinkGraph, Sequence[int], int, bool], "Ring | None"]


def baseline(graph: LinkGraph, free: Sequence[int], size: int, sensitive: bool) -> Ring | None:
    """The first free GPUs, in their best order."""
    return _best_order(graph, free[:size]) if len(free) >= size else None


def topo_aware(graph: LinkGraph, free: Sequence[int], size: int, sensitive: bool) -> Ring | None:
    """The first free GPUs under one root of the bus, where a root has more than are asked for; else as the baseline."""
    if size < graph.group:
        for begin in range(0, len(graph.gpus), graph.group):
            near = [at for at in free if begin <= at < begin + graph.group]
            if len(near) >= size:
                return _best_order(graph, near[:size])
    return baseline(graph, free, size, sensitive)


def greedy(graph: LinkGraph, free: Sequence[int], size: int, sensitive: bool) -> Ring | None:
    """The ring with the most bandwidth."""
    return _among(graph, free, size, lambda part, sets, sums: sums)


def preserve(graph: LinkGraph, free: Sequence[int], size: int, sensitive: bool) -> Ring | None:
    """The greatest effective bandwidth for jobs that are sensitive to it; for others the set that leaves most NVLink bandwidth."""
    if sensitive and size > 1:
        return _most_effective(graph, free, size)
    return _among(graph, free, size, _left_behind)


def min_score(graph: LinkGraph, free: Sequence[int], size: int, sensitive: bool) -> Ring | None:
    """As `preserve`, but a sensitive job waits for a ring as effective as the best of the idle server."""
    found = preserve(graph, free, size, sensitive)
    if found is None or not sensitive or size == 1:
        return found
    ideal = _most_effective(graph, range(len(graph.gpus)), size)
    assert ideal is not None
    assert ideal.effective is not None
    return found if found.effective is not None and found.effective >= ideal.effective - _EQUAL else None


def greedy_route(graph: LinkGraph, free: Sequence[int], size: int, sensitive: bool) -> Ring | None:
    """As `greedy`, where pairs on the bus count as their best NVLink route over one other GPU."""
    return greedy(graph.routed(), free, size, sensitive)


def preserve_route(graph: LinkGraph, free: Sequence[int], size: int, sensitive: bool) -> Ring | None:
    """As `preserve`, with such routes."""
    return preserve(graph.routed(), free, size, sensitive)


RING_RULES: dict[str, RingRule] = {
    "baseline": baseline,
    "topoAware": topo_aware,
    "greedy": greedy,
    "preserve": preserve,
    "minScore": min_score,
    "greedyRoute": greedy_route,
    "preserveRoute": preserve_route,
}


def _best_order(graph: LinkGraph, gpus: Sequence[int]) -> Ring:
    """The ring of most bandwidth through exactly these GPUs."""
    found = greedy(graph, gpus, len(gpus), True)
    assert found is not None
    return found


def _among(graph: LinkGraph, free: Sequence[int], size: int, score: Callable[[LinkGraph, Ints, Floats], Floats]) -> Ring | None:
    """The set with the greatest score, of equal ones the one whose ring has most bandwidth; in its order of most bandwidth."""
    if len(free) < size:
        return None
    part = graph.some(free)
    if size == 1:
        scores = score(part, 1 << (len(free) - 1 - np.arange(len(free))), np.zeros(len(free)))
        return Ring(graph, (free[int(np.argmax(scores))],))
    paths = most_bandwidth_paths(part, size)
    sets, sums = np.empty(1 << len(free), dtype=np.int64), np.empty(1 << len(free))
    count = best_sums(part.bandwidth, size, paths, sets, sums, np.empty(len(free), dtype=np.int64))
    sets, sums = sets[:count], sums[:count]
    scores = score(part, sets, sums)
    best = np.flatnonzero(scores >= scores.max() - _EQUAL)
    at = int(best[np.argmax(sums[best] >= sums[best].max() - _EQUAL)])
    order = _first_ring(part, int(sets[at]), float(sums[at]), paths)
    return Ring(graph, tuple(free[each] for each in order))


def _left_behind(part: LinkGraph, sets: Ints, sums: Floats) -> Floats:
    """GB/s of the NVLinks between the GPUs that each set leaves free."""
    left = np.empty(len(sets))
    left_between(part.nvlinks, sets, left, np.empty(len(part.gpus), dtype=np.int64))
    return left


def _most_effective(graph: LinkGraph, free: Sequence[int], size: int) -> Ring | None:
    """The ring with the greatest effective bandwidth; of equal ones that with most bandwidth."""
    if len(free) < size:
        return None
    part = graph.some(free)
    paths = path_mixes(part, size)
    count, shift = len(free), np.array([0, 1, paths.stride])[part.kind]
    mixes = _mixes_by_effect(size)
    sets, members = np.empty(1 << count, dtype=np.int64), np.empty(count, dtype=np.int64)
    closing = np.empty((3, paths.words.shape[2]), dtype=np.uint64)
    rank, found = best_mixes(shift, size, paths, mixes, sets, members, closing)
    double, single = divmod(int(mixes[rank]), size + 1)
    pairs = np.triu_indices(count, 1)
    fastest = [float(part.bandwidth[pairs][part.kind[pairs] == kind].max(initial=0.0)) for kind in (DOUBLE, SINGLE, PCIE)]
    bound = double * fastest[0] + single * fastest[1] + (size - double - single) * fastest[2]
    walk, most, order = Walk.room(count), -1.0, ()
    for chosen in sets[:found].tolist():
        total = ring_of_mix(part.kind, part.bandwidth, chosen, double, single, bound, paths, walk)
        if total > most + _EQUAL:
            most, order = total, tuple(free[at] for at in walk.found[:size].tolist())
        if most >= bound - _EQUAL:
            break
    return Ring(graph, order)


@cache
def _mixes_by_effect(size: int) -> Ints:
    """Mixes of double and single NVLinks in a ring, as `x * (size + 1) + y`: from the most effective on."""
    every = [(double, single) for double in range(size + 1) for single in range(size + 1 - double)]
    every.sort(key=lambda mix: (-effective_bandwidth(mix[0], mix[1], size - sum(mix)), -mix[0], -mix[1]))
    return np.array([double * (size + 1) + single for double, single in every], dtype=np.int64)


def _members(chosen: int, count: int) -> list[int]:
    return [at for at in range(count) if chosen >> (count - 1 - at) & 1]


def _first_ring(part: LinkGraph, chosen: int, total: float, paths: Floats) -> list[int]:
    """The lexicographically first ring through the set with that bandwidth: at each step the first GPU from which the rest can be had.

    What remains of a ring is a path from its first GPU through those that are left to the present one, walked backwards.
    """
    count = len(part.gpus)
    ring, rest = _members(chosen, count)[:1], chosen
    missing = total
    while len(ring) < chosen.bit_count():
        for at in _members(rest, count)[1:]:
            step = float(part.bandwidth[ring[-1], at])
            if rest.bit_count() >= 2 and abs(step + float(paths[rest, at]) - missing) <= _EQUAL * max(1.0, total):
                missing -= step
                rest ^= 1 << (count - 1 - at)
                ring.append(at)
                break
        else:
            raise AssertionError("no ring has the bandwidth that was counted")
    return ring


def preserved(graph: LinkGraph, free: Sequence[int], taken: Sequence[int]) -> float:
    """GB/s of the NVLinks between the free GPUs that are left when these are taken."""
    left, nvlinks = [at for at in free if at not in taken], graph.nvlinks
    return float(sum(nvlinks[a, b] for a, b in combinations(left, 2)))


# Cliques and stars of GPUs on a link graph, by trying every set: only for servers, where sets are few enough to
# count.

PATTERNS = ("clique", "star")
RULES_OF_PATTERNS = ("baseline", "greedy", "preserve")


@dataclass(frozen=True)
class Embedding:
    """GPUs that every pair of talks (clique), or all others with the first (star), by their places in the graph."""

    graph: LinkGraph
    pattern: str
    order: tuple[int, ...]

    @property
    def gpus(self) -> tuple[str, ...]:
        return tuple(self.graph.gpus[at] for at in self.order)

    @property
    def edges(self) -> list[tuple[int, int]]:
        return list(combinations(self.order, 2)) if self.pattern == "clique" else [(self.order[0], at) for at in self.order[1:]]

    @property
    def links(self) -> tuple[int, int, int]:
        """Double NVLinks, single ones, hops of PCIe."""
        return mix_of(self.graph.kind, self.edges)

    @property
    def aggregate(self) -> float:
        return float(sum(self.graph.bandwidth[a, b] for a, b in self.edges))

    @property
    def effective(self) -> float | None:
        """By the fit that was made for rings."""
        return effective_bandwidth(*self.links) if len(self.order) > 1 else None


def embed(graph: LinkGraph, free: Sequence[int], size: int, rule: str, sensitive: bool, pattern: str) -> Embedding | None:
    """The best embedding by a rule; of equal ones the first set of GPUs, then the first of them in the middle."""
    if rule not in RULES_OF_PATTERNS:
        raise UsageError(f"rule '{rule}' knows rings alone", where="--rule", fix=f"{', '.join(RULES_OF_PATTERNS)}, or --pattern ring")

    def score(one: Embedding) -> tuple[float, ...]:
        if rule == "preserve" and sensitive and size > 1:
            return one.effective or 0.0, one.aggregate
        if rule == "preserve":
            return preserved(graph, free, one.order), one.aggregate
        return (one.aggregate,)

    sets = [tuple(free[:size])] if rule == "baseline" else combinations(free, size)
    return max((one for chosen in sets if len(chosen) == size for one in _embeddings(graph, pattern, chosen)), key=score, default=None)


def _embeddings(graph: LinkGraph, pattern: str, chosen: tuple[int, ...]) -> Iterator[Embedding]:
    if pattern == "clique":
        yield Embedding(graph, pattern, chosen)
        return
    for hub in chosen:
        yield Embedding(graph, pattern, (hub, *(at for at in chosen if at != hub)))
