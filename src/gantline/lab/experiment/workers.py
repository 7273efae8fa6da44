"""Worker processes on this machine: they run as long as the sweep, so each imports and compiles once.

Every worker reads tasks and writes outcomes as lines of JSON, and nothing of the caller (a script without a main guard, a notebook,
threads) is copied into it (`processes`). A thread per worker feeds it; when a worker dies, its task has failed, and a new worker takes
the next one.
"""

from __future__ import annotations

import json
import math
import signal
from collections.abc import Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX, Event, Thread, Timer

from gantline._crash_report import ending_report
from gantline.lab.experiment.outcome import FAILED, Outcome
from gantline.lab.experiment.processes import Starter, WorkerProcess
from gantline.lab.experiment.task import Task


class WorkerProcesses:
    """`count` processes that share the tasks; a task that takes longer than `limit` seconds is given up.

    Inside a ``with`` block the processes are kept from one `run` to the next, for tasks that depend on earlier outcomes.
    """

    def __init__(self, count: int, limit: float = math.inf) -> None:
        self.count, self.limit = count, limit
        self._kept: Starter | None = None
        self._idle: list[WorkerProcess] = []

    def __enter__(self) -> WorkerProcesses:
        self._kept = Starter(several=self.count > 1)
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._idle:
            worker.signal(signal.SIGTERM)
            worker.end()
        self._idle.clear()
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def run(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        left: SimpleQueue[Task] = SimpleQueue()
        for task in tasks:
            left.put(task)
        ended: SimpleQueue[Outcome] = SimpleQueue()
        stop = Event()
        count = min(self.count, len(tasks))
        starter = self._kept or Starter(several=count > 1)
        feeders = [_Feeder(left, ended, stop, self.limit, starter) for _ in range(count)]
        for feeder in feeders:
            feeder.worker = self._idle.pop() if self._idle else None
            feeder.start()
        done = False
        try:
            for _ in tasks:
                yield ended.get()
            done = True
        finally:
            stop.set()
            for feeder in feeders:
                if done and self._kept is not None:
                    feeder.join()
                    self._idle += [feeder.worker] if feeder.worker is not None else []
                else:
                    feeder.end()
            if self._kept is None:
                starter.close()


class _Feeder(Thread):
    """Gives tasks to one worker, and to a new one when it has died, until no task is left."""

    def __init__(self, left: SimpleQueue[Task], ended: SimpleQueue[Outcome], stop: Event, limit: float, starter: Starter) -> None:
        super().__init__(daemon=True)
        self.left, self.ended, self.stop, self.limit, self.starter = left, ended, stop, limit, starter
        self.worker: WorkerProcess | None = None

    def run(self) -> None:
        while not self.stop.is_set():
            try:
                task = self.left.get_nowait()
            except Empty:
                break
            outcome = self._ask(task)
            if not self.stop.is_set():
                self.ended.put(outcome)

    def _ask(self, task: Task) -> Outcome:
        """The outcome of a task; a worker that dies over it, or must be ended, is replaced."""
        try:
            if self.worker is None:
                self.worker = self.starter.start()
        except OSError as error:
            return Outcome(task.hash, FAILED, f"no worker process could be started: {error}")
        late = Event()
        watch = Timer(min(self.limit, TIMEOUT_MAX), _give_up, (self.worker, late))
        watch.daemon = True
        watch.start()
        answer = self.worker.exchange(json.dumps(task.to_dict()))
        watch.cancel()
        if answer:
            return Outcome.read(answer)
        ending, self.worker = ending_report(*self.worker.end()), None
        return Outcome(task.hash, FAILED, f"took longer than {self.limit:g} s" if late.is_set() else ending)

    def end(self) -> None:
        """Stop the worker, whatever it does; results appear whole or not at all, so nothing is half-written."""
        while self.is_alive():
            if self.worker is not None:
                self.worker.signal(signal.SIGTERM)
            self.join(timeout=0.2)
        if self.worker is not None:
            self.worker.signal(signal.SIGTERM)
            self.worker.end()


def _give_up(worker: WorkerProcess, late: Event) -> None:
    late.set()
    worker.signal(signal.SIGKILL)
