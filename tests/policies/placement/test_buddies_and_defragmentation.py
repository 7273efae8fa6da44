"""Buddy blocks never fail while there are devices enough; defragmentation moves only what pays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policies.placement.test_migration import ints, moments

from gantline.core.arrays import Ints
from gantline.core.errors import UsageError
from gantline.policies.elastic.packing import defragment, place_buddies


@given(st.lists(st.sampled_from([1, 2, 4, 8, 16, 32]), max_size=20), st.integers(1, 6), st.sampled_from([2, 4, 8]))
def test_powers_of_two_always_fit_and_span_no_more_nodes_than_they_must(sizes: list[int], nodes: int, gpus: int) -> None:
    kept: list[int] = []
    for size in sizes:
        if sum(kept) + size <= nodes * gpus:
            kept.append(size)
    layout = place_buddies(ints(*kept), nodes, gpus)
    assert (layout.sum(axis=0) <= gpus).all()
    assert layout.sum(axis=1).tolist() == kept
    assert (layout > 0).sum(axis=1).tolist() == [max(size // gpus, 1) for size in kept]


def test_small_gangs_share_halves_so_that_whole_nodes_stay_free() -> None:
    assert place_buddies(ints(1, 4, 2, 1), 2, 4).tolist() == [[0, 1], [4, 0], [0, 2], [0, 1]]


def test_a_block_that_is_not_there_is_told() -> None:
    with pytest.raises(UsageError, match="job 1 finds no block for its 3 GPUs"):
        place_buddies(ints(3, 3, 3), 1, 4)
    with pytest.raises(UsageError, match="power of two"):
        place_buddies(ints(1), 1, 6)


def test_a_spread_job_is_brought_together_if_that_pays() -> None:
    now = ints([2, 2], [1, 0])
    dear = defragment(now, ints(4, 4), lambda job, before, after: 100.0, lambda job: 200.0)
    assert dear.tolist() == now.tolist()
    cheap = defragment(now, ints(4, 4), lambda job, before, after: 100.0, lambda job: 30.0)
    assert cheap.tolist() == [[0, 4], [1, 0]]


@given(moments(), st.integers(0, 3))
def test_workers_are_conserved_capacity_is_kept_and_only_gains_are_taken(moment: tuple[Ints, Ints, Ints], cost: int) -> None:
    _, now, capacity = moment
    found = defragment(now, capacity, lambda job, before, after: float(len(before) - len(after)), lambda job: float(cost))
    assert found.sum(axis=1).tolist() == now.sum(axis=1).tolist()
    assert (found.sum(axis=0) <= capacity).all()
    changed = (now != found).any(axis=1)
    assert ((now > 0).sum(axis=1) - (found > 0).sum(axis=1))[changed].min(initial=99) > cost
