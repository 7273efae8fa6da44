"""Maximum-weight matchings against every matching of small graphs, and against NetworkX' program on larger ones."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest

from gantline.models.solvers.matchings import PairsByKind, heaviest_pairs

Pairs = list[tuple[int, int]]


def drawn(seed: int, count: int) -> list[list[float]]:
    """Weights below the diagonal; some pairs must not be joined."""
    table = np.random.default_rng(seed).integers(-2, 9, (count, count)) / 8
    return [[float(table[j, i]) for i in range(j)] for j in range(count)]


def matchings(nodes: list[int]) -> Iterator[Pairs]:
    """All of them, the empty one included."""
    if not nodes:
        yield []
        return
    first, *rest = nodes
    yield from matchings(rest)
    for other in rest:
        for more in matchings([node for node in rest if node != other]):
            yield [(first, other), *more]


def total(weights: list[list[float]], pairs: Pairs) -> float:
    return sum(weights[j][i] for i, j in pairs)


@pytest.mark.parametrize("seed", range(6))
def test_no_matching_of_a_small_graph_weighs_more(seed: int) -> None:
    weights = drawn(seed, 7)
    found = heaviest_pairs(weights)

    assert len({node for pair in found for node in pair}) == 2 * len(found)
    assert all(weights[j][i] > 0 for i, j in found)
    assert total(weights, found) == pytest.approx(max(total(weights, pairs) for pairs in matchings(list(range(7)))))


def test_the_heaviest_matching_may_leave_nodes_without_a_partner() -> None:
    assert heaviest_pairs([[], [1.0], [0.0, 3.0], [0.0, 0.0, 1.0]]) == [(1, 2)]  # not (0, 1) and (2, 3)
    assert heaviest_pairs([[], [0.0]]) == []
    assert heaviest_pairs([]) == []


@pytest.mark.parametrize("seed", range(5))
def test_another_exact_matcher_finds_the_same_weight(seed: int) -> None:
    weights = drawn(seed, 40)
    graph = nx.Graph([(i, j, {"weight": weight}) for j, row in enumerate(weights) for i, weight in enumerate(row) if weight > 0])
    other = [(min(pair), max(pair)) for pair in nx.max_weight_matching(graph)]

    assert total(weights, heaviest_pairs(weights)) == pytest.approx(total(weights, other))


def test_things_of_one_kind_are_interchangeable_and_weights_are_asked_for_once() -> None:
    asked: list[tuple[str, str]] = []

    def weight(one: str, other: str) -> float:
        asked.append((one, other))
        return 0.5 if one == other else 1.0

    pairs = PairsByKind(weight)

    found = pairs.match(["x", "y", "y", "x", "x"])
    assert sorted("".join(sorted(("xyyxx"[i], "xyyxx"[j]))) for i, j in found) == ["xy", "xy"]
    assert all(i < j for i, j in found)
    assert len(pairs.match(["y", "x", "x", "x", "y"])) == 2
    assert len(asked) == len(set(asked)) == 3
