"""What the keeper of a gang and its parts on the nodes say to each other, through the three streams of their step's `srun`.

`srun` hands its input to every task of a step and collects what they print, without slurmctld. Orders go in as lines of JSON; the output of
the job comes back as it is; news come back on the error stream, as lines that begin with a mark. Other lines there are Slurm's own.
Keepers import this; it needs the standard library only.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import time

TYPE_CHECKING = False

if TYPE_CHECKING:
    from gantline.live.runners.local.files import Values


BEAT = 3.0  # seconds between two signs of life, in both directions
LEASE = 30.0  # seconds of silence after which a part ends its ranks, and after which its gang is given up
_MARK = b"gantline! "
_REPORTED = ("phase", "cause", "exit", "forced", "revision", "lost", "why", "mark")
_PIECE = select.PIPE_BUF  # bytes for which a pipe that takes some has room
_LONGEST = 300  # characters of a reason: Slurm keeps lines whole up to 1 kB


def send_news(news: Values) -> None:
    """From a part to the keeper of its gang."""
    write(2, _MARK + json.dumps(news).encode() + b"\n")


def write(stream: int, data: bytes) -> int:
    """Write to a stream of the step, which takes nothing more when `srun` is gone: how many bytes are lost then."""
    left = memoryview(data)
    while left:
        if not select.select([], [stream], [], LEASE)[1]:
            return len(left)
        left = left[os.write(stream, left[:_PIECE]) :]
    return 0


def news_in(line: bytes) -> Values | None:
    """What a part has news_in by a line; None: it is Slurm's."""
    if not line.startswith(_MARK):
        return None
    try:
        found = json.loads(line[len(_MARK) :])
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def in_short(state: Values) -> Values:
    """What the gang needs to know of the state of a part."""
    found = {name: state[name] for name in _REPORTED if name in state}
    return found | ({"why": str(found["why"])[:_LONGEST]} if "why" in found else {})


class WholeLines:
    """Puts lines together from pieces of a stream."""

    def __init__(self, begun: bytes = b"") -> None:
        self.begun = begun

    def add(self, data: bytes) -> list[bytes]:
        """The lines that are whole now."""
        *whole, self.begun = (self.begun + data).split(b"\n")
        return whole


# What all that make or end steps need: the environment of `srun`, and how a step ends of which nothing else of ours
# is left.
#
# Keepers import this; it needs the standard library only.

_LOOK = 0.2  # seconds between looks whether it is gone
_PATIENCE = 10.0  # seconds for one command


_INHERITED = ("SLURM", "SALLOC", "SBATCH", "PMI")  # variables with which an allocation's shell tells srun what to do


def srun_environment() -> dict[str, str]:
    """The environment of this process, less what would change the steps that are asked for."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_INHERITED) or name == "SLURM_CONF"}


def end_step(step: str, seconds: float) -> bool:
    """End a step, and wait for that; False: it may still be there, because slurmctld does not answer, or its nodes do not."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        _answer("scancel", step)
        if _answer("squeue", "--noheader", f"--steps={step}", "--format=%i") == "":
            return True
        time.sleep(_LOOK)
    return False


def _answer(*command: str) -> str | None:
    """What a command prints; None: it has failed."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return None if done.returncode else done.stdout.strip()
