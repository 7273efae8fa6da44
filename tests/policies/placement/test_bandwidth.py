"""Which devices of a node by the bandwidth between them: by hand, against every set, and how much a gang gains."""

from __future__ import annotations

from itertools import combinations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.cluster import Cluster, Link, Node
from gantline.core.errors import GantlineError
from gantline.policies.placement.picking import PairBandwidth, most_bandwidth
from gantline.simulator.simulate import simulate

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
