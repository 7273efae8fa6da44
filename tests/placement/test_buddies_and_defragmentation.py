"""Buddy blocks never fail while there are devices enough; defragmentation moves only what pays."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gantline.core.errors import UsageError
from gantline.placement.buddies import place_buddies
from gantline.placement.defragment import defragment
from gantline.placement.migration import Layout


@given(st.lists(st.sampled_from([1, 2, 4, 8, 16, 32]), max_size=20), st.integers(1, 6), st.sampled_from([2, 4, 8]))
@settings(deadline=None, max_examples=150)
def test_powers_of_two_always_fit_and_span_no_more_nodes_than_they_must(sizes: list[int], nodes: int, gpus: int) -> None:
    kept: dict[str, int] = {}
    for number, size in enumerate(sizes):
        if sum(kept.values()) + size <= nodes * gpus:
            kept[f"j{number}"] = size
    layout = place_buddies(kept, nodes, gpus)
    assert all(sum(node.values()) <= gpus for node in layout)
    for job, size in kept.items():
        assert sum(node.get(job, 0) for node in layout) == size
        assert sum(job in node for node in layout) == max(size // gpus, 1)


def test_a_block_that_is_not_there_is_told() -> None:
    with pytest.raises(UsageError, match="job 'b' finds no block of 4"):
        place_buddies({"a": 3, "b": 3, "c": 3}, 1, 4)
    with pytest.raises(UsageError, match="power of two"):
        place_buddies({"a": 1}, 1, 6)


def test_a_spread_job_is_brought_together_if_that_pays() -> None:
    now: Layout = [{"a": 2, "b": 1}, {"a": 2}]
    dear = defragment(now, [4, 4], lambda job, before, after: 100.0, lambda job: 200.0)
    assert dear == now
    cheap = defragment(now, [4, 4], lambda job, before, after: 100.0, lambda job: 30.0)
    assert cheap == [{"b": 1}, {"a": 4}]


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Layout, list[int]]:
    capacity = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    now: Layout = [{} for _ in capacity]
    for place, size in enumerate(capacity):
        left = size
        for job in draw(st.permutations("abcd")):
            if workers := draw(st.integers(0, left)):
                now[place][job] = workers
                left -= workers
    return now, capacity


@given(layouts(), st.integers(0, 3))
@settings(deadline=None, max_examples=150)
def test_workers_are_conserved_capacity_is_kept_and_only_gains_are_taken(moment: tuple[Layout, list[int]], cost: int) -> None:
    now, capacity = moment
    found = defragment(now, capacity, lambda job, before, after: float(len(before) - len(after)), lambda job: float(cost))
    spans = [Counter(job for node in layout for job in node) for layout in (now, found)]
    assert sum((Counter(node) for node in found), Counter()) == sum((Counter(node) for node in now), Counter())
    assert all(sum(node.values()) <= room for node, room in zip(found, capacity))
    changed = {job for job in spans[0] if any(old.get(job, 0) != new.get(job, 0) for old, new in zip(now, found))}
    assert all(spans[0][job] - spans[1][job] > cost for job in changed)
