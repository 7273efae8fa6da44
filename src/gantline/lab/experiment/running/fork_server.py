"""A process that imports what workers need, and is forked whenever a worker is needed.

A forked worker costs a few hundredths of a second where a fresh interpreter takes most of one to import. Forking is safe only
while no thread holds a lock, so this process calls no library, keeps libraries from starting threads of their own, and checks its threads
before it forks. Where there are others it refuses, and workers are fresh interpreters (`processes`).
"""

from __future__ import annotations

import contextlib
import gc
import os
import selectors
import signal
import socket
import sys
import threading
import warnings
from importlib import import_module
from pathlib import Path
from typing import IO

import polars as pl

from gantline.lab.experiment.digest import program_digest
from gantline.lab.experiment.running.worker import answer_tasks

NEEDED = (
    "gantline.lab.experiment.running.worker",
    "gantline.lab.experiment.records",
    "gantline.simulator.simulate",
    "gantline.traces.files.policies",
    "gantline.lab.report.run_warnings",
    "gantline.lab.report.frames",
    "gantline.lab.report.metrics",
    "gantline.lab.report.rundir",
    "gantline.traces.generators.drawing",
    "gantline.traces.cells",
    "gantline.traces.faults",
    "gantline.traces.read",
    "gantline.traces.rename",
    "gantline.engine.drivers.table_loop",
    "gantline.engine.assembly.goodput",
    "gantline.engine.assembly.scaling",
    "gantline.engine.assembly.throughputs",
    "gantline.models.parameter_servers",
    "gantline.models.scaling",
    "numpy.ma",
    "gantline.core.machine_code.object_code",
)
"""What every run of a worker imports, or many do, with all that comes along."""

ALLOCATOR, QUIET = "_RJEM_MALLOC_CONF", "background_thread:false"
"""For the environment: the memory allocator of polars starts no threads."""

_HARMLESS = {"polars-ooc-clea"}  # asleep until data are moved to disk, which never happens before a fork


def is_alone() -> bool:
    """Whether no thread runs here but this one and those that sleep and hold nothing."""
    own = threading.get_native_id()
    for task in Path("/proc/self/task").iterdir():
        if int(task.name) != own:
            name, state = (task / "comm").read_text().strip(), (task / "stat").read_text().rpartition(")")[2].split()[0]
            if name not in _HARMLESS or state != "S":
                return False
    return True


class ForkServer:
    """Forks and signals workers on requests from `control`; reports each one's process id, and how it ended, on a socket of its own."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.alive: dict[int, socket.socket] = {}

    def run(self) -> None:
        """Serve until the other end is closed; workers that still run then are killed, because nothing would read their results."""
        ended, wakeup = os.pipe()
        os.set_blocking(wakeup, False)
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with selectors.DefaultSelector() as wait:
            wait.register(self.control, selectors.EVENT_READ)
            wait.register(ended, selectors.EVENT_READ)
            while True:
                for key, _ in wait.select():
                    if key.fileobj == ended:
                        os.read(ended, 4096)
                        self._reap()
                    elif not self._obey():
                        for worker in self.alive:
                            os.kill(worker, signal.SIGTERM)
                        return

    def _obey(self) -> bool:
        """Handle the next message: start a worker on the sockets that come with it, or signal one; False: there is none."""
        message, files, *_ = socket.recv_fds(self.control, 64, 3)
        if not message:
            return False
        if not files:
            number, worker = map(int, message.split())
            if worker in self.alive:
                os.kill(worker, number)
            return True
        channel, status = (socket.socket(fileno=file) for file in files[:2])
        crash_report = open(files[2], "wb", buffering=0)  # noqa: SIM115 (the worker's)
        if not is_alone():
            for one in (channel, status, crash_report):
                one.close()
            return True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of any thread; `is_alone` checks which
            pid = os.fork()
        if not pid:
            self._be_worker(channel, status, crash_report)
        channel.close()
        crash_report.close()
        self.alive[pid] = status
        with contextlib.suppress(OSError):  # the sweep was killed; the worker sees it too
            status.sendall(b"%d\n" % pid)
        return True

    def _be_worker(self, channel: socket.socket, status: socket.socket, crash_report: IO[bytes]) -> None:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other in (self.control, status, *self.alive.values()):
                other.close()
            with channel.makefile("r", encoding="utf-8") as tasks, channel.makefile("w", encoding="utf-8") as answers:
                _try_out()
                answers.write("ready\n")
                answers.flush()
                answer_tasks(tasks, answers, crash_report)
            code = 0
        except ConnectionError:
            pass  # the sweep was killed before there was a task
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _reap(self) -> None:
        """Report how the workers that have ended did so."""
        for pid in list(self.alive):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                with self.alive.pop(pid) as listener, contextlib.suppress(OSError):  # the other end is closed
                    listener.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _try_out() -> None:
    """A little work for polars and its threads, so that a process in which they do not start is seen before it has a task."""
    pl.DataFrame({"one": [2, 1]}).lazy().sort("one").collect()


def serve() -> None:
    """Import everything, and fork workers until stdin is closed."""
    control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    for name in NEEDED:
        import_module(name)
    program_digest()  # of all sources, which every result bears
    os.environ.pop(ALLOCATOR, None)  # not for what policies start
    gc.freeze()
    ForkServer(control).run()


if __name__ == "__main__":
    serve()
