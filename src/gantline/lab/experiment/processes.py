"""Worker processes, forked from a fork server where that is possible, and fresh interpreters elsewhere."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from threading import Lock
from typing import IO, Protocol

from gantline.lab.experiment.fork_server import ALLOCATOR, QUIET

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
            [sys.executable, "-m", "gantline.lab.experiment.worker", str(self._crash_report.fileno())],
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

    def __init__(self, control: socket.socket) -> None:
        """Request one; raises `OSError` where there will be none."""
        self._control, self._killed = control, False
        self._channel, channel = socket.socketpair()
        self._status, status = socket.socketpair()
        self._crash_report = tempfile.TemporaryFile()  # noqa: SIM115 (closed when it has been read)
        with channel, status:
            socket.send_fds(control, [b"fork"], [channel.fileno(), status.fileno(), self._crash_report.fileno()])
        self._answers = self._channel.makefile("r", encoding="utf-8")
        self._reports = self._status.makefile("r", encoding="utf-8")
        number = self._reports.readline()
        if not number:
            raise ConnectionError("the fork server is gone")
        self._pid = int(number)
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
        self._killed = self._killed or number == signal.SIGKILL
        with contextlib.suppress(OSError):  # the fork server is gone; the worker ends with its channel
            self._control.send(b"%d %d" % (number, self._pid))

    def end(self) -> tuple[bytes, int]:
        if not self._killed:  # else it might see the end of its tasks before the signal, which the fork server passes on, and end well
            with contextlib.suppress(OSError):
                self._channel.shutdown(socket.SHUT_RDWR)
        code = self._reports.readline()
        for one in (self._answers, self._channel, self._reports, self._status):
            one.close()
        return _left_in(self._crash_report), int(code) if code else -signal.SIGKILL


class Starter:
    """Starts workers, several of them from a fork server; threads may ask at the same time."""

    def __init__(self, several: bool) -> None:
        self._forks = several and sys.platform == "linux"
        self._fork_server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._lock = Lock()

    def start(self) -> WorkerProcess:
        """A new worker."""
        control = self._open()
        if control is not None:
            try:
                return ForkedProcess(control)
            except OSError:
                self._forks = False
        return FreshProcess()

    def _open(self) -> socket.socket | None:
        with self._lock:
            if self._forks and self._control is None:
                self._control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with other:
                    command = [sys.executable, "-m", "gantline.lab.experiment.fork_server"]
                    asked = ",".join(filter(None, (os.environ.get(ALLOCATOR), QUIET)))  # polars keeps its own settings there
                    environment = _environment() | {ALLOCATOR: asked}
                    self._fork_server = subprocess.Popen(command, stdin=other.fileno(), env=environment, start_new_session=True)
            return self._control if self._forks else None

    def close(self) -> None:
        """Stop the fork server: no more workers."""
        if self._control is not None and self._fork_server is not None:
            self._control.close()
            self._fork_server.wait()


def _left_in(crash_report: IO[bytes]) -> bytes:
    """What a worker that has ended wrote into this file, which is needed no more."""
    with crash_report:
        crash_report.seek(0)
        return crash_report.read()


def _environment() -> dict[str, str]:
    return dict.fromkeys(_ONE_THREAD, "1") | dict(os.environ)
