"""What is different between a version of the board and the one before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gantline.service.board.rows import Row

Device: TypeAlias = tuple[int, str, list[int]]  # its place, its state as a letter, the keys of the jobs on it
_FEW = 1000  # places of the queue that are named one by one; more of them are told as the whole queue


@dataclass(frozen=True)
class BoardChange:
    """The step to version `number`."""

    number: int
    now: float
    head: dict[str, Any]
    jobs: list[Row] = field(default_factory=list)  # whole rows that are new or different
    gone: list[int] = field(default_factory=list)  # keys
    queue: dict[str, Any] | None = None
    devices: list[Device] = field(default_factory=list)


def queue_change(before: Sequence[int], after: Sequence[int]) -> dict[str, Any] | None:
    """How one order of keys becomes another: those that leave and those that enter at a place, or the whole where others moved."""
    if before == after:
        return None
    old, new = set(before), set(after)
    drop = [key for key in before if key not in new]
    add = [[place, key] for place, key in enumerate(after) if key not in old]
    stayed = [key for key in before if key in new] == [key for key in after if key in old]
    return {"drop": drop, "add": add} if stayed and len(drop) + len(add) <= _FEW else {"all": list(after)}
