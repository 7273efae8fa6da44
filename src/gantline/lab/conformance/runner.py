"""The contract of runners, beyond that of executors: derive a class from `RunnerContract`, and define how to make a bench.

Each test waits for something to happen, for seconds and not for a number of looks, so that a runner which starts slowly is asked the same.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Protocol

from gantline.engine.executor import News, Order, Report, Verb
from gantline.live.runners.runner_events import Ending, Present

ReportAndEnding = tuple[Report, Ending | None]


class RunnerBench(Protocol):
    """A runner under test, on machines that outlive it. Row 0 is a job that runs until it is told to end, and saves when it is stopped."""

    def send(self, order: Order) -> None: ...

    def reports(self) -> list[ReportAndEnding]:
        """All reports so far."""
        ...

    def is_up(self) -> bool:
        """Whether the job has come as far as being able to save: what is stopped before has nothing to save."""
        ...

    def end(self, code: int) -> None:
        """Make the job end by itself with that exit code."""
        ...

    def has_saved(self) -> bool:
        """Whether the job has saved because it was stopped."""
        ...

    def begin_again(self) -> list[Present]:
        """Another service takes over: a fresh runner calls the roll, and is attached. Reports of the earlier one are forgotten."""
        ...


class RunnerContract(ABC):
    """What a service relies on, one test each."""

    seconds = 60.0  # after which an expected report counts as missing

    @abstractmethod
    def bench(self) -> RunnerBench:
        """A fresh runner on its bench."""

    def until(self, bench: RunnerBench, news: News, epoch: int) -> ReportAndEnding:
        """Wait for a report."""
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            for report, ending in bench.reports():
                if (report.news, report.epoch) == (news, epoch):
                    return report, ending
            time.sleep(0.02)
        raise AssertionError(f"no '{news.value}' of epoch {epoch}; told {[(one.news.value, one.epoch) for one, _ in bench.reports()]}")

    def started(self, epoch: int = 1) -> RunnerBench:
        """A bench on which the job runs."""
        bench = self.bench()
        bench.send(Order(Verb.START, 0, epoch, (0,)))
        self.until(bench, News.STARTED, epoch)
        end = time.monotonic() + self.seconds
        while not bench.is_up():
            assert time.monotonic() < end, "it is told as started, and does not run"
            time.sleep(0.02)
        return bench

    def test_a_job_that_is_stopped_can_save(self) -> None:
        bench = self.started()
        bench.send(Order(Verb.STOP, 0, 1))
        self.until(bench, News.STOPPED, 1)
        assert bench.has_saved(), "it was ended before it could save"

    def test_what_still_runs_is_adopted(self) -> None:
        bench = self.started()
        present = bench.begin_again()
        assert [(one.epoch, one.is_over) for one in present] == [(1, False)], "what runs is not adopted"
        self.until(bench, News.STARTED, 1)
        bench.end(0)
        self.until(bench, News.FINISHED, 1)

    def test_how_a_job_ended_is_told_with_its_exit_code(self) -> None:
        bench = self.started()
        bench.end(7)
        _, ending = self.until(bench, News.FAILED, 1)
        assert ending is not None
        assert ending.exit == 7, f"it ended with 7, and {ending.exit} is told"

    def test_orders_of_an_older_epoch_change_nothing(self) -> None:
        """Both are answered with what is known, and the job goes on until it ends by itself."""
        bench = self.started(epoch=2)
        bench.send(Order(Verb.STOP, 0, 1))
        bench.send(Order(Verb.START, 0, 1, (1,)))
        before = len(bench.reports())
        bench.send(Order(Verb.START, 0, 2, (0,)))  # answered behind the other two
        end = time.monotonic() + self.seconds
        while len(bench.reports()) < before + 1 and time.monotonic() < end:
            time.sleep(0.02)
        bench.end(0)
        self.until(bench, News.FINISHED, 2)
        assert all(report.epoch == 2 for report, _ in bench.reports()), "an older epoch was obeyed"
