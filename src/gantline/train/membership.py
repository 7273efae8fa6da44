"""The identity of this process: which job, which incarnation of it, which of its ranks; read from the environment that the runner set.

A process that was not scheduled has none of these variables. It is then a job of its own with one rank and a folder on this
machine, so that a training script needs no second way to be run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TextIO


@dataclass(frozen=True, slots=True)
class Membership:
    """The identity that the runner gave this process."""

    url: str  # of the service; "" where there is none
    token: str  # the job's own, good for its progress alone
    job: str
    epoch: int  # the incarnation: the service accepts reports of the newest one only
    folder: Path  # the same for all incarnations of the job
    gpus: int  # devices that the job holds
    devices: tuple[str, ...]
    rank: int
    local_rank: int
    world: int  # ranks in all
    restarts: int
    address: str = "127.0.0.1"  # where the ranks meet
    port: int = 29500
    home: Path | None = None  # the incarnation's folder, where the runner writes changes
    is_joining: bool = False  # it was started beside a gang that runs, to become a rank of it

    def at(self, port: int) -> Membership:
        """The same rank of a gang that meets at another port."""
        return replace(self, port=port)

    @property
    def is_scheduled(self) -> bool:
        """Whether this process reports to a service."""
        return bool(self.url and self.job)

    @classmethod
    def read(cls, environment: Mapping[str, str] | None = None, folder: str | Path = "checkpoint") -> Membership:
        """The membership that the environment states; ``folder`` is used where it names none."""
        given = os.environ if environment is None else environment
        world = _count(given, "WORLD_SIZE", 1, least=1)
        rank = _count(given, "RANK", 0)
        if rank >= world:
            raise ValueError(f"RANK is {rank} of WORLD_SIZE {world}: ranks run from 0 to {world - 1}")
        url = given.get("GANTLINE_URL", "").rstrip("/")
        if url and not url.startswith(("http://", "https://")):
            raise ValueError(f"GANTLINE_URL is '{url}': write http://HOST:PORT")
        return cls(
            url=url,
            token=given.get("GANTLINE_JOB_TOKEN", ""),
            job=given.get("GANTLINE_JOB_ID", ""),
            epoch=_count(given, "GANTLINE_EPOCH", 0),
            folder=Path(given.get("GANTLINE_CHECKPOINT") or folder),
            gpus=_count(given, "GANTLINE_GPUS", world),
            devices=tuple(name for name in given.get("GANTLINE_DEVICES", "").split(",") if name),
            rank=rank,
            local_rank=_count(given, "LOCAL_RANK", rank),
            world=world,
            restarts=_count(given, "RESTART_COUNT", 0),
            address=given.get("MASTER_ADDR") or "127.0.0.1",
            port=_count(given, "MASTER_PORT", 29500),
            home=Path(given["GANTLINE_FOLDER"]) if given.get("GANTLINE_FOLDER") else None,
            is_joining=given.get("GANTLINE_JOINING") == "1",
        )


def _count(given: Mapping[str, str], name: str, default: int, least: int = 0) -> int:
    text = given.get(name, "").strip()
    if not text:
        return default
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise ValueError(f"{name} is '{text}': it must be a whole number of {least} or more")
    return value


# Short runs for a profiler: a job that ends after so many steps, and notes when it made them.
#
# ``GANTLINE_TRIAL_STEPS`` says how many steps to make; the process then ends with code 0 and saves nothing.
# ``GANTLINE_TRIAL_LOG`` names a file for lines of "seconds steps", so that a profiler can see the speed of a job
# that runs next to another one.

_OFTEN = 0.05  # seconds between two notes


@dataclass(slots=True)
class Trial:
    """What a profiler asks of this process; usually nothing."""

    steps: int = 0
    log: TextIO | None = None
    _noted: float = field(default=0.0)

    @classmethod
    def read(cls) -> Trial:
        """What the environment asks for."""
        text, path = os.environ.get("GANTLINE_TRIAL_STEPS", ""), os.environ.get("GANTLINE_TRIAL_LOG", "")
        first = os.environ.get("RANK", "0") == "0"
        return cls(int(text) if text.isdigit() else 0, open(path, "a", buffering=1, encoding="ascii") if path and first else None)

    def is_over(self, made: int) -> bool:
        """Whether so many steps are enough."""
        return self.steps > 0 and made >= self.steps

    def note(self, made: int) -> None:
        """A step was made."""
        if self.log is None:
            return
        now = time.monotonic()
        if now - self._noted >= _OFTEN:
            self._noted = now
            self.log.write(f"{now:.6f} {made}\n")
