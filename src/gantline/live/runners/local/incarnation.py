"""One incarnation of a job on this machine: its folder, its keeper, and what is known of it.

The folder decides: the process that holds its lock is the keeper. A folder without a keeper and without an end is closed by writing
``over`` while holding the lock, after which no keeper can begin there.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gantline.live.runners.local.files import make_private, private, read_json, started_at, write_json
from gantline.live.runners.local.fork_server import KeeperForkServer
from gantline.live.runners.runner_events import Present

if TYPE_CHECKING:
    from gantline.live.runners.local.files import Values


_KILLED = "its keeper was killed"
_KEPT = ("epoch", "resumes", "base", "revision", "want", "saves", "lost")  # of an order, when it is over
OVERDUE = 5.0  # seconds beyond its grace after which a keeper that does not stop its job is ended itself


@dataclass
class Incarnation:
    """One incarnation of a job, under one epoch."""

    job: str
    epoch: int
    folder: Path
    row: int = -1
    devices: tuple[int, ...] = ()
    resumed: float = 0.0  # work that it began with
    believed: float = 0.0  # work that was believed done when it was ordered to stop
    is_trial: bool = False  # what it does is discarded at its end
    order: Values = field(default_factory=dict)
    state: Values = field(default_factory=dict)
    pidfd: int = -1  # holds the process above the keeper, or the keeper; -1: neither is known
    is_above: bool = False  # it is the process above
    seen: int = -1  # change time of state.json when it was last read
    switching: float = 0.0  # since when it is expected to go on with other devices, by the monotonic clock; 0: it is not
    target: tuple[int, ...] = ()  # those devices, in the order of its ranks where it has one for each
    refusal: str = ""  # why it goes on with the devices that it had
    saved_mark: int = -1  # change time of the mark that it leaves when it has saved
    stopping: float = 0.0  # when it was ordered to stop, by the monotonic clock; 0: it was not
    saving: float | None = None  # work that was believed done when it was asked to save
    saved: float | None = None  # the same, once it has
    generation: str = ""  # the life of the store in which it was begun

    @property
    def checkpoint(self) -> Path:
        """The folder for its saved work: the job's, or in a trial one of its own, which is empty at first and goes with it."""
        return self.folder / "checkpoint" if self.is_trial else self.folder.parent / "checkpoint"

    # --- beginning ------------------------------------------------------------------------------------------------------
    def begin(self, fork_server: KeeperForkServer) -> None:
        """Write the order down and start the keeper."""
        make_private(self.folder)
        self.write_order()
        self.pidfd, self.is_above = fork_server.begin(str(self.folder)), True

    def write_order(self, **news: Any) -> None:
        """Change the order, and signal the keeper to read it. OSError: the order is as it was, and may be repeated."""
        order = {"generation": self.generation, **self.order, **news}
        if news.get("want") == "stop" and not self.stopping:
            self.stopping = time.monotonic()
        write_json(str(self.folder / "order.json"), order)
        self.order = order
        if self.state.get("phase") != "over":
            if self.stopping:
                self.signal(signal.SIGCONT)  # it, or the process above it, may be halted
                self._wake_above()
            self.signal(signal.SIGHUP)

    def announce(self, grant: Values, /, **news: object) -> None:
        """Write a change down for the keeper, and for the runner of a restarted service, and then the grant that the job acts on."""
        self.write_order(**news)
        write_json(str(self.folder / "grant.json"), grant)

    def close(self) -> None:
        """Let no keeper begin here; only to be called where there is none."""
        make_private(self.folder)
        with contextlib.suppress(FileExistsError), open(self.folder / "over", "x", encoding="utf-8", opener=private):
            pass
        if self.state.get("phase") != "over":
            self.state |= {
                "phase": "over",
                "cause": "stopped" if not self.state else "failed",
                "exit": self.state.get("exit"),
                "why": _KILLED,
                "generation": self.generation,
            }
            write_json(str(self.folder / "state.json"), self.state)

    # --- what is known --------------------------------------------------------------------------------------------------
    @property
    def over(self) -> bool:
        return self.state.get("phase") == "over"

    def read(self) -> bool:
        """Read what the keeper has written; whether it is new."""
        try:
            changed = os.stat(self.folder / "state.json").st_mtime_ns
        except OSError:
            return False
        if changed == self.seen:
            return False
        found = read_json(str(self.folder / "state.json"))
        if not isinstance(found, dict):
            return False
        self.seen, before, self.state = changed, self.state, found
        return found != before

    def adopt(self) -> bool:
        """Take over what an earlier service has started; False: it has no keeper, and is closed."""
        self.order = read_json(str(self.folder / "order.json")) or {}
        self.epoch = int(self.order.get("epoch", self.epoch))  # it may have gone on under a later one
        self.devices = self.target = tuple(self.order.get("engine_devices", ()))
        self.is_trial = bool(self.order.get("trial", False))
        self.resumed, self.believed = float(self.order.get("resumed", 0.0)), float(self.order.get("believed", 0.0))
        self.read()
        self.generation = str(self.order.get("generation") or self.state.get("generation") or "")
        if self.over:
            return False
        if self.abandoned():
            return False
        grant = read_json(str(self.folder / "grant.json"))
        if isinstance(grant, dict) and grant.get("epoch") == self.epoch and not self.has_switched:
            self.switching, self.devices = time.monotonic(), tuple(self.order.get("previous_devices", self.devices))
        self.stopping = time.monotonic() if self.order.get("want") == "stop" else 0.0
        self._watch_again()
        return True

    @property
    def has_switched(self) -> bool:
        """Whether it goes on as its present epoch says, and the ranks that had to leave for that are gone."""
        if read_json(str(self.folder / "switched")) != self.epoch:
            return False
        change = self.order.get("change") or {}
        ends = (self.state.get("gang"), (self.state.get("refused") or {}).get("epoch"))
        return change.get("epoch") != self.epoch or self.epoch in ends

    def look_again(self) -> None:
        """Signal the keeper that the job has reported its switch, if the keeper has not seen it."""
        if read_json(str(self.folder / "switched")) == self.epoch:
            self.signal(signal.SIGHUP)

    def decided(self) -> bool:
        """Whether it is decided that the gang changes, or that it does not."""
        return (self.folder / f"switch.{self.epoch}").exists()

    def occupies(self, devices: Iterable[int]) -> bool:
        """Whether it is on one of these devices, or about to be."""
        here = {*self.devices, *(self.target if self.switching else ())}
        return not self.over and not here.isdisjoint(devices)

    def abandoned(self) -> bool:
        """Whether no keeper is there: then its processes are ended, and it is over."""
        if not self.folder.is_dir():
            return True
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if self.keeper_gone():  # one of the two is left
                self._watch_again()
            return False
        else:
            self.seen = -1
            self.read()  # the keeper may have come to its end just now
            if not self.over:
                self.end_strays()
                self.close()
            return True
        finally:
            os.close(lock)

    def keeper_gone(self) -> bool:
        """Whether the keeper and the process above it have ended, as far as that can be seen at no cost."""
        if self.pidfd >= 0:
            poll = select.poll()  # not select(), which cannot take file descriptors above 1023
            poll.register(self.pidfd, select.POLLIN)
            return bool(poll.poll(0))
        return True  # not known: look at the lock

    def _watch_again(self) -> None:
        """Watch whichever of the two is there still."""
        self.forget()
        for name in ("above", "pid"):
            pid = self._still(name)
            if pid:
                with contextlib.suppress(OSError):
                    self.pidfd, self.is_above = os.pidfd_open(pid), name == "above"
                    return

    def _still(self, name: str) -> int:
        """The process that the keeper wrote down under a name, if it still is that process; else 0."""
        pid = int(self.state.get(name, -1))
        return pid if pid > 0 and started_at(pid) == self.state.get({"pid": "born"}.get(name, f"{name}_born")) else 0

    def hurry(self) -> None:
        """End a keeper that is still there long after its grace, and when that does not help the process above it, too."""
        late = time.monotonic() - self.stopping - float(self.order.get("grace", 10.0))
        if not self.stopping or self.over or late < OVERDUE:
            return
        for name in ("pid", "above") if late > 2 * OVERDUE else ("pid",):
            pid = self._still(name)
            if pid:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        self._wake_above()

    def _wake_above(self) -> None:
        if self.is_above:
            self._signal_held(signal.SIGCONT)

    def _signal_held(self, number: int) -> None:
        if self.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self.pidfd, number)

    def end_strays(self) -> None:
        """The keeper was killed: whatever it had started ends too, wherever it has gone to."""
        mark = [f"GANTLINE_JOB_ID={self.job}".encode(), f"GANTLINE_FOLDER={self.folder}".encode()]
        for _ in range(100):  # until a pass finds none: they may fork meanwhile
            found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if pid != os.getpid() and _marked(pid, mark)]
            if not found:
                return
            for pid in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Send the keeper a signal; until its number is known, send it to the process above, which hands it on."""
        pid = self._still("pid")
        if not pid:
            self._signal_held(number)
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)

    def last_lines(self, count: int = 20) -> list[str]:
        """The end of its output."""
        try:
            with open(self.folder / "log", "rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - 16384))
                return file.read().decode(errors="replace").splitlines()[-count:]
        except OSError:
            return []

    def mark(self) -> int:
        """The change time of ``saved`` in the job's checkpoint folder, which it touches when it has saved; -1: it is not there."""
        try:
            return os.stat(self.checkpoint / "saved").st_mtime_ns
        except OSError:
            return -1

    def forget(self) -> None:
        """Release its file descriptor and, once it is over, what reports do not need."""
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd, self.is_above = -1, False
        if self.over and self.is_trial:
            shutil.rmtree(self.checkpoint, ignore_errors=True)
        if self.over:  # what was ordered is in its folder; what reports need is little
            self.order = {key: self.order[key] for key in _KEPT if key in self.order}


