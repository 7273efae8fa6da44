"""Worker processes on this machine: they live as long as the sweep, so each imports and compiles once.

Every worker is a fresh interpreter that reads tasks and writes outcomes as lines of JSON, so nothing of the caller (a
script without a main guard, a notebook, threads) is copied into it. A thread per worker feeds it; when a worker dies, its
task has failed, and a new worker takes the next one.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX, Event, Thread, Timer

from gantline.experiment.task import FAILED, Outcome, Task

_ONE_THREAD = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Workers share the processors by being many; libraries must not start a thread per processor in each of them."""


class WorkerProcesses:
    """`count` processes that share the tasks; a task that takes longer than `limit` seconds is given up."""

    def __init__(self, count: int, limit: float = math.inf) -> None:
        self.count, self.limit = count, limit

    def run(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        left: SimpleQueue[Task] = SimpleQueue()
        for task in tasks:
            left.put(task)
        ended: SimpleQueue[Outcome] = SimpleQueue()
        stop = Event()
        feeders = [_Feeder(left, ended, stop, self.limit) for _ in range(min(self.count, len(tasks)))]
        for feeder in feeders:
            feeder.start()
        try:
            for _ in tasks:
                yield ended.get()
        finally:
            stop.set()
            for feeder in feeders:
                feeder.end()


class _Feeder(Thread):
    """Gives tasks to one worker after the other has died, until none is left."""

    def __init__(self, left: SimpleQueue[Task], ended: SimpleQueue[Outcome], stop: Event, limit: float) -> None:
        super().__init__(daemon=True)
        self.left, self.ended, self.stop, self.limit = left, ended, stop, limit
        self.worker: subprocess.Popen[str] | None = None

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
                self.worker = _start()
        except OSError as error:
            return Outcome(task.hash, FAILED, f"no worker process could be started: {error}")
        late = Event()
        watch = Timer(min(self.limit, TIMEOUT_MAX), _give_up, (self.worker, late))
        watch.daemon = True
        watch.start()
        answer = _exchange(self.worker, json.dumps(task.to_dict()))
        watch.cancel()
        if answer:
            return Outcome(**json.loads(answer))
        code, self.worker = self.worker.wait(), None
        return Outcome(task.hash, FAILED, f"took longer than {self.limit:g} s" if late.is_set() else _epitaph(code))

    def end(self) -> None:
        """Stop the worker, whatever it does; results appear whole or not at all, so nothing is half-written."""
        while self.is_alive():
            if self.worker is not None:
                self.worker.terminate()
            self.join(timeout=0.2)
        if self.worker is not None:
            self.worker.terminate()
            self.worker.wait()


def _give_up(worker: subprocess.Popen[str], late: Event) -> None:
    late.set()
    worker.kill()


def _exchange(worker: subprocess.Popen[str], line: str) -> str:
    """Send a line and wait for the answer; an empty one means that the worker is gone."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(line + "\n")
        worker.stdin.flush()
        return worker.stdout.readline()
    except OSError:
        return ""


def _start() -> subprocess.Popen[str]:
    calm = {name: "1" for name in _ONE_THREAD if name not in os.environ}
    return subprocess.Popen(
        [sys.executable, "-m", "gantline.experiment.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, **calm},
        start_new_session=True,  # Ctrl-C is for the sweep; it tells its workers
    )


def _epitaph(code: int) -> str:
    if code >= 0:
        hint = " (in a decision that could not be interrupted when its budget was over?)" if code == 1 else ""
        return f"the worker process ended with code {code}{hint}"
    name = signal.Signals(-code).name
    hint = " (out of memory?)" if -code == signal.SIGKILL else ""
    return f"the worker process was ended by {name}{hint}"


def encode(outcome: Outcome) -> str:
    """An outcome as a line for the other side."""
    return json.dumps(asdict(outcome)) + "\n"
