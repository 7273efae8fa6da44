"""How long devices were held, from the log. A device that two jobs share is held once."""

from __future__ import annotations

import numpy as np

from gantline.engine import log as g
from gantline.engine.log import Log


def device_seconds(log: Log, shared: bool) -> float:
    """Device-seconds held in all: starting and stopping count, idle and down do not. Without sharing a plain sum does."""
    n = log.intervals
    start, end, count = log.LF[g.L_START, :n], log.LF[g.L_END, :n], log.LI[g.L_COUNT, :n]
    if not shared:
        held_for = (end - start) * count
        total = float(held_for.sum())
        return total if total == total else float(np.nansum(held_for))
    held = ~np.isnan(end)
    gang = np.repeat(np.flatnonzero(held), count[held])
    if not len(gang):
        return 0.0
    offset = np.concatenate([log.LD[a : a + k] for a, k in zip(log.LI[g.L_OFFSET, :n][held], count[held])])
    order = np.lexsort((start[gang], offset))
    device, begin, finish = offset[order].astype(np.float64), start[gang][order], end[gang][order]
    apart = device * (float(end[held].max()) + 1.0)  # devices one after the other on a single axis
    covered = np.maximum.accumulate(np.concatenate([[-np.inf], (finish + apart)[:-1]]))
    fresh = np.maximum(0.0, finish + apart - np.maximum(begin + apart, covered))
    return float(fresh.sum())
