"""Parts of GPUs: fragments by hand, what each rule prefers on small nodes, and the filling loop against a plain one."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.errors import RefusedError
from gantline.policies.placement.parts.filling import Arrivals, fill, take
from gantline.policies.placement.parts.fragments import (
    PartChanges,
    PartNodes,
    Shape,
    TypicalMix,
    accepted_models,
    fragments_over_time,
    node_fragments,
    shape_columns,
    typical_mix,
)
from gantline.policies.placement.parts.scores import PART_RULES, Scoring
from gantline.simulator.simulate import simulate

MODELS = ["T4", "V100"]
ACCEPTS = accepted_models(MODELS)
HALF, WHOLE, PAIR, CPUS = Shape(1000.0, 500.0, 1), Shape(1000.0, 1000.0, 1), Shape(1000.0, 1000.0, 2), Shape(1000.0, 0.0, 0)


def nodes(*free: list[float], cpu: float = 8000.0, model: int = 0) -> PartNodes:
    """Nodes whose devices have so much left; a node with a device in use holds a pod with a part."""
    made = PartNodes.idle(
        np.full(len(free), cpu), np.full(len(free), 1e6), np.array([len(each) for each in free]), np.full(len(free), model)
    )
    for node, each in enumerate(free):
        made.free[node, : len(each)] = each
        used = sum(left < 1000.0 for left in each)
        made.kinds[node, 0] = used
        made.pods[node] = used
    return made


def mix(*shapes: Shape) -> TypicalMix:
    return typical_mix(shapes, ACCEPTS, share=1.0)


def chosen(rule: str, where: PartNodes, pod: Shape, typical: TypicalMix | None = None, *, published: bool = False) -> tuple[int, int]:
    """Node and device of one pod."""
    arrivals = Arrivals(np.zeros(1, dtype=np.int64), np.ones(1), np.full((2, 1), 0.999))
    scoring = Scoring(PART_RULES[rule], published, 8000.0, 4000.0)
    found = fill(scoring, where, arrivals, shape_columns([pod], ACCEPTS), mix(WHOLE) if typical is None else typical)
    return int(found.node[0]), int(found.device[0])


def test_what_a_typical_pod_cannot_use_are_fragments() -> None:
    where = nodes([1000.0, 400.0])
    assert node_fragments(where, 0, mix(HALF)) == 400.0  # it fits on the first device; the second is too small for it
    assert node_fragments(where, 0, mix(PAIR)) == 1400.0  # it does not fit, so nothing is of use to it
    assert node_fragments(where, 0, mix(CPUS)) == 1400.0
    assert node_fragments(where, 0, mix(HALF, PAIR)) == 900.0
    assert node_fragments(where, 0, mix(Shape(9000.0, 500.0, 1))) == 1400.0  # more CPU than the node has
    assert node_fragments(where, 0, mix(Shape(1000.0, 500.0, 1, "V100"))) == 1400.0


def test_typical_are_the_most_frequent_shapes_and_of_equal_ones_the_larger() -> None:
    pods = [HALF] * 12 + [WHOLE] * 4 + [PAIR] * 4
    assert typical_mix(pods, ACCEPTS, 0.6).part.tolist() == [500.0]
    two = typical_mix(pods, ACCEPTS, 0.7)
    assert (two.gpus.tolist(), two.share.tolist()) == ([1, 2], pytest.approx([0.75, 0.25]))


def test_fgd_keeps_whole_devices_for_pods_that_need_them() -> None:
    # half of the second device is of no use to whole pods anyway
    assert chosen("fgd", nodes([1000.0], [500.0]), HALF) == (1, 0)
    # with pods of three tenths about, half a device is worth more to them than the idle one is to a whole pod
    few = Shape(1000.0, 300.0, 1)
    assert chosen("fgd", nodes([1000.0, 500.0]), HALF, mix(few, few, few, WHOLE)) == (0, 1)


def test_bestfit_takes_the_fullest_node_and_the_fullest_device() -> None:
    assert chosen("bestfit", nodes([1000.0, 1000.0], [1000.0, 600.0], [700.0, 500.0]), HALF) == (2, 1)


def test_dotprod_matches_large_pods_with_large_rooms_but_not_as_published() -> None:
    where = [1000.0, 600.0], [1000.0, 1000.0]
    assert chosen("dotprod", nodes(*where), WHOLE)[0] == 1
    assert chosen("dotprod", nodes([1000.0, 0.0], [1000.0, 1000.0]), WHOLE, published=True)[0] == 0


def test_clustering_keeps_kinds_together() -> None:
    where = nodes([1000.0, 1000.0], [1000.0, 500.0])
    assert chosen("clustering", where, WHOLE)[0] == 0  # the other node holds parts
    assert chosen("clustering", where, Shape(0.0, 400.0, 1))[0] == 1


def test_packing_fills_devices_then_nodes_in_use_then_idle_nodes() -> None:
    assert chosen("packing", nodes([1000.0], [1000.0, 400.0]), Shape(0.0, 300.0, 1)) == (1, 1)
    assert chosen("packing", nodes([1000.0], [1000.0, 400.0]), HALF) == (1, 0)
    assert chosen("packing", nodes([1000.0, 1000.0], [1000.0]), WHOLE)[0] == 1  # the smaller idle node


def test_packing_as_published_takes_a_node_with_only_cpu_pods_for_an_idle_one() -> None:
    def where() -> PartNodes:
        found = nodes([1000.0], [1000.0, 1000.0])
        found.pods[1] = 1  # of CPUs alone
        return found

    assert chosen("packing", where(), WHOLE)[0] == 1
    assert chosen("packing", where(), WHOLE, published=True)[0] == 0


def test_random_draws_among_what_fits() -> None:
    assert chosen("random", nodes([1000.0, 1000.0], [100.0], [1000.0, 900.0], [0.0]), HALF) == (2, 1)


def test_a_pod_that_fits_nowhere_fails() -> None:
    assert chosen("fgd", nodes([400.0], [300.0, 300.0]), HALF) == (-1, -1)
    assert chosen("fgd", nodes([1000.0]), Shape(9000.0, 500.0, 1)) == (-1, -1)
    assert chosen("fgd", nodes([1000.0]), Shape(0.0, 500.0, 1, "V100")) == (-1, -1)


PODS = st.builds(
    Shape,
    st.sampled_from([0.0, 1000.0, 4000.0]),
    st.sampled_from([300.0, 500.0, 1000.0]),
    st.just(1),
    st.sampled_from(["", "T4", "T4|V100"]),
) | st.sampled_from([CPUS, PAIR])


@given(st.lists(PODS, min_size=1, max_size=40), st.sampled_from([rule for rule in PART_RULES if rule != "random"]), st.booleans())
def test_scores_that_are_kept_are_those_that_would_be_counted_anew(pods: list[Shape], rule: str, published: bool) -> None:
    """One pod at a time on the state that the pods before it left, without anything kept."""
    devices, model = np.array([2, 1, 4]), np.array([0, 1, 1])
    everything = [PartNodes.idle(np.array([8000.0, 4000.0, 16000.0]), np.full(3, 1e6), devices, model) for _ in range(2)]
    shapes = shape_columns(pods, ACCEPTS)
    typical = typical_mix(pods, ACCEPTS)
    scoring = Scoring(PART_RULES[rule], published, 16000.0, 4000.0)
    count = len(pods)
    at_once = fill(scoring, everything[0], Arrivals(np.arange(count), np.ones(count), np.zeros((2, count))), shapes, typical)

    where = everything[1]
    for pod in range(count):
        alone = Arrivals(np.array([pod]), np.ones(1), np.zeros((2, 1)))
        tried = copy.deepcopy(where)
        found = fill(scoring, tried, alone, shapes, typical)
        assert (found.node[0], found.device[0]) == (at_once.node[pod], at_once.device[pod])
        if found.node[0] >= 0:
            take(where, int(found.node[0]), shapes, pod, 1.0, int(found.device[0]))
    assert (where.free == everything[0].free).all()
    assert (where.free >= 0.0).all()
    assert (where.cpu >= 0.0).all()


def plain_fragments(where: PartNodes, node: int, typical: list[tuple[Shape, float]]) -> float:
    """The definition, pod by pod."""
    free = where.free[node, : where.devices[node]].tolist()
    total = 0.0
    for shape, share in typical:
        fitting = [left for left in free if left >= shape.part]
        accepted = not shape.models or MODELS[where.model[node]] in shape.models.split("|")
        useful = shape.gpus > 0 and accepted and where.cpu[node] >= shape.cpu and len(fitting) >= shape.gpus
        total += share * (sum(free) - sum(fitting) * useful)
    return total


@given(st.lists(st.sampled_from([0.0, 200.0, 500.0, 1000.0]), min_size=1, max_size=6), st.lists(PODS, min_size=1, max_size=8))
def test_fragments_are_those_of_the_definition(free: list[float], pods: list[Shape]) -> None:
    where = nodes(free, cpu=2000.0)
    expected = plain_fragments(where, 0, [(shape, 1 / len(pods)) for shape in pods])
    assert math.isclose(node_fragments(where, 0, mix(*pods)), expected, abs_tol=1e-6)


def test_fragments_come_and_go_with_the_jobs() -> None:
    where, typical = nodes([1000.0, 1000.0], [1000.0]), mix(HALF, PAIR)
    held = {"node": np.array([0, 0, 1]), "device": np.array([0, 1, -1]), "part": np.array([700.0, 500.0, 0.0])}
    changes = PartChanges.of(np.array([1.0, 2.0, 3.0]), np.array([4.0, 4.0, 5.0]), **held, cpu=np.array([0.0, 0.0, 7500.0]))
    assert fragments_over_time(where, changes, typical, 0.0).tolist() == [
        [0.0, 3000.0, 500.0],  # the pair can do nothing with the second node
        [1.0, 2300.0, 1300.0],  # nor with the first, where the half can do nothing with what is left of a device
        [2.0, 1800.0, 1050.0],
        [3.0, 1800.0, 1550.0],  # the half lacks CPU on the second node
        [4.0, 3000.0, 1000.0],
        [5.0, 3000.0, 500.0],
    ]


def test_parts_that_are_given_back_leave_whole_devices() -> None:
    where, count = nodes([1000.0]), 3
    start, end, part = np.arange(3.0), np.array([5.0, 4.0, 3.0]), 1000.0 * np.array([0.1, 0.2, 0.7])
    changes = PartChanges.of(start, end, np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64), part, np.zeros(count))
    steps = fragments_over_time(where, changes, mix(WHOLE), 0.0)
    assert steps[-1].tolist() == [5.0, 1000.0, 0.0]
    assert steps[:, 1].min() == 0.0


PARTS = [
    {"job": f"j{k}", "arrival": 5.0 * k, "gpus": 1 + (k % 7 == 3), "duration": 300 + 7 * k, "gpu_demand": (0.3, 0.5, 0.7, 1)[k % 4]}
    for k in range(20)
]


@pytest.mark.parametrize("rule", sorted(set(PART_RULES) - {"random"}))
@pytest.mark.parametrize("policy", ["srtf", "themis", "afs"])
def test_a_placement_for_parts_is_refused_beside_policies_that_give_whole_devices(rule: str, policy: str) -> None:
    with pytest.raises(RefusedError, match="gives parts of GPUs, and policy") as refused:
        simulate(PARTS, "2x4", policy, placement=rule)
    assert "--policy sharing --set order=srtf" in str(refused.value.fix)


def test_two_rules_for_parts_are_refused() -> None:
    run = simulate(PARTS, "2x4", "sharing", settings={"seats": "fgd"}, placement="packing")
    assert "seats by 'fgd' and placement 'packing'" in run.incidents[0]


@pytest.mark.parametrize("policy", ["sharing", "themis"])
def test_a_placement_that_decides_nothing_is_said_to(policy: str) -> None:
    run = simulate(PARTS, "2x4", policy, placement="consolidated")
    assert [notice for notice in run.notices if f"placement 'consolidated' decides nothing: policy '{policy}'" in notice]
    assert not simulate(PARTS, "2x4", policy).notices
