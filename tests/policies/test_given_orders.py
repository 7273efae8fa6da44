"""Orders of another run, given again: what then differs are times."""

from __future__ import annotations

import pytest

from gantline import simulate
from gantline.policies.recorded import GivenOrder, GivenOrders


def _ends(durations: list[float], *orders: GivenOrder) -> list[float]:
    rows = [{"job": str(k), "arrival": 0.0, "gpus": 1, "duration": seconds} for k, seconds in enumerate(durations)]
    found: list[float] = simulate(rows, "1x2", GivenOrders.of(orders)).jobs.sort("job")["finish"].to_list()
    return found


def test_jobs_start_and_stop_when_it_was_ordered_and_the_last_start_lasts() -> None:
    orders = [GivenOrder(0.0, "0", (0,)), GivenOrder(4.0, "0"), GivenOrder(4.0, "1", (0,)), GivenOrder(9.0, "0", (1,))]
    assert _ends([10.0, 20.0], *orders) == pytest.approx([15.0, 24.0])  # four seconds, then six on another device


def test_a_start_waits_for_a_gang_that_takes_longer_than_it_did_then() -> None:
    orders = [GivenOrder(0.0, "0", (0,)), GivenOrder(10.0, "1", (0,))]
    assert _ends([8.0, 5.0], *orders) == pytest.approx([8.0, 15.0])  # not earlier than it was ordered
    assert _ends([12.0, 5.0], *orders) == pytest.approx([12.0, 17.0])


def test_a_stop_of_a_job_that_has_ended_by_then_changes_nothing() -> None:
    orders = [GivenOrder(0.0, "0", (0,)), GivenOrder(6.0, "0"), GivenOrder(6.0, "1", (0,)), GivenOrder(9.0, "0", (1,))]
    assert _ends([5.0, 4.0], *orders) == pytest.approx([5.0, 10.0])


def test_a_job_that_ended_while_it_was_asked_to_stop_runs_to_its_end() -> None:
    assert _ends([10.0], GivenOrder(0.0, "0", (0,)), GivenOrder(9.5, "0")) == pytest.approx([10.0])


def test_the_last_turn_is_known_of_jobs_that_had_several() -> None:
    again = GivenOrders.of(
        [GivenOrder(0.0, "0", (0,)), GivenOrder(1.0, "1", (1,)), GivenOrder(6.0, "0"), GivenOrder(9.0, "0", (1,)), GivenOrder(9.5, "0")]
    )
    assert {job: (turn.start, turn.devices) for job, turn in again.last_turns.items()} == {"0": (9.0, (1,))}
