"""Cliques and stars of GPUs on a link graph, by trying every set: only for servers, where sets are few enough to count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from gantline.core.errors import UsageError
from gantline.core.topology import LinkGraph
from gantline.models.effective_bandwidth import effective_bandwidth, mix_of
from gantline.policies.placement.links.ring_rules import preserved

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
