"""Packing and binding: workers conserved, capacity kept, moves minimal, and the original's cases without its defects."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.references import reference

from gantline.core.arrays import Ints
from gantline.core.errors import GantlineError
from gantline.policies.elastic.packing import bind, pack, rearrange, release


def ints(*rows: object) -> Ints:
    return np.array(rows, dtype=np.int64)


@st.composite
def moments(draw: st.DrawFn) -> tuple[Ints, Ints, Ints]:
    """The sizes wanted next, workers of each job on each node of a small cluster now, and the sizes of its nodes."""
    capacity = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    now = np.zeros((6, len(capacity)), dtype=np.int64)
    for place, size in enumerate(capacity):
        left = size
        for job in draw(st.permutations(range(5))):
            now[job, place] = draw(st.integers(0, left))
            left -= int(now[job, place])
    sizes, free = [], sum(capacity)
    for _ in range(6):
        sizes.append(draw(st.integers(0, free)))
        free -= sizes[-1]
    return ints(*sizes), now, ints(*capacity)


@given(moments())
def test_workers_are_conserved_capacity_is_kept_and_moves_are_minimal(moment: tuple[Ints, Ints, Ints]) -> None:
    sizes, now, capacity = moment
    found = rearrange(sizes, now, capacity)
    assert found.sum(axis=1).tolist() == sizes.tolist()
    assert (found.sum(axis=0) <= capacity).all()
    packed, staying = pack(sizes, capacity), release(sizes, now)
    assert staying.sum(axis=1).tolist() == np.minimum(sizes, now.sum(axis=1)).tolist()
    assert (bind(packed, staying, capacity) == found).all()
    orders = [list(order) for order in itertools.permutations(range(len(capacity)))]
    allowed = [order for order in orders if (packed.sum(axis=0) <= capacity[order]).all()]
    assert np.minimum(found, staying).sum() == max(np.minimum(packed, staying[:, order]).sum() for order in allowed)


def test_a_large_job_fills_the_emptiest_nodes_and_the_rest_fits_best() -> None:
    assert pack(ints(6, 2), ints(4, 4)).tolist() == [[4, 2], [0, 2]]
    assert pack(ints(10, 2), ints(4, 4, 4)).tolist() == [[4, 4, 2], [0, 0, 2]]
    assert pack(ints(2, 6), ints(8, 2)).tolist() == [[2, 0], [6, 0]]


def test_a_full_node_is_never_bound_to_a_smaller_one() -> None:
    assert rearrange(ints(2, 6), ints([0, 2], [0, 0]), ints(8, 2)).tolist() == [[2, 0], [6, 0]]


def test_workers_leave_from_the_last_node() -> None:
    assert release(ints(3, 0), ints([2, 2], [0, 1])).tolist() == [[2, 1], [0, 0]]


def test_more_workers_than_devices_are_refused() -> None:
    with pytest.raises(GantlineError, match="9 workers do not fit on 8 devices"):
        pack(ints(9), ints(4, 4))


def test_the_originals_cases_without_its_defects() -> None:
    """Same groups of workers, same number of moves; where equal choices exist the original follows chance, so nodes may be others."""
    compared = 0
    for line in reference("voda-allox/voda_placement_cases.jsonl").read_text().splitlines():
        case = json.loads(line)
        nodes, capacity = list(case["nodes"]), ints(*case["nodes"].values())
        jobs = sorted({job for step in case["steps"] for job in step["requests"]})
        now = np.zeros((len(jobs), len(nodes)), dtype=np.int64)
        for step in case["steps"]:
            if step["over_capacity"] or "panic" in step:
                break
            sizes = ints(*(step["requests"].get(job, 0) for job in jobs))
            found, staying = rearrange(sizes, now, capacity), release(sizes, now)
            theirs = ints(*([step["node_job_workers"].get(node, {}).get(job, 0) for node in nodes] for job in jobs))
            assert sorted(found.T.tolist()) == sorted(theirs.T.tolist()), case["id"]
            moved = np.maximum(staying - found, 0).sum(axis=1)
            assert moved.sum() == step["workers_migrated_metric"], case["id"]
            assert ((moved == sizes) & (moved > 0)).sum() == step["launchers_deleted_metric"], case["id"]
            now, compared = theirs, compared + 1
    assert compared >= 9
