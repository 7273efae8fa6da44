"""Reservations and weights under Sia on the engine: a job gets what is kept for it, whoever is there; other policies say they keep none."""

from __future__ import annotations

from typing import Any

import pytest
from tests.jobs import held_by

from gantline.core.errors import TraceError
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.files.profiles import MADE_UP


def job(name: str, arrival: float, **cells: Any) -> dict[str, Any]:
    return {"job": name, "arrival": arrival, "gpus": 4, "duration": 1000.0, "reserved": ""} | cells


def run(*jobs: dict[str, Any], policy: str = "sia", cluster: str = "slow:1x4,fast:1x4", **options: Any) -> Run:
    return simulate(jobs, cluster, policy, **options)


def spells(found: Run, name: str) -> list[tuple[float, float, str, int]]:
    mine = held_by(found, name).sort("start")
    return list(zip(mine["start"].to_list(), mine["end"].to_list(), mine["type"].to_list(), mine["gpus"].to_list()))


def test_a_reservation_holds_from_arrival_to_the_end_and_others_wait() -> None:
    before, after = [job("first", 0.0), job("second", 10.0)], job("last", 30.0)
    found = run(*before, job("kept", 20.0, reserved="fast:4"), after)
    assert spells(found, "kept") == [(20.0, 1020.0, "fast", 4)]
    assert found.summary["reservations"] == "1 kept"
    assert found.summary["completed"] == 4
    assert spells(run(*before, job("kept", 20.0), after), "kept")[0][0] > 20.0  # without one it waits as others do


def test_a_weight_makes_a_job_go_first_and_never_keeps_it_from_running() -> None:
    jobs = [job("light", 0.0), job("heavy", 0.0, weight=50.0), job("third", 0.0)]
    found = run(*jobs, cluster="slow:1x4")
    assert spells(found, "heavy") == [(0.0, 1000.0, "slow", 4)]
    assert found.summary["completed"] == 3


def test_of_several_ways_the_reserved_one_is_taken() -> None:
    ways = {"options": "slow:4=1000|fast:2=900|fast:4=500", "reserved": "fast:2"}
    found = run(job("kept", 0.0, **ways), job("other", 0.0, options="slow:4=1000|fast:4=500"))
    assert spells(found, "kept") == [(0.0, 900.0, "fast", 2)]


def test_with_profiles_the_reserved_size_is_had_at_once() -> None:
    jobs = [job(name, 0.0, app="vision", batch_size=256, reserved=kept) for name, kept in (("a", ""), ("kept", "small:4"))]
    found = run(*jobs, cluster="small:2x4", profiles=MADE_UP, round=60.0)
    assert {spell[2:] for spell in spells(found, "kept")} == {("small", 4)}
    assert spells(found, "a")[0][3] == 1  # who has none begins with one


@pytest.mark.parametrize(
    ("reserved", "told"), [("fast:8", "which the cluster does not have"), ("tpu:4", "does not have"), ("fast:2", "no way for it to run")]
)
def test_what_cannot_be_kept_is_refused(reserved: str, told: str) -> None:
    with pytest.raises(TraceError, match=told):
        run(job("kept", 0.0, reserved=reserved))
    with pytest.raises(TraceError, match="which it cannot have"):
        run(job("kept", 0.0, app="vision", batch_size=256, reserved="small:64"), cluster="small:2x4", profiles=MADE_UP)


def test_policies_that_know_no_reservations_say_so() -> None:
    assert run(job("kept", 0.0, reserved="fast:4"), policy="fifo").summary["reservations"] == "1 not kept by this policy"
    assert "reservations" not in run(job("a", 0.0), policy="fifo").summary
