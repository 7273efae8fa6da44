"""AFS and equal share: who gets how many devices, and growth that does not pay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.jobs import by_job, job_row
from tests.systems.voda.test_sharing import curves_of

from gantline import simulate
from gantline.core.errors import GantlineError
from gantline.core.snapshot_json import decode_snapshot
from gantline.policies.elastic.policies import equal_sizes
from gantline.policies.elastic.pools import plan_of, pools
from gantline.policies.registry import make_policy
from gantline.simulator.roll_forward import carry_out


def instant(*jobs: dict[str, Any], gpus: int = 4) -> Any:
    return decode_snapshot({"cluster": f"gpu:1x{gpus}", "now": 1000.0, "jobs": list(jobs)})


def job(name: str, estimate: float, speeds: tuple[float, ...], **more: Any) -> dict[str, Any]:
    options = [{"gpus": k + 1, "rate": speed} for k, speed in enumerate(speeds)]
    return {"id": name, "estimate": estimate, "gpus": 1, "max_gpus": len(speeds), "options": options} | more


def sizes(snapshot: Any, name: str, **settings: Any) -> dict[str, int]:
    plan = make_policy(name, settings).decide(snapshot)
    return dict.fromkeys(snapshot.jobs.ids, 0) | {snapshot.jobs.ids[item.job]: item.gpus for item in plan.assignments or ()}


def test_a_plan_is_carried_out_as_voda_does_halt_scale_in_start_scale_out() -> None:
    """Four devices: one job is halted, one gives two up, one starts and one grows; the plan lists them in an order that always fits."""
    speeds = (1.0, 2.0, 3.0)
    held = [job("halted", 10, speeds, devices=[0]), job("grows", 10, speeds, devices=[1]), job("shrinks", 10, speeds, devices=[2, 3, 4])]
    snapshot = instant(*held, job("starts", 10, speeds, arrival=900.0), gpus=5)
    (pool,) = pools(snapshot)
    plan = plan_of(snapshot, [(pool, np.array([0, 3, 1, 1]))])
    assert [snapshot.jobs.ids[item.job] for item in plan.assignments or ()] == ["shrinks", "starts", "grows"]
    after = {one.job: len(one.devices) for one in carry_out(snapshot, plan)}
    assert after == {"halted": 0, "grows": 3, "shrinks": 1, "starts": 1}


def test_everybody_gets_as_much_as_everybody_else() -> None:
    linear = {g: float(g) for g in range(1, 9)}
    assert equal_sizes(curves_of(linear, linear, {1: 1.0}), 9).tolist() == [4, 4, 1]
    assert equal_sizes(curves_of(linear, linear, linear), 8).tolist() == [3, 3, 2]
    assert equal_sizes(curves_of({4: 1.0, 8: 2.0}, linear, linear), 5).tolist() == [4, 1, 0]
    assert equal_sizes(curves_of({1: 1.0, 4: 2.0}, {1: 1.0, 4: 2.0}), 6).tolist() == [4, 1]


def test_afs_prefers_the_short_job_until_the_other_gains_more() -> None:
    """Both scale well: the short one is served first; where it stops gaining, the long one takes over."""
    short, long = job("short", 100, (1, 1.9, 2.7, 3.4)), job("long", 1000, (1, 1.9, 2.7, 3.4))
    assert sizes(instant(short, long), "afs") == {"short": 2, "long": 2}
    flat = job("flat", 100, (1, 1.05, 1.1, 1.15))
    assert sizes(instant(flat, long), "afs") == {"flat": 1, "long": 3}


def test_unknown_lengths_take_who_ran_least_as_shortest() -> None:
    old = job("old", 10, (1, 1.9), service=500.0)
    new = job("new", 9000, (1, 1.9), arrival=900.0)
    assert sizes(instant(old, new, gpus=1), "afs") == {"old": 1, "new": 0}
    assert sizes(instant(old, new, gpus=1), "afs", lengths="unknown") == {"old": 0, "new": 1}


@pytest.mark.parametrize("name", ["afs", "equal-share"])
def test_growth_that_saves_less_than_it_costs_is_left_out(name: str) -> None:
    """Ten seconds of work are left on one GPU: a second one saves 4.7 s."""
    running = job("a", 10, (1, 1.9), devices=[0], service=0.0)
    assert sizes(instant(running), name) == {"a": 2}
    assert sizes(instant(running), name, resize_cost=4.0) == {"a": 2}
    assert sizes(instant(running), name, resize_cost=5.0) == {"a": 1}


def test_a_plan_for_nobody_can_be_carried_out() -> None:
    empty = instant()
    assert carry_out(empty, make_policy("afs").decide(empty)) == []


def test_a_cost_below_zero_is_refused() -> None:
    with pytest.raises(GantlineError, match="resize_cost"):
        make_policy("equal-share", {"resize_cost": -1.0})


# --- when, and in which order -------------------------------------------------------------------------------------------
def wide(name: str, arrival: float, duration: float = 1000.0) -> dict[str, Any]:
    return job_row(name, 1, duration, at=arrival, min_gpus=1, max_gpus=4)


@pytest.mark.parametrize("name", ["afs", "equal-share", "ffdl", "voda.elastic_fifo", "voda.elastic_tiresias"])
def test_a_rate_limit_gathers_what_happens_into_one_answer(name: str) -> None:
    """Two arrive within half a minute of the first: both wait, and one sharing out serves them."""
    jobs = [wide("a", 0.0), wide("b", 10.0), wide("c", 20.0)]
    starts = by_job(simulate(jobs, "gpu:1x4", name, settings={"rate_limit": 30.0}), "first_start")
    assert starts == {"a": 0.0, "b": 30.0, "c": 30.0}
    limited, free = (simulate(jobs, "gpu:1x4", name, settings={"rate_limit": limit}).summary["resizes"] for limit in (30.0, 0.0))
    assert limited < free


def test_devices_that_were_lost_are_shared_out_without_delay() -> None:
    from gantline.core.inputs import NodeEvent

    jobs = [wide("a", 0.0), wide("b", 0.0)]
    down = [NodeEvent(10.0, "node1", "down")]
    run = simulate(jobs, "gpu:2x2", "equal-share", settings={"rate_limit": 600.0}, node_events=down)
    assert run.allocations.filter(run.allocations["start"] == 10.0)["gpus"].to_list() == [1, 1]