def _marked(pid: int, mark: list[bytes]) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            if file.read().rsplit(b")", 1)[1].split()[0] == b"Z":
                return False
        with open(f"/proc/{pid}/environ", "rb") as file:
            found = file.read().split(b"\0")
    except OSError:
        return False
    return all(one in found for one in mark)


# All incarnations that a home has: the newest of each job, and those of them that are not over.


@dataclass(frozen=True)
class Loss:
    """Devices that are declared lost. It stands among the orders: what was ordered before it may be about to start there."""

    devices: frozenset[int]
    missed: tuple[Incarnation, ...] = ()  # gangs there that have not heard of it yet; who starts there by now is none of them


class Incarnations:
    """The newest incarnation of each job."""

    def __init__(self, new: Callable[..., Incarnation] = Incarnation, generation: str = "") -> None:
        self._new, self.generation = new, generation  # the present life of the store
        self.newest: dict[str, Incarnation] = {}  # by job
        self.live: dict[str, Incarnation] = {}  # those of them that were not over when we last looked

    def new(self, job: str, epoch: int, folder: Path, row: int = -1, devices: tuple[int, ...] = ()) -> Incarnation:
        """One that begins in this life of the store."""
        one = self._new(job, epoch, folder, row, devices)
        one.generation = self.generation
        return one

    def __getitem__(self, job: str) -> Incarnation:
        return self.newest[job]

    def get(self, job: str) -> Incarnation | None:
        """The newest of a job; None: there is none."""
        return self.newest.get(job)

    def enter(self, one: Incarnation) -> None:
        """From now on this is the newest of its job."""
        self.newest[one.job] = self.live[one.job] = one

    def alive(self) -> list[Incarnation]:
        """Those that are not over: a machine that has run a hundred thousand jobs looks at the few that run."""
        for job in [job for job, one in self.live.items() if one.over]:
            del self.live[job]
        return list(self.live.values())

    def adopt(self, jobs: Path, is_over: Callable[[str], bool]) -> list[Present]:
        """Read the folders of jobs, and take over what still runs there.

        Jobs that are known to be over are passed over: of a hundred thousand folders only a few are read. What an earlier life of the
        store has begun is stopped, and saves.
        """
        for folder in sorted(one for one in jobs.glob("*") if not is_over(one.name)):
            epochs = sorted((int(one.name) for one in folder.iterdir() if one.name.isdigit()), reverse=True) if folder.is_dir() else []
            for place, epoch in enumerate(epochs):
                one = self.new(folder.name, epoch, folder / str(epoch))
                alive = one.adopt()
                if one.generation != self.generation:  # how it ended counts for nothing; while it runs it has its devices
                    if alive:
                        one.write_order(want="stop")
                        self.enter(one)
                    continue
                if place == 0:
                    self.enter(one)
                elif alive:  # an older one beside a newer one: its time is over
                    one.write_order(want="stop", grace=0.0)
        return [_present(one) for one in self.newest.values()]

    def forget(self, jobs: Iterable[str]) -> None:
        """Forget jobs that are over."""
        for job in jobs:
            self.newest.pop(job, None)


def _present(one: Incarnation) -> Present:
    named = str(one.order.get("env", {}).get("GANTLINE_DEVICES", ""))
    since = one.state.get("started")
    devices = tuple(one.order.get("device_names") or (name for name in named.split(",") if name))
    return Present(one.job, one.epoch, () if one.over else devices, None if since is None else float(since), one.over)
