"""Gandiva: its time slicing on the engine, and homes by affinity, turns per server, packing, migration and growth one by one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.jobs import job_row as job

from gantline import simulate
from gantline.core.errors import GantlineError
from gantline.policies.registry import make_policy
from gantline.simulator.run import Run
from gantline.systems.gandiva.policies.homes import Homes, Packing, against_fragments, for_locality
from gantline.traces.generators import generate

OFF = {"packing": False, "migration": False, "growth": False}


def run(*jobs: dict[str, Any], cluster: str = "2x4", options: dict[str, Any] | None = None, **settings: Any) -> Run:
    return simulate(list(jobs), cluster, "gandiva.introspective", settings=OFF | settings, performance="utilisation", **options or {})


def spells(found: Run, name: str) -> list[tuple[float, float, list[int], str]]:
    rows = found.allocations.sort("start").select("job", "start", "end", "devices", "reason").rows()
    return [(start, end, devices, why) for who, start, end, devices, why in rows if who == name]


def homes(gpus: list[int], *jobs: tuple[int, dict[int, int]]) -> Homes:
    """Jobs of a size, and where they live."""
    found = Homes(gpus, lambda job: range(len(gpus)))
    for number, (size, gpus_by_server) in enumerate(jobs):
        found.move_in(number, size, gpus_by_server)
    return found


@pytest.mark.parametrize(
    ("there", "size", "goal"),
    [
        ([(2, {0: 2}), (1, {1: 1})], 1, {1: 1}),  # jobs of its size
        ([(2, {0: 2})], 1, {1: 1}),  # an empty server
        ([(2, {0: 2}), (4, {1: 4})], 1, {0: 1}),  # any with room
        ([(3, {0: 3}), (3, {1: 3})], 2, {0: 1, 1: 1}),  # spread
        ([(4, {0: 4}), (2, {1: 2}), (2, {1: 2})], 2, {1: 2}),  # turns with its like
        ([(4, {0: 4}), (4, {1: 4})], 2, None),  # no jobs of its size: it waits
        ([], 8, {0: 4, 1: 4}),  # whole servers
        ([(1, {0: 1})], 8, None),
    ],
)
def test_a_new_job_finds_its_home_by_affinity(there: list[tuple[int, dict[int, int]]], size: int, goal: dict[int, int] | None) -> None:
    assert homes([4, 4], *there).choose(size, range(2)) == goal


def test_the_jobs_of_one_server_take_turns_and_others_are_not_disturbed() -> None:
    found = run(job("whole", 4, 300.0), *(job(f"half{k}", 2, 120.0) for k in range(3)), options={"costs": "start=10,resume=30,switch=1"})

    assert spells(found, "whole") == [(0.0, 310.0, [0, 1, 2, 3], "finished")]
    assert found.jobs["preemptions"].to_list() == [0, 0, 0, 0]
    assert [why for _, _, _, why in spells(found, "half1")] == ["turn", "finished"]


def test_a_pair_that_pays_stays_and_one_that_does_not_is_undone() -> None:
    idle, busy = ([job(f"j{k}", 1, 600.0, gpu_util=used) for k in range(2)] for used in (0.4, 1.0))

    paid = run(*idle, cluster="1x1", packing=True)
    undone = run(*busy, cluster="1x1", packing=True)

    # a turn each, then both at once at full speed
    assert paid.jobs["finish"].to_list() == [660.0, 660.0]
    # the trial from 120 to 180 s did nine tenths of a slice
    assert max(undone.jobs["finish"]) == pytest.approx(1206.0)


def test_a_pair_that_loses_its_turn_waits_for_the_next_and_is_not_preempted() -> None:
    jobs = [job(f"j{k}", 1, 600.0, gpu_util=0.4) for k in range(4)]

    found = run(*jobs, cluster="1x1", packing=True, options={"costs": "start=10,resume=30,switch=1"})

    assert found.jobs["preemptions"].to_list() == [0, 0, 0, 0]
    assert {why for name in ("j0", "j3") for _, _, _, why in spells(found, name)} == {"turn", "finished"}
    assert max(found.jobs["restarts"]) > 5


def test_a_pair_is_judged_by_its_speeds_alone_and_not_tried_again() -> None:
    packing = Packing({(1, 2): 0.0, (3, 4): 0.0, (5, 6): 50.0}, set(), dict.fromkeys(range(1, 7), 2.0))

    packing.judge({row: 1.0 if row < 3 else 1.2 for row in range(1, 7)}, now=60.0, trial=60.0)

    assert (set(packing.since), packing.refused) == ({(3, 4), (5, 6)}, {(1, 2)})
    packing.try_one([2], [1], 60.0)
    assert (1, 2) not in packing.since


def test_a_spread_gang_moves_together_when_a_server_has_room() -> None:
    jobs = [job("short", 3, 400.0), job("long", 3, 3000.0), job("spread", 2, 1000.0, at=10.0, spread_slowdown=2.0)]

    stays, moves = run(*jobs), run(*jobs, migration=True)

    assert [len(devices) for _, _, devices, _ in spells(moves, "spread")] == [2, 2]
    assert spells(stays, "spread")[0][1] == pytest.approx(2010.0)
    assert spells(moves, "spread")[-1][1] == pytest.approx(10.0 + 390.0 + (1000.0 - 195.0), abs=61.0)


def test_migration_moves_to_the_fullest_server_and_from_the_emptiest() -> None:
    spread = homes([4, 4, 4], (2, {0: 1, 1: 1}), (3, {0: 3}), (1, {1: 1}))
    assert for_locality(spread)
    assert spread.of_job[0] == {1: 2}

    small = homes([4, 4, 4], (1, {0: 1}), (3, {1: 3}), (2, {2: 2}))
    against_fragments(small)
    moved = dict(small.of_job)
    assert moved[0] == {1: 1}
    against_fragments(small)
    assert small.of_job == moved  # the one server with room left is no fuller than itself


def test_a_job_grows_into_gpus_that_were_idle_and_shrinks_for_a_newcomer() -> None:
    options = "gpu:1=1000|gpu:2=500|gpu:4=250"
    elastic = job("grows", 1, 1000.0, min_gpus=1, max_gpus=4, options=options)

    found = run(elastic, job("new", at=200.0), cluster="1x4", growth=True, idle=60.0)

    sizes = [(start, len(devices)) for start, _, devices, _ in spells(found, "grows")]
    assert sizes[:3] == [(0.0, 1), (60.0, 4), (200.0, 2)]
    assert spells(found, "new")[0][0] == 200.0


@pytest.mark.parametrize("part", ["mix", "fragments", "growth"])
def test_both_clocks_agree_with_every_mechanism(part: str) -> None:
    count = 6
    jobs, cluster = generate("gandiva", seed=1, part=part, jobs=count), {"mix": "1x4", "fragments": "8x4", "growth": "2x4"}[part]
    costs = "start=10,resume=30,move=5,switch=1"
    found = [
        simulate(jobs, cluster, "gandiva.introspective", performance="utilisation", costs=costs, executor=executor)
        for executor in ("instant", "acknowledged")
    ]

    assert found[0].jobs.equals(found[1].jobs)
    assert found[0].summary["completed"] == count


def test_a_part_that_there_is_not_is_refused() -> None:
    with pytest.raises(GantlineError, match=r"no part 'mixed'.*'mix'"):
        generate("gandiva", part="mixed")


# Gandiva's time slicing on the engine: turns, nobody cut short, nobody left out.


def test_the_first_turn_of_a_job_that_starts_within_a_slice_is_the_rest_of_it() -> None:
    jobs = [job(name, 1, length, at=at) for name, at, length in (("a", 0, 50), ("b", 30, 200), ("c", 40, 200))]
    spells = simulate(jobs, "1x1", "gandiva").allocations.select("job", "start", "end").rows()
    assert spells[:4] == [("a", 0.0, 50.0), ("b", 50.0, 60.0), ("c", 60.0, 120.0), ("b", 120.0, 180.0)]


def test_three_jobs_take_turns_on_one_device() -> None:
    jobs = [job(name, 1, 120) for name in "abc"]
    run = simulate(jobs, "gpu:1x1", "gandiva")
    turns = run.allocations.sort("start").select("job", "start", "end").rows()
    assert turns == [("a", 0, 60), ("b", 60, 120), ("c", 120, 180), ("a", 180, 240), ("b", 240, 300), ("c", 300, 360)]


def test_a_newcomer_waits_for_its_turn_and_nobody_is_preempted_alone() -> None:
    jobs = [job("a", 1, 200), job("b", 1, 50, at=70)]
    run = simulate(jobs, "gpu:1x1", "gandiva")
    turns = run.allocations.sort("start").select("job", "start", "end").rows()
    assert turns == [("a", 0, 120), ("b", 120, 170), ("a", 170, 250)]


def test_a_slice_of_nothing_is_refused() -> None:
    with pytest.raises(GantlineError, match=r"'slice' is 0\.0"):
        make_policy("gandiva", {"slice": "0"})
