"""The differences between a version of the board and the previous one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from gantline.core.arrays import Ints
from gantline.live.service.board.rows import Row

Device: TypeAlias = tuple[int, str, list[int]]  # its place, its state as a letter, the keys of the jobs on it
_FEW = 1000  # places of the queue that are sent one by one; if more have changed, the whole queue is sent


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


def queue_change(before: Ints, after: Ints) -> dict[str, Any] | None:
    """How one order of keys becomes another: those that leave and those that enter at a place, or the whole where others moved."""
    if np.array_equal(before, after):
        return None
    leave, enter = ~np.isin(before, after), ~np.isin(after, before)
    drop, places = before[leave].tolist(), np.flatnonzero(enter).tolist()
    if len(drop) + len(places) > _FEW or not np.array_equal(before[~leave], after[~enter]):
        return {"all": after.tolist()}
    return {"drop": drop, "add": [[place, key] for place, key in zip(places, after[enter].tolist())]}
