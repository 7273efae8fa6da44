"""Slurm's order: priority and age, tiers, promises by node, and the same starts as a plain account of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.inputs import NodeEvent
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot
from gantline.policies.registry import make_policy
from gantline.simulator.roll_forward import carry_out
from gantline.simulator.simulate import simulate

JOBS = [
    {"id": "big", "gpus": 4, "estimate": 4000, "service": 500, "devices": [0, 1, 2, 3]},
    {"id": "small", "gpus": 2, "estimate": 300, "arrival": 100, "devices": [4, 5]},
]


def _snapshot(*waiting: dict[str, Any], cluster: str = "3x4", running: list[dict[str, Any]] | None = None, **more: Any) -> Snapshot:
    jobs = [*(JOBS if running is None else running), *({"arrival": 500, **job} for job in waiting)]
    return decode_snapshot({"now": 600, "cluster": cluster, "jobs": jobs, **more})


def _starts(snapshot: Snapshot, **settings: Any) -> dict[str, tuple[int, ...]]:
    found = carry_out(snapshot, make_policy("slurm", settings).decide(snapshot))
    return {one.job: tuple(one.devices) for one in found if one.act == "starts"}


def _waits(name: str, gpus: int, estimate: float, **more: Any) -> dict[str, Any]:
    return {"id": name, "gpus": gpus, "estimate": estimate, **more}


def test_a_job_of_one_node_gets_one_node_though_more_gpus_are_free_elsewhere() -> None:
    snapshot = _snapshot(_waits("a", 4, 700), _waits("b", 4, 700))
    assert _starts(snapshot) == {"a": (8, 9, 10, 11)}
    plan = make_policy("slurm").decide(snapshot)
    assert [(one.start, one.nodes) for one in plan.reservations] == [(900.0, (1,))]  # when `small` reaches its limit


def test_a_job_passes_those_in_front_only_if_its_limit_ends_before_their_promise() -> None:
    waiting = (_waits("a", 4, 700), _waits("b", 4, 700), _waits("short", 2, 200), _waits("long", 2, 400))
    assert set(_starts(_snapshot(*waiting))) == {"a", "short"}
    assert set(_starts(_snapshot(*waiting), fill=False)) == {"a"}
    assert set(_starts(_snapshot(*waiting), depth=1)) == {"a"}


def test_without_filling_a_job_that_waits_holds_up_only_its_own_queue() -> None:
    waiting = (_waits("a", 8, 700, queue="one"), _waits("b", 4, 700, queue="one"), _waits("c", 1, 60, queue="two"))
    assert set(_starts(_snapshot(*waiting), fill=False)) == {"c"}


def test_age_overtakes_a_higher_priority_and_a_tier_overtakes_both() -> None:
    old, urgent = _waits("old", 4, 60, priority=100, arrival=0), _waits("urgent", 4, 60, priority=300, arrival=599)
    assert set(_starts(_snapshot(old, urgent), age_weight=1000.0, max_age=6000.0)) == {"urgent"}
    assert set(_starts(_snapshot(old, urgent), age_weight=10_000.0, max_age=6000.0)) == {"old"}
    tiered = _waits("tiered", 4, 60, metrics={"partition_tier": 2})
    assert set(_starts(_snapshot(old, urgent, tiered))) == {"tiered"}


def test_priorities_are_cut_to_whole_numbers_and_of_equal_ones_the_first_goes_first() -> None:
    first, second = _waits("first", 4, 60, priority=1.0), _waits("second", 4, 60, priority=1.9)
    assert set(_starts(_snapshot(first, second))) == {"first"}


def test_cpus_and_windows_keep_a_job_out_like_gpus() -> None:
    options = [{"type": "gpu", "gpus": 1, "rate": 1.0, "cpus": 8.0}]
    snapshot = _snapshot(*(_waits(name, 1, 60, options=options) for name in "abc"), cluster="2x4/16c", running=[])
    assert set(_starts(snapshot)) == {"a", "b", "c"}
    greedy = [{"type": "gpu", "gpus": 1, "rate": 1.0, "cpus": 16.0}]
    snapshot = _snapshot(*(_waits(name, 1, 60, options=greedy) for name in "abc"), cluster="2x4/16c", running=[])
    assert set(_starts(snapshot)) == {"a", "b"}
    window = {"name": "maint", "start": 700, "end": 900, "places": ["node2"]}
    assert set(_starts(_snapshot(_waits("long", 4, 700), _waits("short", 4, 90), windows=[window]))) == {"short"}


@given(
    st.lists(st.tuples(st.integers(1, 8), st.integers(1, 500), st.integers(0, 3)), min_size=1, max_size=9),
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.integers(1, 400)), max_size=5),
)
def test_promises_are_those_of_a_plain_account_second_by_second(
    waiting: list[tuple[int, int, int]], running: list[tuple[int, int, int]]
) -> None:
    held, runs, taken = [], [], [0, 0, 0]
    for number, (node, gpus, left) in enumerate(running):
        if taken[node] + gpus > 4:
            continue
        devices = list(range(4 * node + taken[node], 4 * node + taken[node] + gpus))
        taken[node] += gpus
        runs.append({"id": f"r{number}", "gpus": gpus, "estimate": left + 10, "service": 10, "devices": devices})
        held.append((node, gpus, left))
    jobs = [_waits(f"w{number}", gpus, length, priority=priority) for number, (gpus, length, priority) in enumerate(waiting)]
    snapshot = _snapshot(*jobs, running=runs)
    plan = make_policy("slurm").decide(snapshot)
    ids = snapshot.jobs.ids
    promised = {ids[one.job]: one.start for one in plan.reservations} | dict.fromkeys(_starts(snapshot), 600.0)
    assert promised == _plain(jobs, held)


def _plain(jobs: list[dict[str, Any]], held: list[tuple[int, int, int]]) -> dict[str, float]:
    """A table of free GPUs by second and node, filled in order of priority."""
    free = np.full((20_000, 3), 4)
    for node, gpus, left in held:
        free[:left, node] -= gpus
    found = {}
    for job in sorted(jobs, key=lambda job: -job["priority"]):
        span = math.ceil(job["gpus"] / 4)
        each = math.ceil(job["gpus"] / span)
        for second in range(10_000):
            fits = [node for node in range(3) if free[second : second + job["estimate"], node].min() >= each][:span]
            if len(fits) == span:
                free[second : second + job["estimate"], fits] -= each
                found[job["id"]] = 600.0 + second
                break
    return found


def test_a_job_that_becomes_first_by_its_age_starts_then() -> None:
    """Looked at only when the plan says so, a run is the one that looks every ten seconds: no GPU idles until something happens."""
    overtaken = 0
    for seed in range(10):
        draw = np.random.default_rng(seed)
        jobs = [
            {"job": f"j{k}", "arrival": 10.0 * int(at), "gpus": int(draw.integers(1, 5)), "duration": 10.0 * int(draw.integers(20, 400))}
            | {"priority": float(draw.integers(0, 6)), "queue": str(draw.choice(["a", "b"]))}
            for k, at in enumerate(np.sort(draw.integers(0, 300, 12)))
        ]
        aging = {"age_weight": float(draw.choice([3.0, 20.0])), "max_age": float(draw.choice([2000.0, 9000.0])), "fill": bool(seed % 2)}
        found = simulate(jobs, "1x4", "slurm", settings=aging)
        looked = simulate(
            jobs, "1x4", "slurm", settings=aging, node_events=tuple(NodeEvent(10.0 * k, "node0", "up") for k in range(1, 2500))
        )
        starts, again = (run.jobs.sort("job")["first_start"].to_numpy() for run in (found, looked))
        assert np.abs(starts - again).max() < 10.1, f"seed {seed}"
        overtaken += not np.array_equal(
            starts, simulate(jobs, "1x4", "slurm", settings={"fill": bool(seed % 2)}).jobs.sort("job")["first_start"]
        )
    assert overtaken > 0
