"""What a runner knows of incarnations: which of them are there, and what is kept of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Present:
    """One line of a roll call: the newest incarnation of a job."""

    job: str
    epoch: int
    devices: tuple[str, ...]  # by node and place: "node1:0"
    since: float | None  # seconds since 1970; None: it has not started yet
    is_over: bool  # it has ended, and how it did is told again after `attach`


@dataclass(frozen=True, slots=True)
class KeptIncarnation:
    """What is kept of one incarnation."""

    epoch: int
    why: str = ""  # it failed for that reason
    lost: int = 0  # bytes of its output that could not be written


class Output(Protocol):
    """The output of an incarnation as one text; offsets count from the first byte that was written."""

    first: int  # the first byte that is kept

    @property
    def size(self) -> int: ...

    def read(self, start: int, count: int) -> bytes:
        """So many bytes from there on."""
        ...

    def close(self) -> None: ...
