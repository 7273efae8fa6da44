"""The contract of executors: derive a class from `ExecutorContract`, define how to make a bench, and let pytest collect it.

A bench is an executor with rows 0 to 3 that it can run on devices 0 to 3, until it is stopped or asked to finish. The tests give orders,
let time pass, and check what is reported. Reports may be duplicated or late; what counts is the state they report in the end. Time is
counted in seconds of the bench's clock; that nothing happens is checked for longer than a start takes there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol
from unittest import SkipTest

from gantline.engine.executor import Can, Executor, News, Order, Report, Verb

_ENDS = (News.STOPPED, News.FINISHED, News.FAILED)
_OTHER = 3  # the row of a job that no test is about


class Bench(Protocol):
    """An executor under test."""

    executor: Executor

    def now(self) -> float: ...

    def finish(self, row: int) -> None:
        """Make the job of that row end by itself, with success."""
        ...

    def receive(self) -> list[Report]:
        """Let some time pass; returns what was reported meanwhile."""
        ...


class _Trial(ABC):
    """What the tests share."""

    patience = 400.0  # seconds of the bench's clock after which an expected report counts as missing
    calm = 0.2  # seconds, at least, for which nothing may happen
    again = 5.0  # seconds after which the newest orders are repeated, as the engine does

    @abstractmethod
    def bench(self) -> Bench:
        """A fresh executor on its bench."""

    def begin(self, *needed: Can) -> Bench:
        """A fresh bench; a test that needs an ability which the executor does not declare is reported as skipped."""
        self._bench, self._received, self._newest, self._others = self.bench(), [], {}, 0
        for ability in needed:
            if ability not in self._bench.executor.can(0):
                raise SkipTest(f"the executor does not declare this ability: {ability.name}")
        return self._bench

    _received: list[Report]
    _newest: dict[int, Order]
    _others: int  # epochs of the job that measures how long a start takes

    def order(self, verb: Verb, row: int, epoch: int, devices: tuple[int, ...] = (), **more: object) -> None:
        order = Order(verb, row, epoch, devices, **more)  # type: ignore[arg-type]
        self._bench.executor.send(order, self._bench.now())
        self._newest[row] = order

    def start(self, row: int, epoch: int, devices: tuple[int, ...], **more: object) -> Report:
        """Order a start, and wait until it is acknowledged."""
        self.order(Verb.START, row, epoch, devices, **more)
        return self.news(News.STARTED, row, epoch)

    def stop(self, row: int, epoch: int, **more: object) -> None:
        """Order a stop, and wait until it is acknowledged."""
        self.order(Verb.STOP, row, epoch, (), **more)
        self.news(News.STOPPED, row, epoch)

    def until(self, true: Callable[[Report], bool], what: str) -> Report:
        """Wait for a report; those received earlier count, too."""
        begun = last = self._bench.now()
        while True:
            for report in self._received:
                if true(report):
                    return report
            now = self._bench.now()
            if now > begun + self.patience:
                break
            if now > last + self.again:
                last = now
                for order in self._newest.values():
                    self._bench.executor.send(order, now)
            self._received += self._bench.receive()
        raise AssertionError(f"{what}; received {[(r.news.value, r.row, r.epoch) for r in self._received]}")

    def news(self, news: News, row: int, epoch: int) -> Report:
        return self.until(lambda r: (r.news, r.row, r.epoch) == (news, row, epoch), f"no '{news.value}' of row {row}, epoch {epoch}")

    def quiet(self) -> list[Report]:
        """What is received when nothing should happen any more, for twice as long as another job takes to start and to stop."""
        self._received = []
        begun, self._others = self._bench.now(), self._others + 1
        self.start(_OTHER, self._others, (3,))
        self.stop(_OTHER, self._others)
        end = begun + max(self.calm, 2.0 * (self._bench.now() - begun))
        while self._bench.now() < end:
            self._received += self._bench.receive()
        return [report for report in self._received if report.row != _OTHER]


class InPlaceContract(_Trial):
    """Promises of an executor that gives a gang other devices while it runs (`Can.DEVICES`), one test each."""

    def test_it_goes_on_with_other_devices(self) -> None:
        self.begin(Can.DEVICES)
        self.start(0, 1, (0,))
        assert set(self.start(0, 2, (0, 1), onto=1).devices) == {0, 1}
        assert not [r for r in self._received if r.news in _ENDS]
        self.stop(0, 2)

    def test_who_has_ended_does_not_go_on(self) -> None:
        bench = self.begin(Can.DEVICES)
        self.start(0, 1, (0,))
        bench.finish(0)
        self.news(News.FINISHED, 0, 1)
        self._received = []
        self.order(Verb.START, 0, 2, (0, 1), onto=1)
        self.news(News.FINISHED, 0, 1)
        assert not [r for r in self.quiet() if r.news is News.STARTED]

    def test_what_it_gives_up_can_be_used_when_it_has_switched(self) -> None:
        self.begin(Can.DEVICES)
        self.start(0, 1, (0, 1))
        assert set(self.start(0, 2, (0,), onto=1).devices) == {0}
        assert not [r for r in self._received if r.news in _ENDS]
        self.start(1, 1, (1,))

    def test_who_is_stopped_while_it_changes_is_gone(self) -> None:
        self.begin(Can.DEVICES)
        self.start(0, 1, (0,))
        self.order(Verb.START, 0, 2, (0, 1), onto=1)
        self.order(Verb.STOP, 0, 2)
        self.until(lambda r: r.news is News.STOPPED and r.epoch in (1, 2), "it was not stopped")
        self.start(1, 1, (0, 1))


class ExecutorContract(InPlaceContract):
    """All promises."""

    def test_a_start_is_acknowledged_with_epoch_and_devices(self) -> None:
        self.begin()
        assert set(self.start(0, 1, (0, 1)).devices) == {0, 1}

    def test_the_same_order_twice_is_one_start_and_two_answers(self) -> None:
        self.begin()
        self.start(0, 1, (0,))
        self._received = []
        self.start(0, 1, (0,))

    def test_a_stop_ends_it_and_may_be_repeated(self) -> None:
        self.begin()
        self.start(0, 1, (0,))
        for _ in range(2):
            self._received = []
            self.stop(0, 1, done=3.0)

    def test_its_devices_can_be_used_after_it_has_stopped(self) -> None:
        self.begin()
        self.start(0, 1, (0, 1))
        self.stop(0, 1)
        self.order(Verb.START, 1, 1, (1,))
        self.order(Verb.START, 0, 2, (0,))
        self.news(News.STARTED, 1, 1)
        self.news(News.STARTED, 0, 2)

    def test_an_older_epoch_is_fenced_off(self) -> None:
        self.begin()
        self.start(0, 2, (0,))
        self.order(Verb.START, 0, 1, (1,))
        self.order(Verb.STOP, 0, 1)
        received = self.quiet()
        assert not [r for r in received if r.epoch == 1 and r.news is News.STARTED]
        assert not [r for r in received if r.epoch == 2 and r.news in _ENDS], "an order of an older epoch ended the newer one"

    def test_what_was_stopped_before_it_came_never_comes(self) -> None:
        self.begin()
        self.stop(0, 1)
        self.order(Verb.START, 0, 1, (0,))
        assert not [r for r in self.quiet() if r.news is News.STARTED]

    def test_an_end_is_told_again_when_asked(self) -> None:
        bench = self.begin()
        self.start(0, 1, (0,))
        bench.finish(0)
        self.news(News.FINISHED, 0, 1)
        self._received = []
        self.order(Verb.START, 0, 1, (0,))
        self.news(News.FINISHED, 0, 1)

    def test_mates_share_devices(self) -> None:
        self.begin(Can.COLLOCATE)
        self.order(Verb.START, 0, 1, (0,), mates=frozenset({1}))
        self.order(Verb.START, 1, 1, (0,), mates=frozenset({0}))
        self.news(News.STARTED, 0, 1)
        self.news(News.STARTED, 1, 1)

    def test_a_rest_is_acknowledged_and_ends(self) -> None:
        self.begin(Can.SUSPEND)
        self.start(0, 1, (0,))
        self.order(Verb.START, 0, 1, (0,), revision=1, suspended=True)
        assert self.news(News.SUSPENDED, 0, 1).revision == 1
        self._received = []
        self.order(Verb.START, 0, 1, (0,), revision=2)
        self.until(lambda r: r.news is News.STARTED and r.revision == 2, "it did not go on")

    def test_who_rests_can_be_stopped_and_can_go_on_as_another_epoch(self) -> None:
        self.begin(Can.SUSPEND)
        for row in (0, 1):
            self.start(row, 1, (row,))
            self.order(Verb.START, row, 1, (row,), revision=1, suspended=True)
            self.news(News.SUSPENDED, row, 1)
        self.order(Verb.STOP, 0, 1)
        self.order(Verb.START, 1, 2, (1,), onto=1)
        self.news(News.STOPPED, 0, 1)
        self.news(News.STARTED, 1, 2)

    def test_a_save_is_acknowledged_and_it_goes_on(self) -> None:
        self.begin(Can.SAVE)
        self.start(0, 1, (0,))
        self.order(Verb.START, 0, 1, (0,), revision=1, saves=1, done=5.0)
        self.news(News.SAVED, 0, 1)
        assert not [r for r in self.quiet() if r.news in _ENDS]
