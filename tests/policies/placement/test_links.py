"""Rings on link graphs: every rule against all embeddings on small servers, and graphs that cannot be."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.errors import UsageError
from gantline.core.topology import CLASS_NAMES, DOUBLE, PCIE, SINGLE, GpuLink, LinkGraph
from gantline.policies.placement.links.rules import RING_RULES, Ring, embed, preserved
from gantline.policies.placement.links.topologies import find_topology


def rings(graph: LinkGraph, free: list[int], size: int) -> list[Ring]:
    """All of them, written from their first GPU, in lexicographic order of sets and then of rings."""
    return [Ring(graph, (chosen[0], *rest)) for chosen in combinations(free, size) for rest in permutations(chosen[1:])]


def brute_force(rule: str, graph: LinkGraph, free: list[int], size: int, sensitive: bool) -> Ring | None:
    return best_of(rings(graph, free, size), rule, graph, free, size, sensitive)


def best_of(every: list[Ring], rule: str, graph: LinkGraph, free: list[int], size: int, sensitive: bool) -> Ring | None:
    if rule == "baseline":
        every = [ring for ring in every if sorted(ring.order) == free[:size]]
    if rule == "preserve" and sensitive and size > 1:
        return max(every, key=lambda ring: (round(ring.effective or 0.0, 6), ring.aggregate), default=None)
    if rule == "preserve":
        return max(every, key=lambda ring: (preserved(graph, free, ring.order), ring.aggregate), default=None)
    return max(every, key=lambda ring: ring.aggregate, default=None)


@st.composite
def servers(draw: st.DrawFn) -> LinkGraph:
    """Up to six GPUs; links of one class may differ in speed."""
    count = draw(st.integers(2, 6))
    speeds = {PCIE: [10.0], SINGLE: [25.0, 20.0], DOUBLE: [50.0, 25.0]}
    links = []
    for a, b in combinations(range(count), 2):
        kind = draw(st.sampled_from([PCIE, SINGLE, DOUBLE]))
        links.append(GpuLink(str(a), str(b), draw(st.sampled_from(speeds[kind])), kind))
    return LinkGraph.of([str(at) for at in range(count)], links, "drawn")


@given(servers(), st.data())
def test_every_rule_finds_what_trying_all_rings_finds(graph: LinkGraph, data: st.DataObject) -> None:
    free = sorted(data.draw(st.sets(st.integers(0, len(graph.gpus) - 1), min_size=1)))
    size = data.draw(st.integers(1, len(free)))
    sensitive = data.draw(st.booleans())
    for rule in ("baseline", "greedy", "preserve"):
        expected = brute_force(rule, graph, free, size, sensitive)
        found = RING_RULES[rule](graph, free, size, sensitive)
        assert found is not None
        assert expected is not None
        assert found.order == expected.order, rule


def drawn_server(seed: int, count: int) -> LinkGraph:
    """A server of so many GPUs whose pairs have links of any class."""
    draw = np.random.default_rng(seed)
    kinds = [(PCIE, 10.0), (SINGLE, 25.0), (SINGLE, 20.0), (DOUBLE, 50.0)]
    pairs = [(a, b, kinds[int(draw.integers(len(kinds)))]) for a, b in combinations(range(count), 2)]
    return LinkGraph.of([str(at) for at in range(count)], [GpuLink(str(a), str(b), speed, kind) for a, b, (kind, speed) in pairs], "drawn")


@pytest.mark.parametrize("gpus", [7, 8])
def test_servers_of_eight_agree_with_trying_all_rings(gpus: int) -> None:
    graph, free = drawn_server(0, gpus), list(range(gpus))
    for size in (gpus - 2, gpus):
        every = rings(graph, free, size)
        for rule, sensitive in (("baseline", True), ("greedy", True), ("preserve", True), ("preserve", False)):
            expected = best_of(every, rule, graph, free, size, sensitive)
            found = RING_RULES[rule](graph, free, size, sensitive)
            assert found is not None
            assert expected is not None
            assert found.order == expected.order, (graph.bandwidth.tolist(), size, rule, sensitive)


def test_rings_of_more_than_eight_take_several_words() -> None:
    graph = find_topology("torus-2d")
    ring = RING_RULES["preserve"](graph, list(range(16)), 16, True)
    assert ring is not None
    assert sorted(ring.order) == list(range(16))
    best = RING_RULES["greedy"](graph, list(range(16)), 16, True)
    assert best is not None
    assert best.aggregate > ring.aggregate


def test_too_few_free_devices_are_no_ring() -> None:
    graph = find_topology("summit")
    assert all(rule(graph, [0, 3], 3, True) is None for rule in RING_RULES.values())


def test_min_score_waits_for_a_ring_as_good_as_the_best() -> None:
    graph = find_topology("dgx-v")
    waiting = RING_RULES["minScore"]
    assert waiting(graph, [0, 1], 2, True) is None  # one NVLink between them; the best pairs have two
    assert waiting(graph, [0, 1], 2, False) is not None
    assert waiting(graph, [0, 3], 2, True) is not None


def test_a_route_over_a_third_gpu_counts_in_place_of_the_bus() -> None:
    graph = find_topology("dgx-v")
    routed = graph.routed()
    assert (graph.bandwidth[0, 5], routed.bandwidth[0, 5], routed.kind[0, 5]) == (10.0, 25.0, SINGLE)  # over GPU 2 or 5
    plain, over = (RING_RULES[rule](graph, list(range(8)), 6, True) for rule in ("greedy", "greedyRoute"))
    assert plain is not None
    assert over is not None
    assert over.aggregate >= plain.aggregate


def test_cliques_and_stars_are_tried_one_by_one() -> None:
    graph, free = find_topology("dgx-v"), list(range(8))
    star = embed(graph, free, 4, "greedy", True, "star")
    assert star is not None
    assert star.aggregate == max(sum(graph.bandwidth[hub, at] for at in others) for hub in free
                                 for others in combinations([at for at in free if at != hub], 3))  # fmt: skip
    clique = embed(graph, free, 3, "preserve", False, "clique")
    assert clique is not None
    assert len(clique.edges) == 3
    assert embed(graph, [0], 2, "greedy", True, "clique") is None
    with pytest.raises(UsageError, match="knows rings alone"):
        embed(graph, free, 4, "topoAware", True, "star")


@pytest.mark.parametrize("name", ["dgx-v", "dgx-p", "summit", "torus-2d", "cubeMesh-16"])
def test_known_servers_are_complete_graphs(name: str) -> None:
    graph = find_topology(name)
    apart = ~np.eye(len(graph.gpus), dtype=bool)
    assert (graph.bandwidth[apart] > 0.0).all()
    assert (graph.bandwidth == graph.bandwidth.T).all()
    assert set(graph.kind[apart].tolist()) <= set(CLASS_NAMES)


@pytest.mark.parametrize(
    ("links", "told"),
    [
        ([GpuLink("a", "c", 25.0)], "ends at 'c', which is no GPU"),
        ([GpuLink("a", "a", 25.0)], "from 'a' to itself"),
        ([GpuLink("a", "b", -25.0)], "has -25 GB/s"),
        ([GpuLink("a", "b", float("nan"))], "has nan GB/s"),
        ([GpuLink("a", "b", 25.0), GpuLink("b", "a", 50.0)], "two links between 'b' and 'a'"),
    ],
)
def test_links_that_cannot_be_are_refused_with_the_pair(links: list[GpuLink], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        LinkGraph.of(["a", "b"], links, "links.csv")


def test_a_server_of_too_many_gpus_is_refused() -> None:
    with pytest.raises(UsageError, match="17 GPUs"):
        LinkGraph.of([str(at) for at in range(17)], [], "links.csv")
