"""Configurations of every size of node find room without being split, and sticky placement moves nobody without need."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.cluster_spec import parse_cluster
from gantline.policies.node_classes import NodeClass, node_classes
from gantline.systems.sia.policies.placement import Parts, PlacementRequest, place_fast, place_sticky, shape_of
from gantline.systems.sia.policies.program import Configurations


def test_the_default_cluster_of_the_paper_has_nineteen_configurations() -> None:
    columns = Configurations.of(node_classes(parse_cluster("aws:6x4,rtx:3x8,dgx-ext:2x8")))
    listed = [columns.gpus[columns.group == k].tolist() for k in range(3)]
    assert listed == [[1, 2, 4, 8, 12, 16, 20, 24], [1, 2, 4, 8, 16, 24], [1, 2, 4, 8, 16]]
    assert columns.nodes[columns.group == 1].tolist() == [1, 1, 1, 1, 2, 3]
    assert columns.bound.tolist() == [24.0, 24.0, 16.0]


def test_nodes_that_are_no_power_of_two_have_a_bound_per_part() -> None:
    columns = Configurations.of([NodeClass("x", 6, (0, 1))])
    assert columns.gpus.tolist() == [1, 2, 4, 6, 12]
    assert columns.bound.tolist() == [12.0, 8.0]  # all GPUs, and those in parts of four
    assert columns.use[:, 1].tolist() == [0.0, 0.0, 4.0, 4.0, 8.0]


def test_sizes_of_nodes_of_one_type_are_kept_apart() -> None:
    found = node_classes(parse_cluster("a:2x4,b:1x8,a:1x8"))
    assert [(one.type, one.size, one.nodes) for one in found] == [("a", 4, (0, 1)), ("b", 8, (2,)), ("a", 8, (3,))]


def test_further_sizes_are_not_for_everyone() -> None:
    columns = Configurations.of([NodeClass("x", 8, (0, 1))], [6, 10, 30])
    assert columns.gpus.tolist() == [1, 2, 4, 6, 8, 10, 16]
    assert columns.gpus[~columns.regular].tolist() == [6, 10]
    assert columns.shape(5) == (8, 2)


def _check(nodes: NodeClass, requests: list[PlacementRequest], placed: dict[int, Parts]) -> None:
    used = np.zeros(len(nodes.nodes), dtype=int)
    for request in requests:
        parts = placed[request.job]
        assert sum(shape_of(parts)) == request.gpus
        whole, rest = divmod(request.gpus, nodes.size)
        assert sorted(shape_of(parts), reverse=True) == [nodes.size] * whole + [rest] * bool(rest), "it was split"
        for node, gpus in parts:
            used[node] += gpus
    assert np.all(used <= nodes.size)


@given(st.data())
def test_whatever_the_bounds_allow_is_placed_whole_round_after_round(data: st.DataObject) -> None:
    size = data.draw(st.sampled_from([1, 2, 4, 6, 8, 12]))
    nodes = NodeClass("x", size, tuple(range(data.draw(st.integers(1, 5)))))
    columns = Configurations.of([nodes])
    before: dict[int, Parts] = {}
    for _ in range(3):
        left, requests = columns.bound.copy(), []
        for job in range(data.draw(st.integers(0, 10))):
            column = data.draw(st.integers(0, len(columns) - 1))
            if np.all(columns.use[column] <= left):
                left -= columns.use[column]
                requests.append(PlacementRequest(job, int(columns.gpus[column])))
        _check(nodes, requests, place_fast(nodes, requests))
        placed = place_sticky(nodes, requests, before)
        _check(nodes, requests, placed)
        before = placed


def test_whoever_keeps_its_configuration_stays_if_the_newcomer_fits_elsewhere() -> None:
    nodes = NodeClass("x", 8, (0, 1))
    before = {0: ((1, 4),), 1: ((0, 2),)}
    placed = place_sticky(nodes, [PlacementRequest(0, 4), PlacementRequest(1, 2), PlacementRequest(2, 4)], before)
    assert {job: placed[job] for job in before} == before
    assert placed[2] == ((1, 4),), "the fullest node that has room"


def test_small_jobs_move_for_a_whole_node() -> None:
    nodes = NodeClass("x", 8, (0, 1))
    placed = place_sticky(nodes, [PlacementRequest(0, 2), PlacementRequest(1, 4), PlacementRequest(2, 8)], {0: ((0, 2),), 1: ((1, 4),)})
    assert placed == {2: ((0, 8),), 1: ((1, 4),), 0: ((1, 2),)}, "the node with most free GPUs is emptied"


def test_a_rigid_size_takes_what_is_left_where_no_node_has_room() -> None:
    nodes = NodeClass("x", 8, (0, 1))
    requests = [PlacementRequest(0, 6), PlacementRequest(1, 6), PlacementRequest(2, 4)]
    for placed in (place_fast(nodes, requests), place_sticky(nodes, requests, {})):
        assert sorted(shape_of(placed[2])) == [2, 2]
