"""A loop that begins with tables in which jobs run: what still runs is adopted, what nobody asked for is stopped."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.engine.states import engine_of
from tests.jobs import job_row

from gantline.core.columns import Job
from gantline.core.phases import Phase
from gantline.engine.drivers.acknowledged import Acknowledged
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.executor import News, Order, Report, Verb
from gantline.engine.lists import RowCount
from gantline.policies.registry import make_policy


@dataclass
class ScriptedExecutor:
    """An executor that says what it is told to say, and keeps the orders."""

    reports: list[Report] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)

    def send(self, order: Order, now: float) -> None:
        self.orders.append(order)

    def next_time(self) -> float:
        return min((report.time for report in self.reports), default=float("inf"))

    def receive(self, now: float) -> list[Report]:
        due = [report for report in self.reports if report.time <= now]
        self.reports = [report for report in self.reports if report.time > now]
        return due

    def fail(self, node: int, devices: frozenset[int], now: float) -> None:
        pass


def restarted(*reports: Report) -> tuple[Simulation, ScriptedExecutor]:
    """Job 0 runs on both devices, job 1 waits; then the loop is made anew."""
    jobs = [job_row("a", 2), job_row("b", 2, 50.0)]
    engine = engine_of(jobs, "1x2")
    engine.policy = make_policy("fifo")
    engine.order_only = True
    engine.state.lists.number[[RowCount.NEXT, RowCount.HELD]] = 2
    plan = engine.decide()
    assert plan is not None
    engine.commit(plan)
    engine.state.now = 20.0
    executor = ScriptedExecutor(list(reports))
    return Simulation(engine, until=400.0, driver=Acknowledged(engine, executor)), executor


def test_what_still_runs_is_asked_after_and_goes_on() -> None:
    loop, executor = restarted(Report(News.STARTED, 0, 1, 21.0, 0.0, (0, 1)), Report(News.FINISHED, 0, 1, 100.0, 100.0))
    loop.run()
    t = loop.state.tables

    assert executor.orders[0] == Order(Verb.START, 0, 1, (0, 1), 0.0, 1.0, revision=1)
    assert t.F[Job.FINISH, 0] == 100.0
    assert t.F[Job.SERVICE, 0] == 100.0
    assert any(order.row == 1 and order.verb is Verb.START for order in executor.orders)
    assert all(order.verb is Verb.START for order in executor.orders)


def test_what_died_meanwhile_starts_again_from_what_was_saved() -> None:
    loop, executor = restarted(Report(News.FAILED, 0, 1, 21.0, 7.0))
    loop.until = 22.0
    loop.run()
    t = loop.state.tables

    assert t.F[Job.DONE, 0] == 7.0
    assert t.F[Job.LOST, 0] == 14.0
    assert executor.orders[-1] == Order(Verb.START, 0, 2, (0, 1), 7.0, 1.0)


def test_a_grant_that_nobody_asked_for_is_stopped_and_its_devices_are_not_given_away() -> None:
    loop, executor = restarted(
        Report(News.FAILED, 0, 1, 21.0, 7.0),
        Report(News.STARTED, 1, 4, 20.5, 0.0, (0, 1)),
        Report(News.STOPPED, 1, 4, 60.0, 0.0),
    )
    loop.until = 61.0
    loop.run()

    stop = next(order for order in executor.orders if order.verb is Verb.STOP)
    again = [order for order in executor.orders if order.verb is Verb.START and order.epoch == 2]
    assert (stop.row, stop.epoch) == (1, 4)
    assert executor.orders.index(again[0]) > executor.orders.index(stop)
    assert loop.state.tables.I[Job.PHASE, 0] == Phase.STARTING
    assert loop.state.now >= 60.0


def test_what_is_said_of_another_grant_of_the_same_job_is_no_news_of_this_one() -> None:
    said = [Report(News.STOPPED, 0, 5, 30.0, 0.0), Report(News.STARTED, 0, 5, 31.0, 0.0, (0, 1))]
    loop, executor = restarted(Report(News.STARTED, 0, 1, 21.0, 0.0, (0, 1)), *said, Report(News.FINISHED, 0, 1, 100.0, 100.0))
    loop.run()

    assert loop.state.tables.F[Job.FINISH, 0] == 100.0
    assert loop.state.tables.I[Job.RESTARTS, 0] == 0
    assert Order(Verb.STOP, 0, 5) in executor.orders


def test_a_gang_that_cannot_save_and_go_on_is_not_stopped_for_a_save() -> None:
    loop, executor = restarted(Report(News.STARTED, 0, 1, 20.0, 0.0, (0, 1)))
    loop.driver.follow(loop)
    loop.state.asked_saves[0] = 1
    loop.driver.follow(loop)

    assert [(order.verb, order.epoch) for order in executor.orders] == [(Verb.START, 1)]
    assert loop.state.tables.I[Job.RESTARTS, 0] == 0
