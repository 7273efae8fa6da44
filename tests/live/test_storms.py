"""Two gangs of which one can run: after a switch to LAS they do not stop each other again and again, on neither clock."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from gantline.core.cluster_spec import parse_cluster
from gantline.core.inputs import Submit, Use
from gantline.engine.drivers.executors import MeasuredExecutor
from gantline.engine.drivers.faulty import Faults
from gantline.engine.executor import Order, Verb
from gantline.engine.preemption_grace import LIVE_STOPS
from gantline.live.scheduler.setup import Setup, make_loop
from gantline.simulator.simulate import simulate


class Watched(MeasuredExecutor):
    """Notes which gang is told to stop, and when."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.stops: list[tuple[int, float]] = []

    def send(self, order: Order, now: float) -> None:
        if order.verb is Verb.STOP and (not self.stops or self.stops[-1][0] != order.row):
            self.stops.append((order.row, round(now, 3)))
        super().send(order, now)


class Virtual:
    """A clock that the story moves."""

    def now(self) -> float:
        return 0.0


def live_stops(rules: dict[str, float], until: float) -> list[tuple[int, float]]:
    """Which gang a live loop stops when, over machines that take their time in virtual time."""
    loop = make_loop(Setup("fifo", **rules), None, parse_cluster("1x2"), None, Virtual())
    machines = loop.inbox.executor = Watched(np.full(2, 900.0), Faults(), leave=lambda row, devices, now: 2.0)
    told = [Submit(float(at), {"id": str(at), "gpus": 2, "estimate": 900.0, "checkpoint": "inf"}) for at in range(2)]
    loop.fold([(float(at), value) for at, value in enumerate(told)], 1.0)
    loop.fold([(2.0, Use(2.0, "las"))], 2.0)
    while (at := min(machines.next_time(), loop.agenda.next_look())) < until:
        loop.fold([], at)
        now = max(at, loop.state.now)
        loop.fold([(now, report) for report in machines.receive(now)], now)
    return machines.stops


class Leaves(MeasuredExecutor):
    """The same machines under a simulation."""

    @classmethod
    def of(cls, *_: Any) -> Leaves:
        return cls(np.full(2, 900.0), Faults(), leave=lambda row, devices, now: 2.0)


@pytest.mark.parametrize("rules", [{}, {"min_run": 150.0}, {"turn": 240.0}], ids=["usual", "longer run", "longer turns"])
def test_both_clocks_stop_the_same_gangs_at_the_same_times(rules: dict[str, float]) -> None:
    stops = {**asdict(LIVE_STOPS), **rules}
    found = live_stops(stops, until=1150.0)
    assert found
    assert all(at % stops["turn"] == 0.0 for _, at in found)
    times = [at for _, at in found]
    assert min((later - earlier for earlier, later in itertools.pairwise(times)), default=math.inf) >= stops["min_run"]

    jobs = [{"job": str(at), "arrival": float(at), "gpus": 2, "duration": 900.0} for at in range(2)]
    run = simulate(jobs, "1x2", "las", executor=Leaves.of(), until=1150.0, **stops)
    preempted = run.allocations.filter(run.allocations["reason"] == "preempted")
    simulated = sorted((float(end), int(job)) for job, end in preempted.select("job", "end").iter_rows())
    assert [job for _, job in simulated] == [job for job, _ in found]
    assert [end - 2.0 for end, _ in simulated] == pytest.approx(times, abs=0.01)  # the log says when devices were free
