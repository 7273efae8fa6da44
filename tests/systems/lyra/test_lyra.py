"""Lyra: the knapsack and the reclaim against brute force, loans that are kept to, and whole runs."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.jobs import held_by, job_row

from gantline import simulate
from gantline.core.errors import UsageError
from gantline.core.inputs import NodeEvent
from gantline.policies.registry import make_policy
from gantline.systems.lyra.policies.placement import place_jobs
from gantline.systems.lyra.policies.policy import DayAndNight, DevicesByServer, Schedule, best_extras, cheapest, fewest_jobs

TWO_POOLS = "gpu:1x4,gpu:3x4@inference"


@dataclass(frozen=True)
class Reclaimed:
    """Servers that go back, jobs that are stopped for it, and jobs that shrink."""

    servers: tuple[int, ...]
    stopped: tuple[int, ...]
    shrunk: tuple[int, ...]


def consequences(placed: DevicesByServer, least: Mapping[int, int], servers: Sequence[int]) -> Reclaimed:
    """The jobs that are stopped and those that shrink when these servers go."""
    gone = set(servers)
    stopped: list[int] = []
    shrunk: list[int] = []
    for job, held in placed.items():
        stays = sum(devices for server, devices in held.items() if server not in gone)
        if stays < sum(held.values()):
            (shrunk if stays >= least[job] else stopped).append(job)
    return Reclaimed(tuple(servers), tuple(stopped), tuple(shrunk))


# --- knapsack -----------------------------------------------------------------------------------------------------------
@given(st.lists(st.lists(st.integers(-3, 9), min_size=1, max_size=4), min_size=1, max_size=4), st.integers(0, 9))
def test_extra_workers_are_worth_as_much_as_they_can_be(values: list[list[int]], capacity: int) -> None:
    first = np.cumsum([0, *map(len, values)])
    extra = np.concatenate([np.arange(1, len(each) + 1) for each in values])
    extras = best_extras(first, extra, np.array([one for each in values for one in each], dtype=np.float64), capacity)
    worth = [[0.0, *each] for each in values]
    picks = itertools.product(*(range(len(each)) for each in worth))
    best = max(sum(worth[j][k] for j, k in enumerate(pick)) for pick in picks if sum(pick) <= capacity)
    assert extras.sum() <= capacity
    assert sum(worth[j][k] for j, k in enumerate(extras.tolist())) == pytest.approx(best)


@pytest.mark.parametrize("sizes", [(1, 2), (2, 4)])
def test_of_equal_worth_extra_workers_go_to_the_earlier_job(sizes: tuple[int, int]) -> None:
    """Steps of one worker are dealt out by gain, others by the dynamic program: the tie falls the same way."""
    extra, worth = np.array(sizes * 3), np.array([10.0, 15.0] * 3)
    assert best_extras(np.array([0, 2, 4, 6]), extra, worth, 4 * sizes[0]).tolist() == [sizes[1], sizes[0], sizes[0]]


# --- seats --------------------------------------------------------------------------------------------------------------
def drawn_seats(seed: int) -> list[list[int]]:
    """Six jobs hold some devices and are to have others: as many, more, fewer, none; a server and some devices are out of bounds."""
    draw = np.random.default_rng(seed)
    nodes = np.repeat(np.arange(9), draw.integers(1, 9, 9))
    lent, gone = draw.random(9) < 0.4, draw.choice(len(nodes), 4, replace=False)
    open_ = nodes < 8
    open_[gone] = False
    deck = draw.permutation(np.flatnonzero(open_))
    held = [sorted(part.tolist()) for part in np.split(deck, np.sort(draw.integers(0, len(deck) + 1, 7)))[:6]]
    base = draw.integers(1, 5, 6)
    size = np.where(draw.random(6) < 0.8, base + draw.integers(0, 5, 6), 0)
    while size.sum() > open_.sum():
        size[size.argmax()] = 0
    found = place_jobs(nodes, lent, open_, held, base, size)
    assert [len(placed) for placed in found] == size.tolist()
    return found


def test_seats_are_those_of_a_search_through_all_servers_one_job_after_the_other() -> None:
    """As such a search found them: a hash over all that was drawn."""
    assert hashlib.blake2b(repr([drawn_seats(seed) for seed in range(20)]).encode(), digest_size=6).hexdigest() == "562eb37da259"


# --- reclaim ------------------------------------------------------------------------------------------------------------
def test_a_smaller_job_keeps_its_own_servers_before_those_on_loan_and_fuller_ones_before_others() -> None:
    nodes, held, two = np.array([0, 0, 1, 1, 1, 2]), [[0, 2, 3, 4, 5]], np.array([2])
    everything = np.ones(6, dtype=np.bool_)
    assert place_jobs(nodes, np.array([False, True, False]), everything, held, two, two) == [[0, 5]]
    assert place_jobs(nodes, np.zeros(3, dtype=np.bool_), everything, held, two, two) == [[2, 3]]


def test_the_two_servers_of_one_job_go_back() -> None:
    placed = {0: {0: 8}, 1: {1: 8}, 2: {2: 8, 3: 8}}
    least = {0: 8, 1: 8, 2: 16}
    assert sorted(cheapest(placed, least, [0, 1, 2, 3], 2)) == [2, 3]
    assert consequences(placed, least, [2, 3]).stopped == (2,)


def test_of_servers_that_cost_the_same_the_emptiest_goes_back_then_the_first() -> None:
    placed = {0: {1: 4}, 1: {2: 2}, 2: {3: 2}}
    assert cheapest(placed, {0: 4, 1: 2, 2: 2}, [1, 2, 3], 2) == [2, 3]
    assert cheapest(placed, {0: 4, 1: 2, 2: 2}, [1, 2, 3, 4], 1) == [4]
    assert fewest_jobs(placed, [1, 2, 3], 1) == [1]


def test_of_equally_short_jobs_the_earlier_starts_and_loans_begin_with_the_first_server() -> None:
    jobs = [{"job": name, "arrival": 0.0, "gpus": 4, "duration": 100.0} for name in ("x", "b", "a")]
    run = simulate(jobs, TWO_POOLS, "lyra", settings={"loans": "0:1"})
    first = run.allocations.filter(pl.col("start") == 0.0)
    assert dict(zip(first["job"].to_list(), first["nodes"].to_list())) == {"x": [0], "b": [1]}


def test_servers_with_extra_workers_only_cost_nothing() -> None:
    placed = {0: {0: 8, 1: 8}, 1: {2: 2}}
    assert cheapest(placed, {0: 8, 1: 2}, [0, 1, 2], 1) == [0]
    assert consequences(placed, {0: 8, 1: 2}, [0]).shrunk == (0,)
    assert cheapest(placed, {0: 8, 1: 2}, [0, 1, 2], 2) == [0, 2]  # then one job either way: the one with fewer devices there


some_placed = st.dictionaries(st.integers(0, 5), st.dictionaries(st.integers(0, 4), st.integers(1, 4), min_size=1, max_size=3), max_size=6)


@given(some_placed, st.integers(1, 4), st.integers(0, 3))
def test_no_choice_stops_fewer_than_the_exact_one_and_the_cheapest_is_near_it(
    placed: dict[int, dict[int, int]], count: int, spare: int
) -> None:
    least = {job: max(sum(held.values()) - spare, 1) for job, held in placed.items()}
    servers = list(range(5))
    exact = min(len(consequences(placed, least, pick).stopped) for pick in itertools.combinations(servers, count))
    found = len(consequences(placed, least, cheapest(placed, least, servers, count)).stopped)
    assert exact <= found <= exact + 2


# --- loans --------------------------------------------------------------------------------------------------------------
def test_the_inference_cluster_needs_most_at_its_peak() -> None:
    calm = DayAndNight(0.3, 0.9, peak=43_200.0, noise=0.0)
    assert calm.load(43_200.0) == pytest.approx(0.9)
    assert calm.load(0.0) == pytest.approx(0.3)
    assert calm.spare(0.0, 10) == 7
    then = calm.next_change(0.0, 10)
    assert calm.spare(then, 10) != 7
    assert all(calm.spare(t, 10) == 7 for t in np.arange(0.0, then, 300.0))


def test_a_schedule_is_read_in_order() -> None:
    plan = Schedule.parse("0:4,2h:0,20h:8")
    assert [plan.spare(t, 6) for t in (0.0, 7199.0, 7200.0, 72_000.0)] == [4, 4, 0, 6]
    assert plan.next_change(0.0, 6) == 7200.0
    for wrong in ("4", "0:x", "2h:1,1h:2", "0:1,0:2"):
        with pytest.raises(UsageError, match="loan"):
            make_policy("lyra", {"loans": wrong})


# --- runs ---------------------------------------------------------------------------------------------------------------


def spans(run: Any, name: str) -> list[tuple[float, float, list[int], str]]:
    return held_by(run, name).select("start", "end", "devices", "reason").rows()


def test_the_shortest_start_first_and_only_on_servers_that_are_on_loan() -> None:
    jobs = [job_row("long", 4, 900), job_row("short", 4), job_row("mid", 4, 500)]
    run = simulate(jobs, TWO_POOLS, "lyra", settings={"loans": "0:1"})
    assert [spans(run, name)[0][:3] for name in ("short", "mid", "long")] == [
        (0.0, 100.0, [0, 1, 2, 3]),  # base workers go to own servers first
        (0.0, 500.0, [4, 5, 6, 7]),
        (100.0, 1000.0, [0, 1, 2, 3]),
    ]


def test_extra_workers_go_to_servers_on_loan_and_leave_with_them() -> None:
    run = simulate([job_row("a", 4, 1000, max_gpus=8)], TWO_POOLS, "lyra", settings={"loans": "0:1,100:0"})
    assert spans(run, "a") == [(0.0, 100.0, [0, 1, 2, 3, 4, 5, 6, 7], "resized"), (100.0, 900.0, [0, 1, 2, 3], "finished")]
    assert run.summary["preemptions"] == 0


def test_a_base_on_loan_is_stopped_when_its_server_is_called_back_and_keeps_its_progress() -> None:
    jobs = [job_row("own", 4, 1000), job_row("guest", 4, 1500)]
    run = simulate(jobs, TWO_POOLS, "lyra", settings={"loans": "0:1,600:0"})
    assert [span[3] for span in spans(run, "guest")] == ["preempted", "finished"]
    assert spans(run, "guest")[1][:2] == (1000.0, 1900.0)


def test_extra_workers_on_own_servers_make_room_for_a_newcomers_base() -> None:
    jobs = [job_row("wide", 2, 1000, max_gpus=4), {**job_row("new", 2), "arrival": 50.0}]
    run = simulate(jobs, "gpu:1x4,gpu:1x4@inference", "lyra", settings={"loans": "40:1"})
    assert spans(run, "new")[0][2] == [2, 3]
    assert max(spans(run, "wide")[1][2]) >= 4  # its extra workers moved to the server on loan


def test_a_lender_that_nobody_has_lends_nothing_and_lost_servers_are_not_used() -> None:
    run = simulate([job_row("a", 4)], "gpu:2x4", "lyra")
    assert run.summary["completed"] == 1
    down = [NodeEvent(50.0, "node1", "down")]
    lost = simulate([job_row("a", 4, 1000), job_row("b", 4, 1000)], TWO_POOLS, "lyra", settings={"loans": "0:2"}, node_events=down)
    assert lost.summary["completed"] == 2
    assert not [span for span in spans(lost, "b") if span[0] >= 50.0 and set(span[2]) & {4, 5, 6, 7}]


@pytest.mark.parametrize("wrong", [{"low": 0.9, "high": 0.1}, {"noise": -1.0}, {"resize_cost": -1.0}])
def test_a_wrong_setting_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        make_policy("lyra", wrong)
