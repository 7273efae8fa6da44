"""A live decision has a budget: a policy that takes longer loses its turn, nobody waits for it, and a replay loses the same turns."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engine.states import engine_of
from tests.live.specs import ended, must_succeed, replays, running, shell, state, submit, until, until_running

from gantline.core.cluster_spec import parse_cluster
from gantline.core.inputs import Submit, Use
from gantline.core.policy import OrderPolicy
from gantline.engine.drivers.executors import MeasuredExecutor
from gantline.engine.drivers.faulty import Faults
from gantline.engine.executor import Order, Verb
from gantline.engine.policy_failures import Incident
from gantline.engine.preemption_grace import LIVE_STOPS
from gantline.lab.report.figures import gantt
from gantline.lab.report.run_warnings import policies_in_charge
from gantline.lab.report.service_run import read_service
from gantline.live.scheduler.decision_thread import rehearse
from gantline.live.scheduler.setup import Setup, make_loop
from gantline.live.scheduler.store_writer import PolicyWords
from gantline.live.store import SqlStore
from gantline.live.store.records import MemoryStore
from gantline.policies.registry import make_policy
from gantline.simulator.simulate import simulate
from gantline.traces.files.python_file import GivenCode

SLOW = '''
import os, time
from dataclasses import dataclass
from typing import ClassVar
from gantline.core.policy import OrderPolicy

@dataclass(frozen=True)
class Dozing(OrderPolicy):
    """First come, first served, but for naps."""
    name: ClassVar[str] = "dozing"
    paper: ClassVar[str] = "none"

    def key(self, snapshot):
        while os.path.exists({flag!r}):
            time.sleep(0.01)
        return snapshot.jobs.arrival
'''


def test_a_late_decision_loses_its_turn_and_the_record_says_so(tmp_path: Path) -> None:
    flag, file = tmp_path / "nap", tmp_path / "dozing.py"
    file.write_text(SLOW.format(flag=str(flag)), encoding="utf-8")
    store, policy = SqlStore.open(tmp_path / "store.sqlite"), f"{file}:Dozing"
    with running(tmp_path, "cpu:2", policy, store=store, setup=Setup(budget=0.2)) as scheduler:
        first = submit(scheduler, "sleep 1000")
        until_running(scheduler, first)
        flag.touch()
        second = submit(scheduler, "true")
        until(lambda: scheduler.view().counters["decision_overruns"] >= 1)
        assert state(scheduler, first) == "running"  # the last plan stands
        flag.unlink()
        third = submit(scheduler, "true")
        must_succeed(scheduler, second, third)
    overruns = [line for _, line in store.journal() if "overrun" in line]
    assert overruns
    assert not [line for line in store.decisions() if "overrun" in line]
    why = {event["why"] for event in store.events() if event["event"] == "decision-overrun"}
    assert why == {"the decision took more than 0.2 s"}
    store.close()
    replays(tmp_path / "store.sqlite", code=GivenCode((policy,)))  # the nap is over: only the record knows of it

    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:2", policy, store=store) as scheduler:
        assert scheduler.setup.budget == 0.2  # as last time
        ended(scheduler, submit(scheduler, "true"))
    store.close()


# A service says which policy of a portfolio is in charge, and why: in its events, its decisions, its answers and its report.


def test_a_change_of_policy_is_an_event_a_column_of_decisions_and_a_strip_of_the_picture(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "gantline.sqlite")
    with running(tmp_path, "cpu:1", "synthesizer", store=store, settings={"portfolio": "fifo,srtf", "every": 1}) as scheduler:
        first = submit(scheduler, f"while [ ! -e {tmp_path}/flag ]; do sleep 0.05; done", estimate=1000.0)
        until_running(scheduler, first)
        scheduler.submit(shell("sleep 1000", estimate=9000.0))
        short = submit(scheduler, "sleep 1000", estimate=3000.0)
        until(lambda: scheduler.view().in_charge.startswith("srtf is in charge: mean-jct"))
        (tmp_path / "flag").touch()
        until_running(scheduler, short)
    told = [one for one in store.events() if one["event"] == "in-charge"]
    assert [one["policy"] for one in told] == ["fifo", "srtf"]
    assert "under fifo" in told[1]["why"]
    whys = [one["why"] for one in store.decisions() if "why" in one]
    assert whys[-1] == told[1]["because"]
    store.close()
    replays(tmp_path / "gantline.sqlite")
    past = read_service(tmp_path)
    assert policies_in_charge(past).startswith("in charge: ")
    assert [name for name, _ in gantt(past).panels[0].layers[0].legend] == ["fifo", "srtf"]


# What a service says of its policy: notes of plans as they come, and at every start what its assembly noticed.


def test_what_was_noticed_at_the_start_is_said_once_and_what_a_journal_repeats_is_not() -> None:
    engine = engine_of([{"job": "a", "arrival": 0.0, "gpus": 1, "duration": 1.0}], "1x1")
    engine.notices, engine.said_at_start = [Incident(0.0, 0, "at the start"), Incident(5.0, 1, "replayed")], 1
    words = PolicyWords(engine)

    assert [entry.value["why"] for entry in words.events()] == ["at the start"]
    engine.notices.append(Incident(9.0, 2, "later"))
    assert [entry.value["why"] for entry in words.events()] == ["later"]


def test_a_live_service_says_that_its_placement_decides_nothing(tmp_path: Path) -> None:
    store = MemoryStore()
    with running(tmp_path, "cpu:1", "gandiva.introspective", store, setup=Setup(placement="consolidated")):
        pass

    said = [event["why"] for event in store.events(limit=100) if event["event"] == "notice"]
    assert said == ["placement 'consolidated' decides nothing: policy 'gandiva.introspective' names the devices of its gangs itself"]


# The dress rehearsal of a policy: it ends, whatever the machine has, and tells what went wrong.


@dataclass(frozen=True)
class Broken(OrderPolicy):
    def key(self, snapshot):
        raise ValueError("no idea")


@pytest.mark.parametrize("cluster", ["cpu:1x4", "1x1", "h200:1x1,cpu:1x16", "cpu:1x0/4c"])
@pytest.mark.parametrize("policy", ["fifo", "las", "gavel.max_min_fairness_perf"])
def test_it_serves_made_up_jobs_to_their_end(policy, cluster):
    assert rehearse(make_policy(policy), parse_cluster(cluster)) == []


def test_a_policy_that_fails_is_told_of():
    assert "no idea" in rehearse(Broken(), parse_cluster("1x4"))[0]


# Two gangs of which one can run: after a switch to LAS they do not stop each other again and again, on neither clock.


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
