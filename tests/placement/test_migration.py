"""Packing and binding: workers conserved, capacity kept, moves minimal, and the original's cases without its defects."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulator.references import reference

from gantline.core.errors import GantlineError
from gantline.placement.migration import Layout, bind, pack, rearrange, release


def overlap(new: Layout, now: Layout) -> int:
    return sum(min(workers, old.get(job, 0)) for fresh, old in zip(new, now) for job, workers in fresh.items())


@st.composite
def moments(draw: st.DrawFn) -> tuple[dict[str, int], Layout, list[int]]:
    """A small cluster, who sits where, and the sizes wanted next."""
    capacity = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    now: Layout = [{} for _ in capacity]
    for place, size in enumerate(capacity):
        left = size
        for job in draw(st.permutations("abcde")):
            workers = draw(st.integers(0, left))
            if workers:
                now[place][job] = workers
                left -= workers
    sizes, free = {}, sum(capacity)
    for job in "abcdef":
        sizes[job] = draw(st.integers(0, free))
        free -= sizes[job]
    return sizes, now, capacity


@given(moments())
@settings(deadline=None, max_examples=150)
def test_workers_are_conserved_capacity_is_kept_and_moves_are_minimal(moment: tuple[dict[str, int], Layout, list[int]]) -> None:
    sizes, now, capacity = moment
    found = rearrange(sizes, now, capacity)
    assert Counter({job: sum(node.get(job, 0) for node in found.layout) for job in sizes}) == Counter(sizes)
    assert all(sum(node.values()) <= room for node, room in zip(found.layout, capacity))
    packed, staying = pack(sizes, capacity), release(sizes, now)
    bound = bind(packed, staying, capacity)
    assert bound == found.layout
    used = [sum(node.values()) for node in packed]
    orders = [order for order in itertools.permutations(range(len(capacity))) if all(used[k] <= capacity[p] for k, p in enumerate(order))]
    best = max(sum(overlap([packed[k]], [staying[p]]) for k, p in enumerate(order)) for order in orders)
    assert overlap(bound, staying) == best
    assert found.moves == sum(sum(node.values()) for node in staying) - best


def test_a_large_job_fills_the_emptiest_nodes_and_the_rest_fits_best() -> None:
    assert pack({"a": 6, "b": 2}, [4, 4]) == [{"a": 4}, {"a": 2, "b": 2}]
    assert pack({"a": 10, "b": 2}, [4, 4, 4]) == [{"a": 4}, {"a": 4}, {"a": 2, "b": 2}]
    assert pack({"small": 2, "large": 6}, [8, 2]) == [{"large": 6, "small": 2}, {}]


def test_a_full_node_is_never_bound_to_a_smaller_one() -> None:
    found = rearrange({"a": 2, "b": 6}, [{}, {"a": 2}], [8, 2])
    assert found.layout == [{"b": 6, "a": 2}, {}]
    assert (found.moved, found.uprooted) == ({"a": 2}, ("a",))


def test_workers_leave_from_the_last_node() -> None:
    assert release({"a": 3}, [{"a": 2}, {"b": 1, "a": 2}]) == [{"a": 2}, {"a": 1}]
    assert rearrange({"a": 6}, [{}, {}], [4, 4]).spanning == ("a",)


def test_more_workers_than_devices_are_refused() -> None:
    with pytest.raises(GantlineError, match="9 workers do not fit on 8 devices"):
        pack({"a": 9}, [4, 4])


def test_the_originals_cases_without_its_defects() -> None:
    """Same groups of workers, same number of moves; where equal choices exist the original follows chance, so nodes may be others."""
    compared = 0
    for line in reference("voda-allox/voda_placement_cases.jsonl").read_text().splitlines():
        case = json.loads(line)
        names, capacity = list(case["nodes"]), list(case["nodes"].values())
        now: Layout = [{} for _ in names]
        for step in case["steps"]:
            if step["over_capacity"] or "panic" in step:
                break
            found = rearrange(step["requests"], now, capacity)
            theirs = [step["node_job_workers"].get(name, {}) for name in names]
            assert sorted(map(sorted, map(dict.items, found.layout))) == sorted(map(sorted, map(dict.items, theirs))), case["id"]
            assert found.moves == step["workers_migrated_metric"], case["id"]
            assert len(found.uprooted) == step["launchers_deleted_metric"], case["id"]
            now, compared = theirs, compared + 1
    assert compared >= 9
