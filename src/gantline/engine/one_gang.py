"""Plans for machines whose executor puts one gang on a device: gangs that would share devices are placed apart.

Such a gang gets devices of its own: those that the plan names for it, if no other gang has them, or any where the plan names none. One
for which none are left waits, and its reason says why.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import Job
from gantline.core.phases import PENDING
from gantline.core.plan import Assignment, Assignments, Mode
from gantline.core.reasons import Reason
from gantline.core.tables import Tables

_ALONE = {"group": -1, "mode": Mode.EXCLUSIVE, "together": False, "size": 0, "fraction": 1.0, "share": 1.0, "offset": 0.0, "turns": -1}


def placed_apart(table: Assignments) -> tuple[Assignments, Ints]:
    """The plan with gangs of their own in place of those that share devices; also the positions of these."""
    if not (table.has("mode") or table.has("turns")):
        return table, np.zeros(0, dtype=np.int64)
    items = list(table)
    named = Counter(device for item in items for device in set(item.devices))
    shares = [_shares(item, named) for item in items]
    if not any(shares):
        return table, np.zeros(0, dtype=np.int64)
    apart = [replace(item, **_ALONE) if one else item for item, one in zip(items, shares)]  # type: ignore[arg-type]
    return Assignments.of(apart), table.job[np.array(shares)]


def _shares(item: Assignment, named: Counter[int]) -> bool:
    """Whether it may be on devices of others. Gangs whose phases interleave may share links only: then they name devices of their own."""
    if item.mode is Mode.INTERLEAVE and item.devices:
        return any(named[device] > 1 for device in item.devices)
    return item.mode is not Mode.EXCLUSIVE or item.turns >= 0


def write_reasons(t: Tables, rows: Ints) -> None:
    """Rows that wait although the plan had a place for them beside others."""
    t.I[Job.REASON, rows[t.I[Job.PHASE][rows] == PENDING]] = int(Reason.ONE_GANG)
