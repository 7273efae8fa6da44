"""Worker processes, forked from a fork server where that is possible, and fresh interpreters elsewhere."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX, Event, Thread, Timer
from typing import IO, Protocol

from gantline._crash_report import ending_report
from gantline.core.errors import UsageError
from gantline.fork_server import ForkServer
from gantline.lab.experiment.records import FAILED, Outcome
from gantline.lab.experiment.running.fork_server import ALLOCATOR, QUIET
from gantline.lab.experiment.running.tasks import Backend, InThisProcess, Task

_ONE_THREAD = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Workers share the processors by being many; libraries must not start a thread per processor in each of them."""

_READY_WITHIN = 30.0  # seconds; a worker that takes longer for its first message is stuck


class WorkerProcess(Protocol):
    """A process that answers a line with a line."""

    def exchange(self, line: str) -> str:
        """Send a line and wait for the answer; an empty one means that the process is gone."""

    def signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""

    def end(self) -> tuple[bytes, int]:
        """Wait for the end: what it left to be read, and the exit code, or the signal that ended it, below zero."""


class FreshProcess:
    """An interpreter of its own, which imports everything."""

    def __init__(self) -> None:
        self._crash_report = tempfile.TemporaryFile()  # noqa: SIM115 (closed when it has been read)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gantline.lab.experiment.running.worker", str(self._crash_report.fileno())],
            pass_fds=[self._crash_report.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=_environment(),
            start_new_session=True,  # Ctrl-C is for the sweep; it stops its workers
        )

    def exchange(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            return self._process.stdout.readline()
        except OSError:
            return ""

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self) -> tuple[bytes, int]:
        code = self._process.wait()
        return _left_in(self._crash_report), code


class ForkedProcess:
    """A child of the fork server."""

    def __init__(self, server: ForkServer) -> None:
        """Request one; raises `OSError` where there will be none."""
        self._server = server  # which ends its children when nobody holds it any more
        self._channel, channel = socket.socketpair()
        self._crash_report = tempfile.TemporaryFile()  # noqa: SIM115 (closed when it has been read)
        with channel:
            self._process = server.fork(b"worker", [channel.fileno(), self._crash_report.fileno()])
        self._answers = self._channel.makefile("r", encoding="utf-8")
        self._channel.settimeout(_READY_WITHIN)
        try:
            if not self._answers.readline():
                raise ConnectionError("the worker is gone")
        except OSError:
            self.signal(signal.SIGKILL)
            raise
        self._channel.settimeout(None)

    def exchange(self, line: str) -> str:
        try:
            self._channel.sendall(line.encode() + b"\n")
            return self._answers.readline()
        except OSError:
            return ""

    def signal(self, number: int) -> None:
        self._process.signal(number)

    def end(self) -> tuple[bytes, int]:
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        code = self._process.wait()
        self._answers.close()
        self._channel.close()
        return _left_in(self._crash_report), code


class Starter:
    """Starts workers, several of them from a fork server; threads may ask at the same time."""

    def __init__(self, several: bool) -> None:
        self._forks = several and sys.platform == "linux"
        asked = ",".join(filter(None, (os.environ.get(ALLOCATOR), QUIET)))  # polars keeps its own settings there
        command = [sys.executable, "-m", "gantline.lab.experiment.running.fork_server"]
        self._server = ForkServer(command, _environment() | {ALLOCATOR: asked})

    def start(self) -> WorkerProcess:
        """A new worker."""
        if self._forks:
            try:
                return ForkedProcess(self._server)
            except OSError:
                self._forks = False
        return FreshProcess()

    def close(self) -> None:
        """Stop the fork server: no more workers."""
        self._server.close()


def _left_in(crash_report: IO[bytes]) -> bytes:
    """What a worker that has ended wrote into this file, which is needed no more."""
    with crash_report:
        crash_report.seek(0)
        return crash_report.read()


def _environment() -> dict[str, str]:
    return dict.fromkeys(_ONE_THREAD, "1") | dict(os.environ)


# Worker processes on this machine: they run as long as the sweep, so each imports and compiles once.
#
# Every worker reads tasks and writes outcomes as lines of JSON, and nothing of the caller (a script without a main guard, a notebook,
# threads) is copied into it (`processes`). A thread per worker feeds it; when a worker dies, its task has failed, and a new worker takes
# the next one.


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


def choose_backend(workers: int, limit: float = math.inf) -> Backend:
    """This process for one worker, else that many worker processes; only those can be ended after `limit` seconds."""
    if workers < 1:
        raise UsageError(f"{workers} workers cannot run anything", where="--workers", fix="give at least 1")
    return InThisProcess() if workers == 1 and math.isinf(limit) else WorkerProcesses(workers, limit)


@contextmanager
def kept_backend(workers: int) -> Iterator[Backend]:
    """The same, with processes that stay from one batch of tasks to the next."""
    backend = choose_backend(workers)
    with backend if isinstance(backend, AbstractContextManager) else nullcontext():
        yield backend
