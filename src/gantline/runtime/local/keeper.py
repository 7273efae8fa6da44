"""Keeps one incarnation of a job: starts its ranks, captures their output, carries out signals, writes down what becomes of them.

Run as a program of its own (``python keeper.py FOLDER``), so that jobs outlive the service. It imports the standard library only, to start
quickly. In its folder: ``order.json`` (what shall be; the service writes it and sends SIGHUP), ``state.json`` (what is; written here, whole
or not at all), ``lock`` (held while the keeper lives), ``over`` (the incarnation is over; no keeper may begin), ``log``.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from typing import Any

_SUBREAPER, _PARENT_DEATH = 36, 1  # prctl
_TICK = 0.5  # seconds between looks at what no signal tells


def write_json(path: str, value: Any) -> None:
    """Whole or not at all, and on the disk when it returns."""
    fresh = f"{path}.{os.getpid()}"
    with open(fresh, "w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)


def read_json(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def started_at(pid: int) -> int:
    """When a process was started, in ticks since the boot: with it a number that was given again is not mistaken for the old process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rsplit(b")", 1)[1].split()[19])
    except (OSError, IndexError, ValueError):
        return -1


def children_of(parent: int) -> list[int]:
    """Processes whose parent this is."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rsplit(b")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == parent and fields[0] != b"Z":
                found.append(int(name))
    return found


class Log:
    """Output, bounded: when a half is full it becomes ``log.1`` and the one before it is gone."""

    def __init__(self, path: str, most: int) -> None:
        self.path, self.half = path, max(int(most) // 2, 4096)
        self.file = open(path, "ab", buffering=0)  # noqa: SIM115  it stays open
        self.size = self.file.tell()
        self.lost = 0

    def write(self, data: bytes) -> None:
        try:
            if self.size + len(data) > self.half and self.size:
                self.file.close()
                os.replace(self.path, self.path + ".1")
                self.file = open(self.path, "ab", buffering=0)  # noqa: SIM115
                self.size = 0
            self.file.write(data)
            self.size += len(data)
        except OSError:
            self.lost += len(data)  # the disk is full: the job goes on


class Keeper:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.order: dict[str, Any] = {}
        self.ranks: list[subprocess.Popen[bytes]] = []
        self.exits: dict[int, int] = {}
        self.begun: dict[int, bytes] = {}  # by rank: the beginning of a line
        self.groups: list[str] = []
        self.limits = "none"
        self.state: dict[str, Any] = {"phase": "starting", "pid": os.getpid(), "born": started_at(os.getpid()), "revision": 0, "saves": 0}
        self.asked_stop = 0.0  # when the stop signal went out
        self.killed = False
        self.suspended = False
        self.selector = selectors.DefaultSelector()
        self.libc = ctypes.CDLL(None)

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def tell(self, **news: Any) -> None:
        self.state.update(news)
        while True:
            try:
                write_json(self.path("state.json"), self.state)
                return
            except OSError:  # the disk is full, perhaps: the end must be written down, everything else is asked for again
                if self.state["phase"] != "over" or not os.path.isdir(self.folder):
                    return
                time.sleep(1.0)

    # --- life -----------------------------------------------------------------------------------------------------------
    def run(self) -> int:
        lock = os.open(self.path("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return 3  # another keeper is at work
        if os.path.exists(self.path("over")):
            return 4  # too late: the service has given this incarnation up
        self.libc.prctl(_SUBREAPER, 1, 0, 0, 0)  # whoever leaves the process group is still ours to end
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGHUP, signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        self.selector.register(wake_read, selectors.EVENT_READ, "wake")
        self.look()
        if self.order.get("want") == "run":
            if not self.start():
                return 0
        else:
            self.end()
            return 0
        while not self.finished():
            for key, _ in self.selector.select(self.until_next()):
                if key.data == "wake":
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake_read, 4096)
                else:
                    self.read(key.fd)
            self.look()
            self.reap()
        self.end()
        return 0

    def start(self) -> bool:
        """Start all ranks, or none."""
        order = self.order
        self.log = Log(self.path("log"), order.get("log_bytes", 64 << 20))
        command = ["/bin/sh", "-c", order["command"][0]] if order.get("shell") else list(order["command"])
        self.enter_groups()
        for number, extra in enumerate(order["ranks"]):
            read_end, write_end = os.pipe2(os.O_CLOEXEC)
            try:
                process = subprocess.Popen(
                    command,
                    cwd=order.get("cwd") or self.folder,
                    env={**order["env"], **extra},
                    stdin=subprocess.DEVNULL,
                    stdout=write_end,
                    stderr=write_end,
                    process_group=self.ranks[0].pid if self.ranks else 0,
                    preexec_fn=self.before_exec,
                )
            except (OSError, ValueError) as error:
                os.close(read_end)
                os.close(write_end)
                self.log.write(f"gantline: cannot run {command[0]!r}: {error}\n".encode())
                self.kill()
                self.tell(phase="over", cause="failed", exit=127, ended=time.time(), why=f"cannot run {command[0]!r}: {error}")
                return False
            os.close(write_end)
            os.set_blocking(read_end, False)
            self.selector.register(read_end, selectors.EVENT_READ, number)
            self.ranks.append(process)
        told = [{"pid": rank.pid, "born": started_at(rank.pid)} for rank in self.ranks]
        self.tell(phase="running", group=self.ranks[0].pid, ranks=told, started=time.time(), limits=self.limits, revision=self.revision())
        return True

    def before_exec(self) -> None:
        self.libc.prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
        for number in (signal.SIGHUP, signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        for group in self.groups:
            with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write(str(os.getpid()))

    def enter_groups(self) -> None:
        """Control groups with the limits, where the system lets us make them; ``limits`` says what holds."""
        for group, files in self.order.get("groups", ()):
            try:
                os.makedirs(group, exist_ok=True)
                for name, value in files.items():
                    with open(os.path.join(group, name), "w", encoding="ascii") as target:
                        target.write(value)
            except OSError as error:
                self.limits = f"none ({error.strerror})"
            else:
                self.groups.append(group)
                self.limits = "cgroup"

    def revision(self) -> int:
        return int(self.order.get("revision", 0))

    # --- what shall be --------------------------------------------------------------------------------------------------
    def look(self) -> None:
        """Make true what the order says, whenever it was written."""
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
                self.tell(phase="stopping")
            elif now >= self.asked_stop + self.order.get("grace", 10.0) and not self.killed:
                self.kill()
            return
        if self.revision() == self.state["revision"]:
            return
        if bool(self.order.get("suspended")) is not self.suspended:
            self.suspended = bool(self.order.get("suspended"))
            self.signal(signal.SIGSTOP if self.suspended else signal.SIGCONT)
        if self.order.get("saves", 0) > self.state["saves"] and self.order.get("save_signal"):
            self.signal(getattr(signal, f"SIG{self.order['save_signal']}", 0))
        phase = "suspended" if self.suspended else "running"
        self.tell(phase=phase, saves=self.order.get("saves", 0), revision=self.revision())

    def until_next(self) -> float:
        if self.asked_stop and not self.killed:
            return max(0.0, min(_TICK, self.asked_stop + float(self.order.get("grace", 10.0)) - time.monotonic()))
        return _TICK

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.ranks[0].pid, number)

    def kill(self) -> None:
        """Everything that this incarnation has started ends now."""
        self.killed = True
        if self.ranks:
            self.signal(signal.SIGKILL)
        for group in self.groups:
            with contextlib.suppress(OSError), open(os.path.join(group, "cgroup.procs"), encoding="ascii") as file:
                for pid in file.read().split():
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(int(pid), signal.SIGKILL)

    # --- what is --------------------------------------------------------------------------------------------------------
    def read(self, pipe: int) -> bool:
        """Whether there may be more."""
        try:
            data = os.read(pipe, 65536)
        except BlockingIOError:
            return False
        if len(self.order["ranks"]) > 1:
            self.write_of(self.selector.get_key(pipe).data, data)
        elif data:
            self.log.write(data)
        if not data:
            self.selector.unregister(pipe)
            os.close(pipe)
        return bool(data)

    def write_of(self, rank: int, data: bytes) -> None:
        """Lines of one rank of several, each with its number before it; the beginning of a line waits for its end."""
        text = self.begun.pop(rank, b"") + data
        lines = text.splitlines(keepends=True)
        if data and lines and not lines[-1].endswith(b"\n") and len(lines[-1]) < 65536:
            self.begun[rank] = lines.pop()
        if lines:
            self.log.write(b"".join(b"[%d] %s" % (rank, one) for one in lines))

    def reap(self) -> None:
        for number, rank in enumerate(self.ranks):
            if number not in self.exits and rank.poll() is not None:
                self.exits[number] = rank.returncode
                if rank.returncode and not self.asked_stop and len(self.ranks) > 1:
                    self.state.setdefault("first", number)
                    self.kill()  # a gang runs whole or not at all
        while True:  # orphans that came to us
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG) if len(self.exits) == len(self.ranks) else (0, 0)
            except ChildProcessError:
                return
            if pid == 0:
                return

    def finished(self) -> bool:
        return len(self.exits) == len(self.ranks)

    def end(self) -> None:
        """The ranks have ended: nobody that they started may stay."""
        if self.ranks:
            self.kill()
            deadline = time.monotonic() + 10.0
            while time.monotonic() < deadline:
                left = children_of(os.getpid())
                if not left:
                    break
                for pid in left:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    while os.waitpid(-1, os.WNOHANG)[0]:
                        pass
                time.sleep(0.01)
            for key in list(self.selector.get_map().values()):
                while key.data != "wake" and self.read(key.fd):
                    pass  # what is still in the pipe
        codes = [self.exits[number] for number in sorted(self.exits)]
        bad = self.exits[self.state["first"]] if "first" in self.state else next((code for code in codes if code), 0)
        cause = "stopped" if self.asked_stop or not self.ranks else ("failed" if bad else "finished")
        forced = bool(self.asked_stop) and self.killed and any(code == -signal.SIGKILL for code in codes)
        lost = self.log.lost if self.ranks else 0
        self.tell(phase="over", cause=cause, exit=bad, forced=forced, ended=time.time(), lost=lost)
        for group in self.groups:
            with contextlib.suppress(OSError):
                os.rmdir(group)


if __name__ == "__main__":
    sys.exit(Keeper(os.path.abspath(sys.argv[1])).run())
