"""What the keeper of a gang and its parts on the nodes say to each other, through the three streams of their step's `srun`.

`srun` hands its input to every task of a step and collects what they print, without slurmctld. Orders go in as lines of JSON; the output of
the job comes back as it is; news come back on the error stream, as lines that begin with a mark. Other lines there are Slurm's own.
Keepers import this; it needs the standard library only.
"""

from __future__ import annotations

import json
import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gantline.live.local.files import Values

BEAT = 3.0  # seconds between two signs of life, in both directions
LEASE = 30.0  # seconds of silence after which a part ends its ranks, and after which its gang is given up
_MARK = b"gantline! "
_TOLD = ("phase", "cause", "exit", "forced", "revision", "lost", "why", "mark")
_PIECE = select.PIPE_BUF  # bytes for which a pipe that takes some has room
_LONGEST = 300  # characters of a reason: Slurm keeps lines whole up to 1 kB


def tell(news: Values) -> None:
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


def told(line: bytes) -> Values | None:
    """What a part has told by a line; None: it is Slurm's."""
    if not line.startswith(_MARK):
        return None
    try:
        found = json.loads(line[len(_MARK) :])
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def in_short(state: Values) -> Values:
    """What the gang needs to know of the state of a part."""
    found = {name: state[name] for name in _TOLD if name in state}
    return found | ({"why": str(found["why"])[:_LONGEST]} if "why" in found else {})


class WholeLines:
    """Puts lines together from pieces of a stream."""

    def __init__(self, begun: bytes = b"") -> None:
        self.begun = begun

    def add(self, data: bytes) -> list[bytes]:
        """The lines that are whole now."""
        *whole, self.begun = (self.begun + data).split(b"\n")
        return whole
