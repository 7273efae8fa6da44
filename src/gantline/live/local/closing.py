"""Closing the device files of GPUs that a job does not hold to its processes, where jobs run as accounts of their own.

Two methods exist. A control group for devices (version 1) makes the kernel refuse them, by whatever path they are opened. Where there is
none, as under version 2, which asks for a program in the kernel instead, the job has mounts of its own, in which a file that no account may
open lies over each of them. An account can undo neither. Where root may do neither, the permissions of the files decide.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gantline.live.local.devices import Machine, gpus_found
from gantline.live.local.limits import Groups
from gantline.live.local.mounts import cover

DEV = Path("/dev")
_GPU = re.compile(r"^nvidia(\d+)$")
_NEVER_THERE = "c 195:254 rwm"  # what a trial closes: NVIDIA's number of a device that is not one of its GPUs


@dataclass(frozen=True)
class Closing:
    """The files of all GPUs of this machine, by what CUDA calls them, and the way to close them: "group", "mount", "" for none."""

    files: Mapping[str, str] = field(default_factory=dict)
    way: str = ""

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
        return [path for name, path in self.files.items() if name not in held] if self.way else []

    def numbers(self, held: Sequence[str]) -> list[str]:
        """The same as a control group takes it."""
        found = (os.stat(path).st_rdev for path in self.closed_to(held)) if self.way == "group" else ()
        return [f"c {os.major(device)}:{os.minor(device)} rwm" for device in found]

    def covered(self, held: Sequence[str], folder: Path) -> dict[str, Any] | None:
        """The same as files to be covered, and the lid that covers them, which is made in the folder."""
        paths = self.closed_to(held) if self.way == "mount" else []
        return {"files": paths, "lid": make_lid(folder)} if paths else None

    def visible(self, held: Sequence[str]) -> list[str]:
        """What CUDA calls these GPUs where it can open no others: it counts only those that it can open."""
        return [str(k) for k in range(len(held))] if self.way and self.files and all(name.isdigit() for name in held) else list(held)

    def words(self) -> str:
        """A note for the operator; empty: there are no files to close."""
        if not self.files:
            return ""
        if self.way:
            by_mounts = "mounts of its own, because a control group for devices cannot be made here"
            return f"GPUs that a job does not hold are closed to it by {'a control group' if self.way == 'group' else by_mounts}"
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
