"""Which nodes a gang gets, rule by rule, on nodes that are partly taken."""

from __future__ import annotations

import pytest
from tests.jobs import held_by, job_row

from gantline import simulate
from gantline.core.errors import NotFoundError, UsageError
from gantline.policies.placement.rules import find_placement


def placed(rule, gpus, cluster="4x4", taken=(3, 2, 0, 0), **job):
    """Node -> devices that a gang gets when `taken` devices of each node are in use."""
    # one job per device fills the cluster in order; those that are not to stay end before the gang comes
    fill = [job_row(f"{n}.{k}", 1, 1000 if k < t else 1) for n, t in enumerate(taken) for k in range(4)]
    jobs = [*fill, {"job": "gang", "arrival": 10, "gpus": gpus, "duration": 100, **job}]
    run = simulate(jobs, cluster, "fifo", placement=rule, until=50)
    row = held_by(run, "gang")
    if not row.height:
        return None
    size = int(cluster.split("x")[1])
    found: dict[int, int] = {}
    for device in row["devices"][0].to_list():
        found[device // size] = found.get(device // size, 0) + 1
    return found


def test_first_free_takes_nodes_in_order_as_much_as_each_has():
    assert placed("first-free", 4) == {0: 1, 1: 2, 2: 1}


def test_consolidated_takes_the_node_with_exactly_enough():
    assert placed("consolidated", 2) == {1: 2}
    assert placed("consolidated", 1) == {0: 1}


def test_consolidated_takes_the_fullest_node_that_fits():
    assert placed("consolidated", 3) == {2: 3}


def test_consolidated_gives_a_gang_larger_than_a_node_idle_nodes():
    assert placed("consolidated", 8) == {2: 4, 3: 4}
    assert placed("consolidated", 6) == {2: 4, 3: 2}


def test_consolidated_waits_rather_than_spread():
    assert placed("consolidated", 4, taken=(1, 1, 1, 1)) is None
    assert placed("consolidated", 8, taken=(1, 0, 1, 1)) is None


def test_preferred_spreads_over_the_fewest_nodes_when_it_must():
    assert placed("consolidated:preferred", 4, taken=(3, 1, 2, 3)) == {1: 3, 0: 1}
    assert placed("consolidated:preferred", 3, taken=(3, 1, 2, 3)) == {1: 3}


def test_tight_puts_the_rest_of_a_large_gang_into_the_smallest_gap():
    assert placed("consolidated:tight", 6) == {2: 4, 1: 2}


def test_skew_consolidates_models_with_a_dominating_tensor_and_fills_gaps_with_the_others():
    """VGG's largest layer holds most of its parameters, ResNet's does not (Tiresias, NSDI 2019, section 3.3)."""
    assert placed("skew", 4, model="vgg16") == {2: 4}
    assert placed("skew", 4, model="resnet50") == {0: 1, 1: 2, 2: 1}


def test_random_draws_free_devices_and_the_same_seed_the_same_ones():
    one, again = placed("random", 5), placed("random", 5)
    assert one == again
    assert sum(one.values()) == 5
    assert one.get(0, 0) <= 1
    assert one.get(1, 0) <= 2


def test_who_runs_stays_where_it_is():
    """When the others end, nobody moves the gang that spans two nodes, although one node is free now."""
    jobs = [
        job_row("small", 2, 50),
        job_row("wide", 4, 200, at=1),
        job_row("later", 1, 10, at=60),
    ]
    run = simulate(jobs, "2x4", "srtf", placement="first-free")
    wide = held_by(run, "wide")
    assert wide["nodes"].to_list() == [[0, 1]]


@pytest.mark.parametrize(("name", "told"), [("consolidatd", "consolidated"), ("consolidated:loose", "consolidated")])
def test_an_unknown_rule_is_answered_with_the_near_one(name, told):
    with pytest.raises(NotFoundError, match=told):
        find_placement(name)


def test_a_limit_that_is_no_number_is_refused():
    with pytest.raises(UsageError, match=r"skew:0\.5"):
        find_placement("skew:high")
