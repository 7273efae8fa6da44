"""Who bids, who wins, how long, and what becomes of the rest."""

from __future__ import annotations

from typing import Any

import pytest
from tests.jobs import job_row
from tests.probes.scenario import fact, spans

from gantline import simulate
from gantline.core.errors import UsageError
from gantline.core.snapshot_json import decode_snapshot
from gantline.models.placement_speeds import PlacementTiers
from gantline.policies.registry import make_policy


def job(name: str, gpus: int = 2, estimate: float = 3600.0, **more: Any) -> dict[str, Any]:
    return {"id": name, "gpus": gpus, "estimate": estimate, "arrival": 0.0} | more


def given(
    *jobs: dict[str, Any], cluster: str = "1x4", now: float = 600.0, seed: int = 0, memory: Any = None, **settings: Any
) -> dict[str, list[int]]:
    """Devices per job after one auction."""
    snapshot = decode_snapshot({"cluster": cluster, "now": now, "seed": seed, "jobs": list(jobs), "memory": memory})
    plan = make_policy("themis", settings).decide(snapshot)
    return {snapshot.jobs.ids[item.job]: list(item.devices) for item in plan.assignments or ()}


def test_the_worst_off_wins_what_only_one_can_have() -> None:
    """Both want the whole node. 'long' has waited long for its length only in seconds, 'short' in proportion."""
    jobs = [job("long", 4, 36000.0), job("short", 4, 600.0)]
    assert list(given(*jobs, f=1.0)) == ["short"]
    assert list(given(*jobs, job("late", 4, 6000.0, arrival=599.0), f=1.0)) == ["short"]
    assert list(given(*jobs, job("tiny", 4, 60.0, arrival=599.0), f=1.0)) == ["tiny"]  # a lease of waiting would be ten times its length


def test_a_bid_takes_one_machine_where_others_would_be_slower() -> None:
    cluster = "2x4"
    held = job("there", 2, devices=[0, 1])
    found = given(held, job("new", 3), cluster=cluster)
    assert {device // 4 for device in found["new"]} == {1}
    assert found["there"] == [0, 1]


def test_no_more_than_so_many_bid() -> None:
    jobs = [job(f"j{k}", 2, 600.0 * (1 + k)) for k in range(6)]
    assert given(*jobs, f=0.0, most_bidders=1) == given(*jobs, f=1.0)


def test_leftovers_go_to_all_who_fit_so_that_nothing_idles() -> None:
    found = given(*[job(f"j{k}", 1) for k in range(9)], cluster="2x4", f=1.0)
    assert sorted(device for devices in found.values() for device in devices) == list(range(8))


def test_leftovers_are_drawn_by_lot() -> None:
    jobs = [job(f"j{k}", 1) for k in range(6)]
    assert len({tuple(given(*jobs, cluster="1x2", f=1.0, seed=seed)) for seed in range(8)}) > 1
    assert given(*jobs, cluster="1x2", seed=3) == given(*jobs, cluster="1x2", seed=3)


def test_a_job_of_any_size_grows_on_its_machine_when_nobody_wins_it() -> None:
    assert len(given(job("wide", 2, min_gpus=1, max_gpus=4))["wide"]) == 4
    assert len(given(job("wide", 2, min_gpus=1, max_gpus=3))["wide"]) == 3


@pytest.mark.parametrize(
    ("first", "second", "wider"),
    [
        (job("early"), job("late", arrival=550.0), "early"),
        (job("long", estimate=36000.0), job("short", estimate=600.0, arrival=300.0), "short"),
    ],
)
def test_of_jobs_that_could_grow_the_worst_off_does(first: dict[str, Any], second: dict[str, Any], wider: str) -> None:
    """Within their leases two devices come free beside two jobs: the one that waited longer for its length takes both."""
    jobs = [one | {"gpus": 1, "min_gpus": 1, "max_gpus": 3, "devices": [k]} for k, one in enumerate((first, second))]
    found = given(*jobs, memory={"given": {"0": [0], "1": [1]}, "epoch": 0, "auctions": 1})
    assert {name for name, devices in found.items() if len(devices) == 3} == {wider}


def test_leases_end_together_and_are_renewed_in_place() -> None:
    run = simulate([job_row("a", 2, 5000)], "1x4", "themis", costs="30")
    assert len(spans(run, "a")) == 1
    assert fact(run, "a", "restarts") == 0
    assert run.summary["decisions"] >= 4  # at 1200, 2400, 3600 and 4800


def test_two_who_want_the_same_node_take_turns_at_leases() -> None:
    jobs = [job_row(name, 4, 4000) for name in ("a", "b")]
    run = simulate(jobs, "1x4", "themis", settings={"lease": 600, "payment": "none"})
    both = sorted([*spans(run, "a"), *spans(run, "b")])
    assert all(round(start) % 600 == 0 or start == both[-1][0] for start, *_ in both)
    ends = [spans(run, name)[-1][1] for name in ("a", "b")]
    assert max(ends) == 8000
    assert min(ends) > 6000  # neither waits for the other to end


def test_jobs_of_one_app_share_its_part() -> None:
    """Two apps with equal parts: four jobs of one do not count four times."""
    many = [job(f"m{k}", 1, app="many") for k in range(4)]
    jobs = [*many, job("one", 1, app="one")]
    snapshot = decode_snapshot({"cluster": "1x4", "now": 600.0, "jobs": jobs})
    memory = make_policy("themis").decide(snapshot).memory
    stood = memory["standing"]
    speeds = [stood["speed"][stood["row"].tolist().index(row)] for row in snapshot.jobs.rows]
    assert speeds == pytest.approx([0.5, 0.5, 0.5, 0.5, 1.0])


def test_a_slower_tier_lowers_the_bid_for_it() -> None:
    tiers = PlacementTiers({"vgg": (1.0, 2.0, 4.0)})
    jobs = [job_row("a", 4, 1000, model="vgg")]
    assert simulate(jobs, "gpu:2x2@r1", "themis", performance=tiers).summary["average_jct"] == 2000
    assert simulate(jobs, "gpu:1x2@r1,gpu:1x2@r2", "themis", performance=tiers).summary["average_jct"] == 4000
    assert simulate(jobs, "gpu:2x2@r1,gpu:2x2@r2", "themis", performance=tiers).summary["average_jct"] == 2000
    assert simulate(jobs, "gpu:2x2@r1,gpu:1x4@r2", "themis", performance=tiers).summary["average_jct"] == 1000


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"f": 1.5}, "'f' is 1.5"),
        ({"lease": 0.0}, "'lease' is 0"),
        ({"most_bidders": 0}, "most_bidders"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_policy("themis", settings)


@pytest.mark.parametrize("tiers", [(1.0, 2.0), (1.0, 0.9, 2.0), (0.5, 1.0, 2.0), (1.0, float("nan"), 2.0)])
def test_slowdowns_that_make_no_sense_are_refused(tiers: Any) -> None:
    with pytest.raises(UsageError, match="slowdowns of 'vgg'"):
        PlacementTiers({"vgg": tiers})
