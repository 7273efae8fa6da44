"""What a runner tells: which nodes are there, then what has become of gangs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gantline.core.cluster import Node
    from gantline.core.inputs import Report


@dataclass(frozen=True, slots=True)
class Ending:
    """How an incarnation ended, beyond what a report says."""

    exit: int | None = None
    why: str = ""
    lines: tuple[str, ...] = ()  # the last ones of its output
    forced: bool = False
    ranks: Mapping[int, int] = field(default_factory=dict)  # exit codes by rank, where they are known
    hold: str = ""  # it could not begin, and its job is held for this cause (one of `registry.HOLDS`) until that has gone


class NodeState(Enum):
    """What a node is now."""

    UP = "up"  # gangs may start there
    DRAINED = "drained"  # none may start there; those on it go on
    LOST = "lost"  # it is gone, or has been silent for longer than its lease; gangs on it are over


@dataclass(frozen=True, slots=True)
class NodeNews:
    """What a node is now, by its name: it may be repeated. A first one joins, one that was lost returns, one of another shape replaces."""

    name: str
    state: NodeState
    node: Node | None = None  # UP: its devices and what else it has; DRAINED: the same, where the node may be a new one
    why: str = ""


@dataclass(frozen=True, slots=True)
class RunnerEvents:
    """What enters together: nodes first, then the reports that follow from what has become of them, so that no decision falls between."""

    nodes: tuple[NodeNews, ...] = ()
    reports: tuple[tuple[Report, Ending | None], ...] = ()


# What a runner knows of incarnations: which of them are there, and what is kept of them.


@dataclass(frozen=True, slots=True)
class Present:
    """One that is adopted: the newest incarnation of a job."""

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
