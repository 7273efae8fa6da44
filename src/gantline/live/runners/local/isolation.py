"""The account of a job's processes: where root serves, each user's jobs run as an account of this machine, which keeps users apart.

A user of the service is no account by itself: an operator says which one it is (``gantline user add``), or it is the one of the same name.
The jobs of the service's owner run as the service does; jobs of others never run as root.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import stat
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gantline.core.errors import NotFoundError, RefusedError
from gantline.live.runners.local.devices import Machine, gpus_found
from gantline.live.runners.local.spawning import cover
from gantline.live.runners.runner_context import Accounts, NoAccountError

_REACHED = 0o711  # a folder that others may pass through, and not look into


@dataclass(frozen=True, slots=True)
class Account:
    """An account of this machine."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str

    @staticmethod
    def find(name: str) -> Account:
        """The account of that name; never root's."""
        try:
            found = pwd.getpwnam(name)
        except (KeyError, ValueError):
            raise NotFoundError(f"this machine has no account '{name[:64]}'", where="account", fix="see getent passwd") from None
        if found.pw_uid == 0:
            raise RefusedError(f"'{name[:64]}' is root, and jobs of users do not run as root", where="account", fix="name another account")
        groups = tuple(os.getgrouplist(name, found.pw_gid))
        return Account(name, found.pw_uid, found.pw_gid, groups, found.pw_dir, found.pw_shell)

    def to_json(self) -> dict[str, Any]:
        """What a keeper needs of it."""
        return {"name": self.name, "uid": self.uid, "gid": self.gid, "groups": list(self.groups)}

    @property
    def variables(self) -> dict[str, str]:
        """The variables that a login would set."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name, "SHELL": self.shell}

    def give(self, home: Path, folder: Path, *own: Path) -> None:
        """These folders are the account's alone; it can reach them, and sees nothing else of the home.

        The folder of the incarnation stays the service's: an account that could write there could put links where the keeper writes.
        """
        for one in (home, home / "jobs", folder.parent, folder):
            one.mkdir(mode=_REACHED, exist_ok=True)
            one.chmod(_REACHED)
        for one in own:
            one.mkdir(mode=0o700, exist_ok=True)
            os.chown(one, self.uid, self.gid, follow_symlinks=False)


@dataclass(frozen=True)
class LocalAccounts(Accounts):
    """Which account the jobs of a user run as."""

    apart: bool = False  # whether they do at all; else all run as the service does
    owner: str = ""
    named: Callable[[], Mapping[str, str]] = dict  # accounts by user, as an operator has set them

    def find(self, name: str) -> Account:
        """The account of that name; never root's."""
        return Account.find(name)

    def of(self, user: str) -> Account | None:
        """The account of a user; None: the service's own."""
        if not self.apart or user == self.owner:
            return None
        try:
            return Account.find(self.named().get(user, user))
        except (NotFoundError, RefusedError) as error:
            raise NoAccountError(
                f"user '{user[:64]}' has no account to run jobs as: {error.what}",
                where="account", fix=f"gantline user add {user[:64]} --account NAME, or gantline up --run-as service",
            ) from None  # fmt: skip


# Control groups, where this system lets us make them: how many processes a job may have, how much memory, and no
# devices of others.
#
# Both kinds are known: one tree for all controllers (version 2), or a tree for each (version 1). Where neither can
# be written, as in most containers, `bounds.py` holds a job to its limits as well as it can; its state says which of
# the two it is.

_ROOT = Path("/sys/fs/cgroup")
CLOSED = "devices.deny"
_MEMORY = {1: "memory.limit_in_bytes", 2: "memory.max"}


@dataclass(frozen=True)
class Groups:
    """Folders below which a job's own groups can be made, by controller."""

    version: int = 0
    parents: Mapping[str, str] = ()  # type: ignore[assignment]

    def of(self, name: str, pids: int, memory: int, always: bool = False, closed: Sequence[str] = ()) -> list[tuple[str, dict[str, str]]]:
        """Groups for a job that has limits, or shall have one of its own: each with its files. Nothing where none can be made.

        Files are written line by line; `closed` are devices that the job must not open.
        """
        wanted: dict[str, tuple[str, int | str]] = {
            "pids": ("pids.max", pids),
            "memory": (_MEMORY.get(self.version, ""), memory),
            "devices": (CLOSED, "\n".join(closed)),
        }
        found: dict[str, dict[str, str]] = {}
        for controller, (file, amount) in wanted.items():
            if amount and controller in dict(self.parents):
                found.setdefault(str(Path(dict(self.parents)[controller]) / f"gantline-{name}"), {})[file] = str(amount)
        if always and not found and "pids" in dict(self.parents):
            found[str(Path(dict(self.parents)["pids"]) / f"gantline-{name}")] = {}
        return list(found.items())

    def beyond(self, pids: int, memory: int) -> dict[str, int]:
        """Limits that no group can hold here."""
        wanted = {"pids": pids, "memory": memory}
        return {name: amount for name, amount in wanted.items() if amount and name not in dict(self.parents)}


