"""Starting a job's processes: in one process group, within their limits, with their output in a pipe. Keepers import this."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import resource
import signal
import subprocess
import sys

from gantline.live.runners.local.forked_programs import ForkedRank, PythonProgram

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gantline.live.runners.local.files import Values


_CLOSED = "devices.deny"
_CORES = "GANTLINE_CORES"
_SUBREAPER, _PARENT_DEATH, _DUMPABLE = 36, 1, 4  # prctl
#: signals that a keeper handles, and that its children handle by default
RECEIVED = (signal.SIGHUP, signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)


def take_orphans_in() -> None:
    """A descendant that loses its parent becomes a child of this process, whatever group it is in."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


class Spawner:
    """Starts processes within the limits of one incarnation; `limits` says what enforces them."""

    def __init__(self) -> None:
        self.groups: list[str] = []
        self.bounds = Bounds({})
        self.limits = "none"
        self.files: list[int] | None = None  # how many may be open, soft and hard; None: as many as for the keeper
        self.account: Values = {}  # the account of the processes, where it is not the keeper's own
        self.folder = ""
        self.covered: Values | None = None  # device files of others, and what lies over them
        self.cores: list[int] = []  # that the next process is bound to; none: to no others than the keeper
        self.not_closed = ""  # why devices of others could not be closed; nothing runs then
        self._libc = ctypes.CDLL(None)

    def enter(self, order: Values) -> None:
        """Make control groups with the limits, where the system lets us; what they cannot hold is held otherwise."""
        self.bounds = Bounds(order.get("bounds", {}))
        self.files = order.get("files")
        held = ["rlimit"] if self.bounds else []
        for group, files in order.get("groups", ()):
            try:
                os.makedirs(group, exist_ok=True)
                for name, value in files.items():
                    for line in value.splitlines():
                        with open(os.path.join(group, name), "w", encoding="ascii") as target:
                            target.write(line)
            except OSError as error:
                held.append(f"none ({error.strerror})")
                self.not_closed = str(error.strerror) if _CLOSED in files else self.not_closed
            else:
                self.groups.append(group)
                held.append("cgroup")
        self.covered = order.get("covered")
        self.limits = ", ".join(sorted(set(held))) or "none"

    def start(self, order: Values, env: dict[str, str], folder: str, group: int) -> tuple[subprocess.Popen[bytes] | ForkedRank, int]:
        """Start one process, and the end of the pipe from which its output is read."""
        if self.not_closed:
            raise OSError(f"devices of other jobs cannot be closed to it: {self.not_closed}")
        command = ["/bin/sh", "-c", order["command"][0]] if order.get("shell") else list(order["command"])
        self.account, self.folder = order.get("account") or {}, order.get("cwd") or folder
        self.cores = [int(core) for core in env.get(_CORES, "").split(",") if core]
        read_end, write_end = os.pipe2(os.O_CLOEXEC)
        program = None if order.get("shell") else PythonProgram.of(command, env)
        process: subprocess.Popen[bytes] | ForkedRank
        try:
            process = (
                self._fork(program, env, write_end, group)
                if program is not None
                else subprocess.Popen(
                    command,
                    cwd="/" if self.account else self.folder,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=write_end,
                    stderr=write_end,
                    process_group=group,
                    preexec_fn=self._before_exec,
                )
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            os.close(read_end)
            if isinstance(error, subprocess.SubprocessError) and self.account:
                closing = ", or devices of other jobs cannot be closed to it" if self.covered else ""
                raise OSError(f"account {self.account['name']} cannot enter {self.folder}{closing}") from None
            raise
        finally:
            os.close(write_end)
        os.set_blocking(read_end, False)
        return process, read_end

    def _fork(self, program: PythonProgram, env: dict[str, str], output: int, group: int) -> ForkedRank:
        """A process that becomes the program without a start; what prevents it is raised here, as `Popen` does."""
        report, reported = os.pipe2(os.O_CLOEXEC)

        def work() -> None:
            try:
                os.setpgid(0, group)
                for number, source in ((0, os.open(os.devnull, os.O_RDONLY)), (1, output), (2, output)):
                    os.dup2(source, number)
                os.chdir("/" if self.account else self.folder)
                self._before_exec()
                if self.account:  # an account that may not execute the interpreter could not have started it
                    os.stat(sys.executable)
                    self._libc.prctl(_DUMPABLE, 1, 0, 0, 0)  # a change of the account takes from it what its own /proc shows
            except BaseException as error:
                os.write(reported, str(error).encode() or b"?")
                raise
            kept = sys.stdin.fileno()  # `multiprocessing` has given it an empty file
            os.closerange(3, kept)
            os.closerange(kept + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])  # with it the report, which says that all is well
            program.become(env)

        rank = ForkedRank(work)
        os.close(reported)
        with open(report, "rb") as file:
            why = file.read()
        if why:
            raise subprocess.SubprocessError(why.decode(errors="replace")) if self.account else OSError(why.decode(errors="replace"))
        return rank

    def _before_exec(self) -> None:
        self._libc.prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
        for number in RECEIVED:
            signal.signal(number, signal.SIG_DFL)
        for group in self.groups:
            with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
        if self.cores:
            os.sched_setaffinity(0, self.cores)
        if self.files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.files[0], self.files[1]))
        if self.covered:
            cover(self.covered["files"], self.covered["lid"])
        if self.account:
            self._become()
        self.bounds.bind()

    def _become(self) -> None:
        """Run as the account from now on; the folder is entered last, with the permissions of the account."""
        os.setgroups(self.account["groups"])
        os.setgid(self.account["gid"])
        os.setuid(self.account["uid"])
        os.umask(0o077)
        self._libc.prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0)  # another owner has forgotten it
        os.chdir(self.folder)

    def kill_groups(self) -> None:
        """End every process in the control groups."""
        for group in self.groups:
            with contextlib.suppress(OSError), open(os.path.join(group, "cgroup.procs"), encoding="ascii") as file:
                for pid in file.read().split():
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(int(pid), signal.SIGKILL)

    def leave(self) -> None:
        """No process is left."""
        for group in self.groups:
            with contextlib.suppress(OSError):
                os.rmdir(group)


