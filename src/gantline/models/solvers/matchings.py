"""Maximum-weight matchings: which pairs of things to join so that the sum of the pairs' weights is greatest (Edmonds' blossoms)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from rustworkx import PyGraph, max_weight_matching

Kind = TypeVar("Kind", bound=Hashable)

_WHOLE = 1 << 40
"""Weights become whole numbers, for the blossoms to be exact: parts of a weight smaller than this do not count."""


def heaviest_pairs(weights: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Pairs (lower, higher) of greatest total weight; `weights[j][i]` for i < j, pairs of zero or less are never joined.

    Not every node need have a partner: this is the matching of greatest weight, not of greatest size.
    """
    edges = [(i, j, whole) for j, row in enumerate(weights) for i, weight in enumerate(row[:j]) if (whole := round(weight * _WHOLE)) > 0]
    if not edges:
        return []
    graph: PyGraph[None, int] = PyGraph(multigraph=False)
    graph.add_nodes_from([None] * len(weights))
    graph.add_edges_from(edges)
    return sorted((min(pair), max(pair)) for pair in max_weight_matching(graph, weight_fn=int))


class PairsByKind(Generic[Kind]):
    """Matchings of things that are interchangeable if they are of one kind: solved once for each collection of kinds."""

    def __init__(self, weight: Callable[[Kind, Kind], float]) -> None:
        self._weight = weight
        self._weights: dict[Kind, dict[Kind, float]] = {}
        self._solved: dict[tuple[Kind, ...], list[tuple[int, int]]] = {}

    def match(self, kinds: Sequence[Kind]) -> list[tuple[int, int]]:
        """Pairs (lower, higher) of places in the list."""
        places = sorted(range(len(kinds)), key=kinds.__getitem__)  # type: ignore[arg-type]
        ordered = tuple([kinds[at] for at in places])
        if ordered not in self._solved:
            self._solved[ordered] = heaviest_pairs(self._table(ordered))
        pairs = [(places[i], places[j]) for i, j in self._solved[ordered]]
        return [(i, j) if i < j else (j, i) for i, j in pairs]

    def _table(self, ordered: tuple[Kind, ...]) -> list[list[float]]:
        """The weights below the diagonal; those of two kinds are asked for once."""
        rows = []
        for at, one in enumerate(ordered):
            known = self._weights.setdefault(one, {})
            for other in ordered[:at]:
                if other not in known:
                    known[other] = self._weight(one, other)
            rows.append([known[other] for other in ordered[:at]])
        return rows
