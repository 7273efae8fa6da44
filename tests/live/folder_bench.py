"""A runner with folders on this machine under test: jobs are shell loops that save, and end when a file says so."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from tests.live.specs import contact_of

from gantline.engine.executor import Order, Report
from gantline.lab.conformance.runner import ReportAndEnding
from gantline.live.jobs.launch import Launch
from gantline.live.runners.runner import Runner
from gantline.live.runners.runner_events import Present, RunnerEvents

SAVES_AND_WAITS = """
trap 'touch $GANTLINE_CHECKPOINT/saved' USR1
while [ ! -e $GANTLINE_CHECKPOINT/finish ]; do sleep 0.05; done
"""
WAITS = """
trap 'touch $GANTLINE_CHECKPOINT/left; exit 15' TERM
touch $GANTLINE_CHECKPOINT/up
while [ ! -e $GANTLINE_CHECKPOINT/end ]; do sleep 0.02; done
exit $(cat $GANTLINE_CHECKPOINT/end)
"""
Kind = TypeVar("Kind", bound=Runner)


def say_end(checkpoint: Path, code: int) -> None:
    """Make `WAITS` end with that exit code."""
    (checkpoint / "draft").write_text(str(code))
    (checkpoint / "draft").rename(checkpoint / "end")


class FolderExecutor(Generic[Kind]):
    """A runner as an executor."""

    launch = Launch((SAVES_AND_WAITS,), shell=True, grace=10.0, save_signal="USR1", resumes=True)

    def __init__(self, home: Path, make: Callable[[Path], Kind]) -> None:
        self.home = home
        self.executor, self._received = make(home), deque[RunnerEvents]()
        self.executor.adopt()
        self.executor.attach(contact_of(self.executor, lambda row: self.launch, self._received.append))

    def now(self) -> float:
        return time.time()

    def finish(self, row: int) -> None:
        (self.home / "jobs" / f"job{row}" / "checkpoint" / "finish").touch()

    def receive(self) -> list[Report]:
        time.sleep(0.05)
        reports = [self._received.popleft() for _ in range(len(self._received))]
        return [report for events in reports for report, _ in events.reports]


class FolderBench(Generic[Kind]):
    """One runner after another, with one home."""

    launch = Launch((WAITS,), shell=True, resumes=True)

    def __init__(self, home: Path, make: Callable[[Path], Kind]) -> None:
        self.home, self._make = home, make
        self.checkpoint = home / "jobs" / "job0" / "checkpoint"
        self._attach()

    def _attach(self) -> list[Present]:
        self._reports: list[ReportAndEnding] = []
        self.executor = self._make(self.home)
        present = list(self.executor.adopt())
        self.executor.attach(contact_of(self.executor, lambda row: self.launch, lambda events: self._reports.extend(events.reports)))
        return present

    def send(self, order: Order) -> None:
        self.executor.send(order, 0.0)

    def reports(self) -> list[ReportAndEnding]:
        return list(self._reports)

    def is_up(self) -> bool:
        return (self.checkpoint / "up").exists()

    def end(self, code: int) -> None:
        say_end(self.checkpoint, code)

    def has_saved(self) -> bool:
        return (self.checkpoint / "left").exists()

    def begin_again(self) -> list[Present]:
        self.executor.close()
        return self._attach()