# Limits where no control group can be made: what the system holds each process to, and what the keeper sees of all
# of them together.
#
# The system's own limits (``setrlimit``) are per process or per user: memory is bounded for each process (its data:
# the heap and private writable mappings, so that what a driver merely reserves does not count), processes and
# threads for the user together, and never for root. So the keeper also counts all descendants of a job, their
# threads and their resident memory, and ends a job that has more than it may. Between two counts it can have more
# for a moment. Keepers import this; it needs the standard library only.

_PAGE = resource.getpagesize()
_OFTEN, _SELDOM = 0.05, 0.2  # seconds between two counts: when more than half of something is used, and otherwise


class Bounds:
    """The limits of one incarnation; 0: none."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.pids, self.memory, self.cpu = (int(values.get(name, 0)) for name in ("pids", "memory", "cpu"))
        self._near = False

    def __bool__(self) -> bool:
        return bool(self.pids or self.memory)

    @property
    def pause(self) -> float:
        """Seconds until the next count."""
        return _OFTEN if self._near else _SELDOM

    def bind(self) -> None:
        """Hold this process, and whatever it will start, to what the system can hold it to; between fork and exec."""
        for kind, amount in (
            (resource.RLIMIT_DATA, self.memory),
            (resource.RLIMIT_CPU, self.cpu),
            (resource.RLIMIT_NPROC, _threads_of_user() + self.pids if self.pids else 0),
        ):
            if amount:
                hard = resource.getrlimit(kind)[1]
                most = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
                with contextlib.suppress(OSError, ValueError):
                    resource.setrlimit(kind, (most, most))

    def exceeded(self, keeper: int) -> str:
        """The limit that all processes below the keeper exceed, as text; empty: none."""
        processes = _below(keeper)
        threads, memory = sum(one[0] for one in processes), sum(one[1] for one in processes)
        self._near = 2 * threads > self.pids > 0 or 2 * memory > self.memory > 0
        if self.pids and threads > self.pids:
            return f"had {threads} processes and threads, and may have {self.pids}"
        if self.memory and memory > self.memory:
            return f"used {memory / 2**30:.2f} GiB of memory, and may use {self.memory / 2**30:.2f}"
        return ""


def cpu_seconds(time_limit: float) -> int:
    """CPU time that no process of a job with this time limit can need on this machine; 0: there is no limit."""
    return math.ceil(time_limit + 60.0) * (os.cpu_count() or 1) if math.isfinite(time_limit) else 0


def _below(parent: int) -> list[tuple[int, int]]:
    """Threads and resident bytes of all descendants of a process."""
    children: dict[int, list[int]] = {}
    about: dict[int, tuple[int, int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rsplit(b")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(name))
        about[int(name)] = (0 if fields[0] == b"Z" else int(fields[17]), int(fields[21]) * _PAGE)
    found, open_ = [], [parent]
    while open_:
        below = children.get(open_.pop(), [])
        open_ += below
        found += [about[pid] for pid in below]
    return found


def _threads_of_user() -> int:
    own, found = os.getuid(), 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == own:
                    found += len(os.listdir(f"/proc/{name}/task"))
    return found


# Private mounts of a process, in which some files cannot be opened. Keepers import this.

_OWN_MOUNTS, _BIND, _RECURSIVE, _SLAVE = 0x20000, 4096, 16384, 1 << 19


def cover(paths: Sequence[str], lid: str) -> None:
    """From now on this process and its children find the file `lid` in place of each of these; other processes see no change.

    Mounts that are made elsewhere later are seen here as well, not the other way round.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(_OWN_MOUNTS))
    _check(libc.mount(None, b"/", None, _RECURSIVE | _SLAVE, None))
    for path in paths:
        _check(libc.mount(os.fsencode(lid), os.fsencode(path), None, _BIND, None))


def _check(failed: int) -> None:
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
