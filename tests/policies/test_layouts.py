"""Policies that say which devices: jobs span few nodes, few workers move, and a move that does not pay is not made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.jobs import by_job, held_by, job_row

from gantline import simulate
from gantline.core.errors import UsageError
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot
from gantline.policies.elastic.layouts import LAYOUTS, TypeLayout
from gantline.policies.elastic.packing import rearrange, release
from gantline.policies.registry import make_policy
from gantline.simulator.run import Run

STEPS = "fixed=0.1;sample=0.01;across=0.4"  # a gang of four takes 0.74 s a step over two nodes, 0.14 on one


def instant(capacity: int, nodes: int, held: list[list[int]], waiting: int) -> Snapshot:
    """Jobs that hold these devices, and some that wait; all may have up to twelve."""
    jobs: list[dict[str, Any]] = []
    for number, devices in enumerate([*held, *([[]] * waiting)]):
        job: dict[str, Any] = {"id": f"j{number}", "arrival": float(number), "gpus": max(len(devices), 1), "min_gpus": 1, "max_gpus": 12}
        job |= {"estimate": 1000.0, "options": [{"gpus": size, "rate": float(size)} for size in range(1, 13)]}
        if devices:
            job |= {"phase": "running", "devices": devices, "option": len(devices) - 1, "first_start": 0.0, "last_start": 0.0}
        jobs.append(job)
    return decode_snapshot({"cluster": f"gpu:{nodes}x{capacity}", "now": 10.0, "jobs": jobs})


@st.composite
def moments(draw: st.DrawFn) -> tuple[int, int, list[list[int]], list[int]]:
    """A small cluster, who holds which devices, and the sizes wanted next (0: it is stopped)."""
    nodes, size = draw(st.integers(1, 3)), draw(st.sampled_from([2, 3, 4]))
    devices = draw(st.permutations(range(nodes * size)))
    cuts = sorted(draw(st.lists(st.integers(0, nodes * size), min_size=0, max_size=3)))
    parts = [sorted(devices[a:b]) for a, b in zip([0, *cuts], cuts)]
    held = [part for part in parts if part]
    grants, free = [], nodes * size
    for _ in range(len(held) + draw(st.integers(0, 2))):
        grants.append(draw(st.integers(0, free)))
        free -= grants[-1]
    return nodes, size, held, grants


@given(moments(), st.sampled_from([name for name in LAYOUTS if name != "engine"]), st.integers(0, 7))
def test_devices_are_as_many_as_granted_apart_and_moved_as_little_as_can_be(
    moment: tuple[int, int, list[list[int]], list[int]], layout: str, bits: int
) -> None:
    nodes, size, held, grants = moment
    snapshot = instant(size, nodes, held, len(grants) - len(held))
    pinned = np.array([bool(bits >> (place % 3) & 1) for place in range(len(grants))])
    named = TypeLayout(snapshot, 0, np.arange(len(grants)), np.array(grants, dtype=np.int64), pinned).devices(layout, "5")
    before = [*held, *([[]] * (len(grants) - len(held)))]
    stays = [len(old) == grant for old, grant in zip(before, grants)]
    if not named:
        return  # all keep what they have, or newcomers fall into place
    after = [list(named.get(place, before[place] if stays[place] else [])) for place in range(len(grants))]
    assert [len(devices) for devices in after] == grants
    assert len({device for devices in after for device in devices}) == sum(grants)
    for place, fixed in enumerate(pinned):
        if fixed and stays[place] and grants[place]:
            assert place not in named
    if layout == "packed" and not pinned.any():
        now = np.array([[sum(d // size == node for d in old) for node in range(nodes)] for old in before], dtype=np.int64)
        then = np.array([[sum(d // size == node for d in new) for node in range(nodes)] for new in after], dtype=np.int64)
        sizes = np.array(grants, dtype=np.int64)
        staying, capacity = release(sizes, now), np.full(nodes, size)
        kept = np.minimum(staying, then).sum()
        assert kept == np.minimum(staying, rearrange(sizes, now, capacity)).sum()
        assert sum(len(set(old) & set(new)) for old, new in zip(before, after)) >= kept  # the very devices; who shrinks may keep more


def elastic(name: str, arrival: float, gpus: int, duration: float, **more: Any) -> dict[str, Any]:
    job = job_row(name, gpus, duration, at=arrival, min_gpus=gpus, max_gpus=gpus, batch_size=16)
    return job | {"scaling": STEPS} | more


#: `short` leaves a hole of two on the first node; `wide` sits on both until somebody brings it together
FRAGMENTED = [elastic("short", 0, 2, 100), elastic("long", 0, 1, 2000), elastic("wide", 1, 4, 400)]


def jct(run: Run, job: str) -> float:
    return float(by_job(run, "jct")[job])


@pytest.mark.parametrize("policy", ["equal-share", "voda.elastic_fifo", "ffdl"])
def test_packing_anew_keeps_a_gang_on_one_node_where_the_engine_spreads_it(policy: str) -> None:
    spread = simulate(FRAGMENTED, "gpu:2x4", policy)
    packed = simulate(FRAGMENTED, "gpu:2x4", policy, settings={"layout": "packed"})
    assert jct(packed, "wide") < 0.5 * jct(spread, "wide")
    assert (spread.summary["cross_node_jobs"], packed.summary["cross_node_jobs"]) == (1, 0)
    assert not packed.incidents


@pytest.mark.parametrize(("move", "moves"), [(0.0, 1), (50.0, 1), (5000.0, 0)])
def test_a_gang_is_brought_together_only_if_that_saves_more_than_the_move_costs(move: float, moves: int) -> None:
    """When `short` has left, four devices of the second node are free but for none; until then nothing could be gained."""
    jobs = [elastic("short", 0, 3, 100), elastic("long", 0, 2, 2000), elastic("wide", 1, 3, 1000)]
    run = simulate(jobs, "gpu:2x4", "equal-share", settings={"layout": "defragmented"}, costs=f"move={move}")
    assert run.summary["migrations"] == moves
    wide = held_by(run, "wide")
    assert [len(nodes) for nodes in wide["nodes"].to_list()] == ([2, 1] if moves else [2])
    told = simulate(jobs, "gpu:2x4", "equal-share", settings={"layout": "defragmented", "move_cost": "1e9"}, costs=f"move={move}")
    assert told.summary["migrations"] == 0
    assert moves == 0 or jct(run, "wide") < jct(told, "wide")


def test_listed_speeds_across_nodes_count_as_well() -> None:
    jobs = [
        job_row("short", 3),
        job_row("long", 2, 2000),
        job_row("wide", 3, 1000, at=1),
    ]
    run = simulate(jobs, "gpu:2x4", "equal-share", settings={"layout": "defragmented"})
    assert run.summary["migrations"] == 0  # as fast on two nodes: nothing to gain


def test_sia_lays_out_its_gangs_by_the_same_function() -> None:
    spread = simulate(FRAGMENTED, "gpu:2x4", "sia")
    packed = simulate(FRAGMENTED, "gpu:2x4", "sia", settings={"layout": "packed"})
    assert (spread.summary["cross_node_jobs"], packed.summary["cross_node_jobs"]) == (1, 0)
    assert jct(packed, "wide") < 0.5 * jct(spread, "wide")


def due(name: str, arrival: float, gpus: int, duration: float, deadline: float | None) -> dict[str, Any]:
    """A job of one size."""
    job = job_row(name, gpus, duration, at=arrival, min_gpus=gpus, max_gpus=gpus)
    return job | ({} if deadline is None else {"deadline": deadline})


@pytest.mark.parametrize(("costs", "best_effort", "moved"), [("", False, 1), ("move=30", False, 0), ("move=30", True, 1)])
def test_elasticflow_makes_room_for_buddies_but_moves_nobody_who_was_promised_a_deadline_at_a_cost(
    costs: str, best_effort: bool, moved: int
) -> None:
    """Two pairs that stay are on two nodes after the others have left; a gang of four needs one of them whole."""
    end = None if best_effort else 5000.0
    jobs = [due("a", 0, 2, 2000, end), due("b", 0, 2, 100, 5000.0), due("c", 0, 2, 2000, end), due("d", 0, 2, 100, 5000.0)]
    run = simulate([*jobs, due("wide", 200, 4, 500, 5000.0)], "gpu:2x4", "elasticflow", costs=costs)
    assert run.summary["migrations"] == moved
    assert run.summary["cross_node_jobs"] == 1 - moved
    assert run.summary["completed"] == 5
    finish = by_job(run, "finish")
    assert all(finish[job["job"]] <= job.get("deadline", np.inf) for job in jobs)


def test_a_cost_of_a_move_below_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="'move_cost' is '-1'"):
        make_policy("afs", {"move_cost": "-1"})
