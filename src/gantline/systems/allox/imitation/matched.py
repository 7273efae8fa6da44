"""IRFsim's AlloX, event by event."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.jit import compiled
from gantline.systems.allox.imitation.clock import advance
from gantline.systems.allox.imitation.event import match_event
from gantline.systems.allox.imitation.world import EVENTS, NOW, World


@compiled
def run_allox(w: World, pause: int, number: Ints, kind: Ints, alpha: float) -> int:
    """Run to the end, or until so many events have been; ``kind`` says which machines are GPUs. -1, or the job that lacks memory."""
    while w.counts[EVENTS] < pause:
        goes_on = advance(w)
        if w.pool[NOW] == np.inf:
            return -1
        if goes_on:
            lacking = match_event(w, number, kind, alpha)
            if lacking >= 0:
                return lacking
    return -1
