"""Dally-like: which tier a job takes after which wait, how waits are tuned, which job is stopped or moved for a better tier."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.jobs import by_job, job_row

from gantline import Trace, simulate
from gantline.core.errors import TraceError, UsageError
from gantline.core.plan import Plan
from gantline.core.snapshot_json import decode_snapshot
from gantline.core.topology import ACROSS, IN_NODE, IN_RACK, level_of
from gantline.models.placement_speeds import PlacementTiers
from gantline.policies.registry import make_policy
from gantline.systems.dally.policies import ENOUGH, Offers, Timers
from gantline.systems.dally.traces import placement_tiers
from gantline.traces.files.clusters import read_cluster

CLUSTER = "4x4@2/rack"  # devices 0 to 3 on node 0, and so on; nodes 0 and 1 are a rack, 2 and 3 the other


def job(name: str, gpus: int, **more: Any) -> dict[str, Any]:
    return {"id": name, "gpus": gpus, "estimate": 10_000.0, "arrival": 0.0, **more}


def held(name: str, devices: list[int], **more: Any) -> dict[str, Any]:
    return job(name, len(devices), devices=devices, option=0, service=1000.0, done=1000.0, **more)


def decide(jobs: list[dict[str, Any]], now: float, memory: Any = None, **parameters: Any) -> Plan:
    snapshot = decode_snapshot({"cluster": CLUSTER, "now": now, "jobs": jobs, "memory": memory})
    return make_policy("dally-like", parameters).decide(snapshot)


def devices_of(plan: Plan, place: int) -> tuple[int, ...] | None:
    assert plan.assignments is not None
    return next((row.devices for row in plan.assignments if row.job == place), None)


CROWD = [held("a", [0, 1]), held("b", [4, 5]), held("c", [8, 9, 10]), held("d", [12, 13, 14])]  # 2, 2, 1 and 1 are free


def test_a_machine_is_taken_at_once_a_rack_after_one_wait_and_several_after_another() -> None:
    waits = {"wait": "manual", "machine": 100.0, "rack": 300.0}
    asks = [*CROWD, job("new", 4)]
    early = decide(asks, 50.0, **waits)
    assert devices_of(early, 4) is None
    assert early.valid_until == 100.0
    assert devices_of(decide(asks, 100.0, **waits), 4) == (2, 3, 6, 7)  # the rack that has just as many
    scattered = [*CROWD[:1], held("b", [4, 5, 6]), *CROWD[2:], job("new", 4)]
    later = decide(scattered, 100.0, **waits)
    assert devices_of(later, 4) is None
    assert later.valid_until == 300.0
    assert devices_of(decide(scattered, 300.0, **waits), 4) == (2, 3, 7, 11)  # most of them in one rack
    assert devices_of(decide([*CROWD, job("new", 2)], 0.0, **waits), 4) == (2, 3)


def test_a_gang_that_no_machine_can_hold_does_not_wait_for_one() -> None:
    assert devices_of(decide([job("new", 6)], 0.0, wait="consolidate"), 0) == (0, 1, 2, 3, 4, 5)
    assert devices_of(decide([job("wide", 12)], 0.0, wait="consolidate"), 0) is not None


def test_without_a_wait_anything_is_taken_and_with_endless_waits_only_the_best() -> None:
    scattered = [*CROWD[:1], held("b", [4, 5, 6]), *CROWD[2:], job("new", 4)]
    assert devices_of(decide(scattered, 0.0, wait="none"), 4) is not None
    assert devices_of(decide(scattered, 1e6, wait="consolidate"), 4) is None


def test_a_stopped_job_waits_anew() -> None:
    asks = [*CROWD, job("back", 4, service=500.0, done=500.0)]
    first = decide(asks, 5000.0, wait="manual", machine=100.0)
    assert devices_of(first, 4) is None
    assert first.valid_until == 5100.0
    assert devices_of(decide(asks, 5100.0, first.memory, wait="manual", machine=100.0), 4) is not None


def test_timers_are_the_mean_and_two_deviations_of_recent_waits() -> None:
    timers = Timers.of("tuned", 100.0, 300.0, stale=1000.0, now=5000.0, waits={})
    for wait in range(ENOUGH - 1):
        timers.note(4, IN_NODE, 10.0 * (wait % 2))
    assert timers.until(4, IN_NODE) == 100.0  # too few
    timers.note(5, IN_NODE, 10.0)  # of the same class: less than twice as many
    assert timers.until(4, IN_NODE) == pytest.approx(5.0 + 2 * 5.0)
    assert timers.until(8, IN_NODE) == 100.0
    assert timers.until(4, IN_RACK) == 300.0  # no rack has been got yet
    kept = Timers.of("tuned", 100.0, 300.0, stale=1000.0, now=5999.0, waits=timers.seen)
    assert kept.until(4, IN_NODE) == pytest.approx(15.0)
    forgotten = Timers.of("tuned", 100.0, 300.0, stale=1000.0, now=6001.0, waits=timers.seen)
    assert forgotten.until(4, IN_NODE) == 100.0
    assert forgotten.seen == {}


def test_a_rack_is_never_given_up_before_a_machine_is() -> None:
    timers = Timers.of("manual", 500.0, 200.0, stale=1000.0, now=0.0, waits={})
    assert timers.until(2, IN_RACK) == timers.until(2, IN_NODE) == 500.0


def test_a_starving_job_that_lost_to_the_network_stops_one_that_did_not() -> None:
    busy = [held("spared", list(range(8))), held("lucky", list(range(8, 16)))]
    hurt = job("hurt", 8, service=1000.0, done=400.0)
    plan = decide([*busy, hurt], 1e6, {"idle": {"2": 0.0}}, wait="none")
    assert devices_of(plan, 2) is not None
    assert [devices_of(plan, place) is None for place in (0, 1)].count(True) == 1
    proud = job("proud", 8, service=1000.0, done=950.0)
    kept = decide([*busy, proud], 1e6, {"idle": {"2": 0.0}}, wait="none")
    assert devices_of(kept, 2) is None  # it lost less than the margin


def test_a_gang_moves_to_a_better_tier_if_that_pays() -> None:
    steady = {"model": "resnet50", "rack_slowdown": 1.0, "network_slowdown": 1.0}
    trace = [
        job_row("block", 3, 1000.0, **steady),
        job_row("short", 3, 1000.0, at=1.0, **steady),
        job_row("wide", 2, 5000.0, at=2.0, model="vgg16", rack_slowdown=2.0, network_slowdown=2.0),
    ]
    policy = make_policy("dally-like", {"wait": "none"})
    run = simulate(trace, "2x4@2/rack", policy, performance="placement-tiers", costs="30")
    finish = by_job(run, "finish")
    assert run.summary["migrations"] == 1
    # until 1030 (a start takes 30 s) at half speed, then 30 s for the move, then at full speed
    assert finish["wide"] == pytest.approx(1030.0 + 30.0 + (5000.0 - (1030.0 - 32.0) / 2), abs=1.0)
    dear = simulate(trace, "2x4@2/rack", policy, performance="placement-tiers", costs="start=30,resume=9000,move=9000")
    assert dear.summary["migrations"] == 0


@given(st.lists(st.integers(0, 4), min_size=4, max_size=4), st.integers(1, 16), st.sampled_from([IN_NODE, IN_RACK, ACROSS]))
def test_seats_are_free_within_their_tier_and_found_whenever_there_are_any(free: list[int], gpus: int, tier: int) -> None:
    cluster = read_cluster(CLUSTER)
    left = {node: [4 * node + k for k in range(count)] for node, count in enumerate(free)}
    offers = Offers(left, cluster.node_rack.tolist(), 4, 8)
    chosen = offers.find(gpus, tier)
    most = {IN_NODE: max(free), IN_RACK: max(free[0] + free[1], free[2] + free[3]), ACROSS: sum(free)}[tier]
    assert (chosen is not None) == (gpus <= most)
    if chosen is not None:
        assert sum(chosen.values()) == gpus
        assert all(count <= free[node] for node, count in chosen.items())
        assert level_of(cluster, chosen) <= tier
        taken = offers.take(chosen)
        assert len(set(taken)) == gpus
        assert not set(taken) & {device for devices in offers.left.values() for device in devices}


def test_slowdowns_come_from_the_columns_of_a_trace() -> None:
    slow = {"model": "vgg16", "rack_slowdown": 1.5, "network_slowdown": 3.0}
    first, second = job_row("a", **slow), job_row("b", **slow)
    assert placement_tiers(Trace.from_records([first, second]), read_cluster("1x1")) == PlacementTiers({"vgg16": (1.0, 1.5, 3.0)})
    for rows, told in (
        ([first, second | {"rack_slowdown": 1.2}], "same slowdowns"),
        ([first | {"network_slowdown": 1.1}], "not below the first"),
        ([job_row("a", model="vgg16")], "'rack_slowdown' is missing"),
    ):
        with pytest.raises(TraceError, match=told):
            placement_tiers(Trace.from_records(rows), read_cluster("1x1"))


def test_a_slower_network_stretches_what_crosses_racks_only() -> None:
    fast, slow = (Trace.generate("dally", 1, jobs=50, gpus=64, load=1.0, slow=slow).frame for slow in (1.0, 3.0))
    heavy = fast["model"] != "resnet50"
    assert 0 < heavy.sum() < 50
    assert fast["rack_slowdown"].equals(slow["rack_slowdown"])
    excess = (slow["network_slowdown"].filter(heavy) - 1.0) / (fast["network_slowdown"].filter(heavy) - 1.0)
    assert excess.to_list() == pytest.approx([3.0] * len(excess))
    with pytest.raises(UsageError, match="part of the jobs"):
        Trace.generate("dally", 1, jobs=5, gpus=64, load=1.0, heavy=2)
