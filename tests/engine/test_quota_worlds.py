"""Quotas hold under every policy, beside windows and minimum runs, on both clocks: 5,000 small worlds, and six that once broke them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.quota_worlds import World, draw_world, run_world

from gantline.core.queues import parse_queues

WORLDS = 5_000
AT_EVERY_CHANGE = 200
PIECE = 50


def jobs(*lines: str) -> tuple[dict[str, Any], ...]:
    """Jobs written as job,arrival,gpus,duration,queue."""
    fields = [line.split(",") for text in lines for line in text.split()]
    return tuple(
        {"job": job, "arrival": float(arrival), "gpus": int(gpus), "duration": float(duration), "queue": queue}
        for job, arrival, gpus, duration, queue in fields
    )


def broken(seeds: range) -> list[str]:
    """What is wrong in these worlds, with what it takes to try again."""
    found = []
    for seed in seeds:
        world = draw_world(seed)
        found += [f"seed {seed}, {what}, in {world}" for what in run_world(world).breaches[:1]]
    return found


@pytest.mark.parametrize("first", range(0, AT_EVERY_CHANGE, PIECE))
def test_quotas_hold_in_small_worlds(first: int) -> None:
    assert not broken(range(first, first + PIECE))


@pytest.mark.long
@pytest.mark.parametrize("first", range(AT_EVERY_CHANGE, WORLDS, PIECE))
def test_quotas_hold_in_thousands_of_worlds(first: int) -> None:
    assert not broken(range(first, first + PIECE))


def test_borrowers_come_to_rest() -> None:
    """A gang that does not fit beside the others waits; nobody takes turns."""
    found = run_world(World(jobs("1,0,1,900,a 2,0,2,900,a 3,0,1,900,a 4,0,2,900,a"), "1x4", "fifo", "a=2:1", {"min_run": 5.0}))
    assert not found.breaches
    assert found.evictions <= 4


def test_a_running_gang_is_not_stopped_for_a_later_job_of_its_own_queue() -> None:
    later = (f"y{k},{10 + 20 * k},1,15,a" for k in range(60))
    found = run_world(World(jobs("x,0,2,100,a", *later), "1x4", "fifo", "a=1:1,b=3", {"costs": "resume=30"}))
    assert not found.breaches
    assert found.finish("x") == 100.0


def test_a_promise_is_kept_against_what_another_queue_holds_of_it() -> None:
    rows = jobs("b0,0,3,1000,b c0,10,1,1000,c c1,10,1,1000,c b1,10,2,1000,b a0,20,2,50,a")
    found = run_world(World(rows, "1x8", "fifo", "a=5,b=2:inf,c=1:1"))
    assert not found.breaches
    assert found.first_start("a0") == 20.0


def test_a_limit_holds_beside_a_minimum_run() -> None:
    rows = jobs("j0,0,2,300,p j1,60,2,200,p j2,60,1,200,q j3,60,2,200,p j4,80,1,100,q j5,140,3,300,q j6,160,2,300,q")
    assert not run_world(World(rows, "2x4", "las", "p=4:0,q=5:0", {"min_run": 60.0})).breaches


@pytest.mark.parametrize("policy", ["afs", "sia", "themis"])
@pytest.mark.parametrize("length", [100, 300])
def test_promises_are_kept_under_policies_that_assign(policy: str, length: int) -> None:
    early = [f"a{k},{5 * k},1,{2 * length},a" for k in range(4)]
    late = [f"b{k},{60 + 20 * k},1,{length},b" for k in range(3)]
    sized = tuple({**job, "min_gpus": 1, "max_gpus": 3} for job in jobs(*early, *late))
    found = run_world(World(sized, "1x4", policy, "a=2:inf,b=2:inf", {"round": 30.0}))
    assert not found.breaches
    assert found.first_start("b0") == 60.0


def test_a_queue_borrows_only_where_that_is_said() -> None:
    assert parse_queues("q=2")["q"].borrow == 0.0
    rows = jobs("q0,0,1,100,q q1,0,1,100,q q2,0,1,100,q")
    found = run_world(World(rows, "1x4", "fifo", "q=2"))
    assert not found.breaches
    assert found.first_start("q2") == 100.0
