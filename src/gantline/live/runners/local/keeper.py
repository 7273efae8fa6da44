"""Keeps one incarnation of a job: starts its ranks, captures their output, carries out signals, writes down what becomes of them.

A process of its own, forked by `fork_server`, so that jobs outlive the service. It imports the standard library and its neighbours
that do so, to be small. In its folder: ``order.json`` (what shall be; the service writes it and sends SIGHUP), ``state.json`` (what
is; written here, whole or not at all), ``lock`` (held while the keeper or the process above it runs), ``over`` (the incarnation is over;
no keeper may begin), ``log``.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping

from gantline.live.runners.local.files import ROOT, read_json, stamp, started_at
from gantline.live.runners.local.keeping import WAKE, Keeping, end_children, watch_over
from gantline.live.runners.local.output import Lines, Log
from gantline.live.runners.local.ranks import Ranks
from gantline.live.runners.local.spawning import Spawner

TYPE_CHECKING = False


if TYPE_CHECKING:
    pass

_TICK = 0.5  # seconds between checks of what no signal reports


def keep(folder: str) -> int:
    """Keep the incarnation of that folder until it is over, with a process above that outlives its keeper."""
    return watch_over(folder, lambda: Keeper(folder).run())


class Keeper(Keeping):
    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.ranks = Ranks(self.folder)
        self.spawner = Spawner()
        self.asked_stop = 0.0  # when the stop signal went out
        self.next_count = 0.0  # when limits that only this keeper enforces are checked next
        self.killed = False
        self.suspended = False
        self.off_turn = False  # it is halted until its next turn

    # --- life -----------------------------------------------------------------------------------------------------------
    def run(self) -> int:
        self.listen()
        self.look()
        if self.order.get("want") != "run":
            self.end()
            return 0
        if not self.start():
            return 0
        while not self.ranks.finished:
            for key in self.wait(self.until_next()):
                self.read(key.fd)
            self.look()
            self.reap()
            self.follow_change()
            self.count()
            self.take_turns()
            self.tell_lost()
        self.end()
        return 0

    def open_log(self) -> Log:
        """Where output goes to."""
        return Log(self.path("log"), self.order.get("log_bytes", 64 << 20))

    def start(self) -> bool:
        """Start all ranks, or none."""
        self.log = self.open_log()
        first = int(self.order.get("first_rank", 0))  # other than 0 where ranks before it run on other nodes
        self.lines = Lines(self.log, lambda process: first + self.ranks.rank_of(process))
        self.lines.numbered = len(self.order["ranks"]) > 1 or "first_rank" in self.order
        self.spawner.enter(self.order)
        try:
            for extra in self.order["ranks"]:
                self.ranks.gang.append(self.start_one({**self.order["env"], **extra}))
        except (OSError, ValueError) as error:
            program = "/bin/sh" if self.order.get("shell") else self.order["command"][0]
            self.log.write(f"gantline: cannot run {program!r}: {error}\n".encode())
            self.kill()
            self.write_state(phase="over", cause="failed", exit=127, why=f"cannot run {program!r}: {error}", **stamp("ended"))
            return False
        fields = {"group": self.ranks.group, "ranks": self.processes(), "limits": self.spawner.limits, "revision": self.revision()}
        self.write_state(phase="running", **stamp("started"), **fields)
        return True

    def start_one(self, env: dict[str, str]) -> int:
        """Start one process of the job; its number."""
        process, output = self.spawner.start(self.order, env, self.folder, self.ranks.group)
        self.ranks.processes.append(process)
        number = len(self.ranks.processes) - 1
        self.selector.register(output, selectors.EVENT_READ, number)
        return number

    def processes(self) -> list[dict[str, int]]:
        """The process of each rank."""
        pids = [self.ranks.processes[number].pid or 0 for number in self.ranks.gang]
        return [{"pid": pid, "born": started_at(pid)} for pid in pids]

    def revision(self) -> int:
        return int(self.order.get("revision", 0))

    # --- what shall be --------------------------------------------------------------------------------------------------
    def look(self) -> None:
        """Carry out the order as it is now."""
        order = read_json(self.path("order.json"))
        if order is not None:
            self.order = order
        if not self.ranks:
            return
        now = time.monotonic()
        if self.order.get("want") == "stop":
            if not self.asked_stop:
                self.asked_stop = now
                self.signal(signal.SIGCONT)
                self.signal(getattr(signal, f"SIG{self.order.get('stop_signal') or 'TERM'}", signal.SIGTERM))
                self.write_state(phase="stopping")
            elif now >= self.asked_stop + self.order.get("grace", 10.0) and not self.killed:
                self.kill()
            return
        self.change_gang()
        if self.revision() == self.state["revision"]:
            return
        if bool(self.order.get("suspended")) is not self.suspended:
            self.suspended = bool(self.order.get("suspended"))
            self.signal(signal.SIGSTOP if self.suspended else signal.SIGCONT)
        if self.order.get("saves", 0) > self.state["saves"] and self.order.get("save_signal"):
            self.signal(getattr(signal, f"SIG{self.order['save_signal']}", 0))
        phase = "suspended" if self.suspended else "running"
        self.write_state(phase=phase, saves=self.order.get("saves", 0), revision=self.revision())

    def change_gang(self) -> None:
        """Start newcomers, which make themselves ready beside the ranks that run."""
        change = self.order.get("change")
        if not change:
            return
        if change["epoch"] == self.ranks.known and self.ranks.change is not None:
            self.ranks.change = change  # it may be called off
        if change["epoch"] <= self.ranks.known:
            return
        newcomers: list[int] = []
        self.ranks.begin_change(change, newcomers)
        self.lines.numbered = True
        try:
            for extra in () if change.get("refuse") else change["ranks"]:
                newcomers.append(self.start_one({**self.order["env"], **change["env"], **extra}))
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            change["refuse"] = f"a rank cannot be started: {error}"

    def follow_change(self) -> None:
        news = self.ranks.follow_change()
        if news is not None:
            self.write_state(ranks=self.processes(), **news)
            if "broken" in news:
                self.kill()

    def take_turns(self) -> float:
        """Halt the job while others on the same device have their turn; seconds until that changes."""
        turn = self.order.get("turn")
        on, left = is_on(turn) if turn and not self.asked_stop else (True, _TICK)
        if on is self.off_turn and not self.suspended:
            self.off_turn = not on
            self.signal(signal.SIGCONT if on else signal.SIGSTOP)
        return left

    def until_next(self) -> float:
        if self.asked_stop and not self.killed:
            return max(0.0, min(_TICK, self.asked_stop + float(self.order.get("grace", 10.0)) - time.monotonic()))
        return min(_TICK, self.spawner.bounds.pause if self.spawner.bounds else _TICK, self.take_turns() + 0.001)

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.ranks.group, number)

    def kill(self) -> None:
        """End everything that this incarnation has started."""
        self.killed = True
        if self.ranks:
            self.signal(signal.SIGKILL)
        self.spawner.kill_groups()

    # --- what is --------------------------------------------------------------------------------------------------------
    def read(self, pipe: int) -> bool:
        """Whether there may be more."""
        try:
            data = os.read(pipe, 65536)
        except BlockingIOError:
            return False
        self.lines.write(self.selector.get_key(pipe).data, data)
        if not data:
            self.selector.unregister(pipe)
            os.close(pipe)
        return bool(data)

    def tell_lost(self) -> None:
        """Output that could not be written is reported while the job runs, too."""
        if self.log.lost != self.state.get("lost", 0):
            self.write_state(lost=self.log.lost)

    def reap(self) -> None:
        if self.ranks.reap(bool(self.asked_stop)):
            self.kill()
        while self.ranks.finished:  # orphans that came to us
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    return
            except ChildProcessError:
                return

    def count(self) -> None:
        """Enforce limits that no control group does."""
        if self.spawner.bounds and not self.killed and time.monotonic() >= self.next_count:
            why = self.spawner.bounds.exceeded(os.getpid())
            self.next_count = time.monotonic() + self.spawner.bounds.pause
            if why:
                self.log.write(f"gantline: ended: it {why}\n".encode())
                self.state["why"] = why
                self.kill()

    def end(self) -> None:
        """The ranks have ended: end every process that they started."""
        if self.ranks:
            self.kill()
            end_children()
            for key in list(self.selector.get_map().values()):
                while key.data != WAKE and self.read(key.fd):
                    pass  # what is still in the pipe
        bad = self.ranks.exit
        stopped = self.order.get("stopped_exit")  # the exit code that means: stopped as asked, and saved
        early = bool(self.asked_stop) and (bad != 0 or stopped == 0)  # else it had done all its work before it could stop
        cause = "stopped" if early or not self.ranks else ("failed" if bad else "finished")
        forced = early and self.killed and any(code == -signal.SIGKILL for code in self.ranks.codes)
        forced |= early and stopped is not None and bad != stopped  # its exit code says that it did not complete the save
        if self.ranks.failed_changing and not self.asked_stop:  # the checkpoint is there still
            cause, forced = "stopped", True
            self.state["why"] = f"rank {self.ranks.rank_of(self.ranks.first_failed or 0)} failed while the gang changed"
        lost = self.log.close() if self.ranks else 0
        self.write_state(phase="over", cause=cause, exit=bad, forced=forced, lost=lost, **stamp("ended"))
        self.spawner.leave()


# Time slices: jobs that need parts of a device and cannot be on it side by side run in turns, each for its part of a
# short period.
#
# No message is needed when a turn ends: all keepers read the same clock of the machine, and each has its part of the
# period. So turns go on while the service is away. A job that is alone on a device has all of it. Keepers import
# this; it needs the standard library only.

PERIOD = 0.2  # seconds in which each job has had a turn


def share_out(parts: Mapping[str, float]) -> dict[str, tuple[float, float] | None]:
    """The part of the period of each job on one device, by the parts of the device that they asked for; None: all of it."""
    if len(parts) < 2:
        return dict.fromkeys(parts)
    total, at = sum(parts.values()), 0.0
    found: dict[str, tuple[float, float] | None] = {}
    for job, part in sorted(parts.items()):
        found[job] = (at / total, (at + part) / total)
        at += part
    return found


def is_on(turn: Iterable[float], now: float | None = None) -> tuple[bool, float]:
    """Whether it is this one's turn, and how many seconds until that changes."""
    first, last = turn
    at = ((time.monotonic() if now is None else now) % PERIOD) / PERIOD
    if first <= at < last:
        return True, (last - at) * PERIOD
    return False, ((first - at) % 1.0) * PERIOD


# Starts the keeper of a node's part of a gang as a program that lives no longer than the actor which asked for it.
#
# The actor holds the other end of a socket. However the actor ends, its end is closed, and everything that the
# keeper has started ends. The program is no child of the actor: Ray kills the children of a worker that it ends,
# before they could tidy up.

_TETHERED = (
    sys.executable, "-S", "-E", "-c",
    f"import sys; sys.path[0] = {ROOT!r}; from gantline.live.runners.local.keeper import become_keeper; become_keeper(sys.argv[1])",
)  # fmt: skip


def begin_keeper(folder: str) -> socket.socket:
    """Let a keeper begin in that folder; the socket is at its end when the keeper and all that it has started are gone."""
    ours, theirs = socket.socketpair()
    with theirs, open(os.path.join(folder, "keeper.log"), "ab") as log:
        subprocess.run((*_TETHERED, folder), stdin=theirs.fileno(), stdout=log, stderr=log, cwd=folder, check=True)
    return ours


def become_keeper(folder: str) -> None:
    """The program itself."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # until the keeper handles it
    if os.fork():
        os._exit(0)
    code = 1
    try:
        os.setsid()
        code = watch_over(folder, Keeper(folder).run, tether=0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)