def find_groups(root: Path = _ROOT, own: str | None = None) -> Groups:
    """The control groups that can be written here."""
    lines = (own if own is not None else _own()).splitlines()
    paths = {controller: line.split(":", 2)[2] for line in lines for controller in line.split(":", 2)[1].split(",")}
    if (root / "cgroup.controllers").exists():
        base = root / paths.get("", "/").lstrip("/")
        with contextlib.suppress(OSError):
            (base / "cgroup.subtree_control").write_text("+pids +memory")
        able = _read(base / "cgroup.subtree_control").replace("+", "").split()
        return Groups(2, {name: str(base) for name in ("pids", "memory") if name in able and _writable(base)})
    bases = {name: root / name / paths.get(name, "/").lstrip("/") for name in ("pids", "memory", "devices")}
    return Groups(1, {name: str(base) for name, base in bases.items() if base.is_dir() and _writable(base)})


def _writable(base: Path) -> bool:
    probe = base / f"gantline-probe-{os.getpid()}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError:
        return False
    return True


def _own() -> str:
    return _read(Path("/proc/self/cgroup"))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


# Closing the device files of GPUs that a job does not hold to its processes, where jobs run as accounts of their own.
#
# Two methods exist. A control group for devices (version 1) makes the kernel refuse them, by whatever path they are
# opened. Where there is none, as under version 2, which asks for a program in the kernel instead, the job has mounts
# of its own, in which a file that no account may open lies over each of them. An account can undo neither. Where
# root may do neither, the permissions of the files decide.

DEV = Path("/dev")
_GPU = re.compile(r"^nvidia(\d+)$")
_NEVER_THERE = "c 195:254 rwm"  # what a trial closes: NVIDIA's number of a device that is not one of its GPUs


@dataclass(frozen=True)
class Closing:
    """The files of all GPUs of this machine, by what CUDA calls them, and the method that closes them: "group", "mount", "" for none."""

    files: Mapping[str, str] = field(default_factory=dict)
    method: str = ""

    @staticmethod
    def find(machine: Machine, groups: Groups, dev: Path | None = None) -> Closing:
        """Find the files of this machine, and try which method works."""
        files = device_files(machine, DEV if dev is None else dev)
        if not files:
            return Closing()
        if "devices" in dict(groups.parents) and _group_closes(Path(dict(groups.parents)["devices"])):
            return Closing(files, "group")
        return Closing(files, "mount" if _mount_closes(next(iter(files.values()))) else "")

    def closed_to(self, held: Sequence[str]) -> list[str]:
        """The files that are closed to a job that holds these GPUs."""
        return [path for name, path in self.files.items() if name not in held] if self.method else []

    def numbers(self, held: Sequence[str]) -> list[str]:
        """The same as a control group takes it."""
        found = (os.stat(path).st_rdev for path in self.closed_to(held)) if self.method == "group" else ()
        return [f"c {os.major(device)}:{os.minor(device)} rwm" for device in found]

    def covered(self, held: Sequence[str], folder: Path) -> dict[str, Any] | None:
        """The same as files to be covered, and the lid that covers them, which is made in the folder."""
        paths = self.closed_to(held) if self.method == "mount" else []
        return {"files": paths, "lid": make_lid(folder)} if paths else None

    def visible(self, held: Sequence[str]) -> list[str]:
        """What CUDA calls these GPUs where it can open no others: it counts only those that it can open."""
        return [str(k) for k in range(len(held))] if self.method and self.files and all(name.isdigit() for name in held) else list(held)

    def words(self) -> str:
        """A note for the operator; empty: there are no files to close."""
        if not self.files:
            return ""
        if self.method:
            by_mounts = "mounts of its own, because a control group for devices cannot be made here"
            return f"GPUs that a job does not hold are closed to it by {'a control group' if self.method == 'group' else by_mounts}"
        open_ = [path for path in self.files.values() if os.stat(path).st_mode & (stat.S_IROTH | stat.S_IWOTH)]
        what = f"and {', '.join(open_)} can be opened by every account" if open_ else "and none can be opened by every account"
        return f"GPUs of others are hidden from jobs, not closed to them: permissions decide, {what}"


def device_files(machine: Machine, dev: Path) -> dict[str, str]:
    """The file of each GPU by what CUDA calls it; files of GPUs that are not served are named by themselves."""
    there = sorted(dev.glob("nvidia*")) if dev.is_dir() else []
    by_minor = {int(found[1]): str(path) for path in there if (found := _GPU.match(path.name)) and stat.S_ISCHR(path.stat().st_mode)}
    gpus = gpus_found()
    minors = {name: gpu.minor for k, gpu in enumerate(gpus) for name in (str(k), gpu.uuid)} or {str(minor): minor for minor in by_minor}
    served = {name: minors[name] for names in machine.cuda.values() for name in names if minors.get(name) in by_minor}
    others = {path: minor for minor, path in by_minor.items() if minor not in served.values()}
    return {name: by_minor[minor] for name, minor in (served | others).items()}


def _group_closes(parent: Path) -> bool:
    trial = parent / f"gantline-closing-{os.getpid()}"
    try:
        trial.mkdir()
        (trial / "devices.deny").write_text(_NEVER_THERE)
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            trial.rmdir()
    return True


def make_lid(folder: Path) -> str:
    """An empty file that no account but root may open, to lie over device files."""
    lid = folder / "closed"
    lid.touch(mode=0o000)
    return str(lid)


def _mount_closes(path: str) -> bool:
    try:
        with TemporaryDirectory() as folder:
            lid = make_lid(Path(folder))
            return subprocess.run(["true"], preexec_fn=lambda: cover([path], lid), check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False
