"""What all keepers have in common: a folder with what shall be and what is, and signals that wake them. Needs the standard library only."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import selectors
import signal
import time

from gantline.live.runners.local.files import children_of, started_at, write_json
from gantline.live.runners.local.spawning import RECEIVED, take_orphans_in

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


WAKE = "wake"  # what is selected when a signal has come


class Keeping:
    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        self.order: dict[str, Any] = {}
        self.state: dict[str, Any] = {"phase": "starting", "pid": os.getpid(), "born": started_at(os.getpid()), "revision": 0, "saves": 0}
        self.state |= {"above": os.getppid(), "above_born": started_at(os.getppid())}
        self.selector = selectors.DefaultSelector()

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def write_state(self, **news: Any) -> None:
        self.state.update(news)
        while True:
            try:
                # only the end must survive a crash of the machine, after which nothing runs anyway
                write_json(self.path("state.json"), self.state, lasting=self.state["phase"] == "over")
                return
            except OSError:  # the disk is full, perhaps: the end must be written down, everything else is asked for again
                if self.state["phase"] != "over" or not os.path.isdir(self.folder):
                    return
                time.sleep(1.0)

    def listen(self) -> None:
        """From now on signals wake it."""
        take_orphans_in()
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in RECEIVED:
            self.handle(number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})  # the service has started us so
        self.selector.register(wake_read, selectors.EVENT_READ, WAKE)

    def handle(self, number: int) -> None:
        """What a signal means here: it wakes the keeper."""
        signal.signal(number, lambda *_: None)

    def wait(self, seconds: float) -> list[selectors.SelectorKey]:
        """Until a signal comes or something can be read, at most so long; what can be read."""
        keys = [key for key, _ in self.selector.select(seconds)]
        for key in keys:
            if key.data == WAKE:
                with contextlib.suppress(BlockingIOError):
                    os.read(key.fd, 4096)
        return [key for key in keys if key.data != WAKE]


# The parent process of a keeper: it ends all that an incarnation has started, however its keeper ends.
#
# A process can leave its group, its session and its environment, but not its ancestors: one that loses its parent
# becomes a child of the nearest process above that takes orphans in. While the keeper runs that is the keeper. When
# it is killed it is this one, which ends all that is left and then itself. Both hold the lock of the incarnation's
# folder, so it is free only when nothing is left. Where both are killed at once a process can be left behind; if it
# kept its environment it is found by that.

_PARTED = signal.SIGUSR1  # the process at the other end of the tether has ended
_RECEIVED = (signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM, signal.SIGINT, _PARTED)


def watch_over(folder: str, keep: Callable[[], int], tether: int | None = None) -> int:
    """Run `keep` in a process of its own; when that is gone, end whatever it has left.

    `tether`: a socket or pipe; when its other end is closed, everything here ends.
    """
    lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return 3  # another keeper is at work
    if os.path.exists(os.path.join(folder, "over")):
        return 4  # too late: the service has given this incarnation up
    take_orphans_in()
    signal.pthread_sigmask(signal.SIG_BLOCK, _RECEIVED)
    keeper = os.fork()
    if keeper == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number for number in _RECEIVED if number != signal.SIGHUP])
        return keep()
    if tether is not None:
        _tell_when_parted(tether)
    code = _wait_for(keeper)
    end_children()
    return code


def _wait_for(keeper: int) -> int:
    while True:
        number = signal.sigwait(_RECEIVED)
        if number == _PARTED:
            os.kill(keeper, signal.SIGKILL)
        elif number != signal.SIGCHLD:
            os.kill(keeper, number)  # it is meant for the keeper
            continue
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == keeper:
                return os.waitstatus_to_exitcode(found[1]) & 0xFF


def _tell_when_parted(tether: int) -> None:
    """Have a signal sent to this process when the other end is closed; a parent's death would be told of a thread, not of a process."""
    fcntl.fcntl(tether, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(tether, fcntl.F_SETSIG, _PARTED)
    fcntl.fcntl(tether, fcntl.F_SETFL, fcntl.fcntl(tether, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    if select.select([tether], [], [], 0)[0]:  # it was closed before
        os.kill(os.getpid(), _PARTED)


def end_children(seconds: float = 10.0) -> None:
    """End all children of this process, and those that become its children by that."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in children_of(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
