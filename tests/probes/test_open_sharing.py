"""Guests on the devices of several hosts, without a group: AntMan's opportunistic jobs (Xiao et al., OSDI 2020)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.probes.scenario import FOREVER, fact, job, spans

from gantline import Assignment, Mode, Plan, Policy, Snapshot
from gantline.models.model import Gang, PerformanceModel
from gantline.simulator.simulate import simulate

WHERE = {"left": (0, 1), "right": (2, 3), "guest": (1, 2), "other": (3,), "alone": (0, 1)}


@dataclass(frozen=True)
class Named(Policy):
    """Every job on its devices; all but `alone` let others be there too."""

    fraction: float = 1.0

    def decide(self, snapshot: Snapshot) -> Plan:
        rows = [
            Assignment(k, devices=WHERE[name], mode=Mode.EXCLUSIVE if name == "alone" else Mode.SPACE, fraction=self.fraction)
            for k, name in enumerate(snapshot.jobs.ids)
        ]
        return Plan.assign(rows, valid_until=FOREVER)


@dataclass(frozen=True)
class CountsMates(PerformanceModel):
    """Half the speed for each gang on a device of its own."""

    def granted(self, gang: Gang) -> float:
        return 0.5 ** len(gang.mates)


HOSTS = [job("left", 2, 100), job("right", 2, 100)]


def test_a_guest_ties_two_hosts_and_they_are_no_mates_of_each_other() -> None:
    run = simulate([*HOSTS, job("guest", 2, 25)], "1x4", Named(), performance=CountsMates())

    assert spans(run, "guest") == [(0.0, pytest.approx(100.0), [1, 2], "finished")]  # two mates: a quarter
    assert fact(run, "left", "finish") == fact(run, "right", "finish") == pytest.approx(150.0)  # one mate for 100 s
    assert [fact(run, name, "restarts") for name in ("left", "right", "guest")] == [0, 0, 0]


def test_without_a_model_each_device_is_divided_by_what_is_asked_of_it() -> None:
    run = simulate([*HOSTS, job("guest", 2, 50)], "1x4", Named())

    assert fact(run, "guest", "finish") == pytest.approx(100.0)
    assert fact(run, "left", "finish") == pytest.approx(150.0)


def test_fractions_that_fit_cost_nobody_anything() -> None:
    run = simulate([*HOSTS, job("guest", 2, 20)], "1x4", Named(fraction=0.5))

    assert fact(run, "guest", "finish") == pytest.approx(40.0)
    assert fact(run, "left", "finish") == pytest.approx(200.0)


def test_a_guest_that_arrives_later_stops_no_host_and_one_that_does_not_share_waits() -> None:
    run = simulate([*HOSTS, job("other", 1, 10, at=20.0), job("alone", 2, 10, at=30.0)], "1x4", Named())

    assert spans(run, "right") == [(0.0, pytest.approx(110.0), [2, 3], "finished")]
    assert spans(run, "left") == [(0.0, pytest.approx(100.0), [0, 1], "finished")]
    assert spans(run, "alone")[0][0] == pytest.approx(100.0)
