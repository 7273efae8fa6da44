"""Devices that differ: which ones PM-First, PAL and packing choose by bins of speeds, and which are chosen by their bandwidth."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.cluster import Cluster, Link, Node
from gantline.core.errors import GantlineError
from gantline.policies.placement.picking import DeviceBins, PairBandwidth, cluster_values, most_bandwidth, packed, pal, pm_first, speed_bins
from gantline.simulator.simulate import simulate


@given(st.lists(st.integers(0, 40), min_size=1, max_size=7), st.integers(1, 3))
def test_clusters_are_the_best_there_are(values: list[int], count: int) -> None:
    numbers = np.array(values, dtype=float)
    count = min(count, len(set(values)))

    def loss(label: np.ndarray) -> float:  # type: ignore[type-arg]
        return sum(float(((numbers[label == k] - numbers[label == k].mean()) ** 2).sum()) for k in set(label.tolist()))

    every = (np.array(label) for label in product(range(count), repeat=len(values)))
    assert loss(cluster_values(numbers, count)) == pytest.approx(min(map(loss, every)), abs=1e-6)


def test_an_outlier_has_a_bin_of_its_own_and_the_median_centre_is_one() -> None:
    values = np.array([0.9] * 12 + [1.0] * 11 + [3.0])

    bins = speed_bins(values, clusters=2)

    assert bins.tolist() == pytest.approx([0.9] * 12 + [1.0] * 11 + [3.0])


def test_without_a_number_the_silhouette_chooses_it() -> None:
    values = np.array([1.0, 1.01, 1.02, 2.0, 2.01, 2.02, 3.0, 3.01, 3.02])

    assert len(set(speed_bins(values).tolist())) == 3


def test_devices_that_are_all_alike_are_one_bin() -> None:
    assert set(speed_bins(np.ones(8)).tolist()) == {1.0}


def worlds() -> st.SearchStrategy[tuple[DeviceBins, list[int], int]]:
    """Nodes of four devices with a few bins, some of them free, and a gang."""
    device = st.sampled_from([0.9, 1.0, 1.2, 2.0])
    bins = st.lists(device, min_size=8, max_size=8)
    free = st.sets(st.integers(0, 7), min_size=1)
    return st.tuples(bins, free, st.integers(1, 8)).map(lambda w: (DeviceBins([k // 4 for k in range(8)], w[0]), sorted(w[1]), w[2]))


@given(worlds(), st.sampled_from([1.0, 1.5, 3.0]))
def test_every_rule_gives_so_many_free_devices_or_none_if_there_are_too_few(
    world: tuple[DeviceBins, list[int], int], penalty: float
) -> None:
    device_bins, free, count = world
    for found in (packed(free, count, device_bins), pm_first(free, count, device_bins), pal(free, count, device_bins, penalty)):
        assert (found is None) == (len(free) < count)
        assert found is None or (len(set(found)) == count and set(found) <= set(free))


@given(worlds(), st.sampled_from([1.0, 1.5, 3.0]))
def test_no_other_set_of_devices_makes_a_gang_of_a_node_faster_than_pal(world: tuple[DeviceBins, list[int], int], penalty: float) -> None:
    """By bins: PAL's slowdown is the least of all sets, for gangs that one node could hold."""
    device_bins, free, count = world
    found = pal(free, count, device_bins, penalty)
    if found is None or count > 4:
        return

    def slowdown(devices: list[int]) -> float:
        spans = len({device_bins.node[device] for device in devices}) > 1
        return max(device_bins.bin[device] for device in devices) * (penalty if spans else 1.0)

    others = [[d for d, taken in zip(free, chosen) if taken] for chosen in product((0, 1), repeat=len(free)) if sum(chosen) == count]
    assert slowdown(found) <= min(map(slowdown, others)) + 1e-12


def test_of_nodes_that_offer_the_same_the_tightest_is_taken_and_the_emptiest_in_the_original() -> None:
    device_bins = DeviceBins([0, 0, 0, 1, 1, 1], [1.0] * 6)

    assert pal([0, 1, 2, 4, 5], 2, device_bins, 1.5) == [4, 5]
    assert pal([0, 1, 2, 4, 5], 2, device_bins, 1.5, tightest=False) == [0, 1]


# Which devices of a node by the bandwidth between them: by hand, against every set, and how much a gang gains.

MESH = [(0, 1, 25), (0, 2, 25), (0, 3, 50), (0, 4, 50), (1, 2, 50), (1, 3, 25), (1, 5, 50), (2, 3, 50), (2, 6, 25), (3, 7, 25),
        (4, 5, 25), (4, 6, 25), (4, 7, 50), (5, 6, 50), (5, 7, 25), (6, 7, 50)]  # fmt: skip
"""Two nodes of eight whose GPUs are linked as a cube with diagonals, by one link or two; all other pairs cross PCIe."""


def machines() -> Cluster:
    links = [Link(f"{node}:{a}", f"{node}:{b}", float(speed)) for node in "ab" for a, b, speed in MESH]
    slow = [Link(f"{node}:{a}", f"{node}:{b}", 10.0) for node in "ab" for a, b in ((0, 5), (0, 6))]
    return Cluster((Node("a", gpus=8), Node("b", gpus=8)), (*links, *slow))


def test_a_pair_takes_two_gpus_with_two_links_between_them() -> None:
    between = PairBandwidth.of(machines())

    assert most_bandwidth([0, 1, 3], 2, between) == [0, 3]
    assert most_bandwidth([0, 1, 5, 6], 2, between) == [1, 5]
    assert sorted(most_bandwidth([0, 12], 2, between) or []) == [0, 12]  # no node has room: across
    assert most_bandwidth([0], 2, between) is None


@given(st.sets(st.integers(0, 15), min_size=1), st.integers(2, 5))
def test_no_other_set_on_a_node_has_more_bandwidth(free: set[int], count: int) -> None:
    between = PairBandwidth.of(machines())
    found = most_bandwidth(sorted(free), count, between)
    sets = [chosen for node in (range(8), range(8, 16)) for chosen in combinations(sorted(free & set(node)), count)]

    assert (found is None) == (len(free) < count)
    if sets and found is not None:
        assert between.mean(found) == max(map(between.mean, sets))


def test_a_cluster_without_such_links_is_refused() -> None:
    cluster = Cluster((Node("a", gpus=2), Node("b", gpus=2)), (Link("a", "b", 5.0),))
    jobs = pl.DataFrame({"job": ["a"], "arrival": [0.0], "gpus": [1], "duration": [9.0]})

    with pytest.raises(GantlineError, match="nothing of the bandwidth"):
        simulate(jobs, cluster, "fifo", placement="bandwidth")
