"""IRFsim's AlloX, event by event."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.jit import compiled
from gantline.systems.allox.imitation.clock import advance
from gantline.systems.allox.imitation.event import match_event
from gantline.systems.allox.imitation.world import NOW, World


@compiled
def run_allox(w: World, number: Ints, kind: Ints, alpha: float) -> int:
    """The whole run; ``kind`` says which machines are GPUs. -1, or the job that lacks memory."""
    while True:
        goes_on = advance(w)
        if w.pool[NOW] == np.inf:
            return -1
        if goes_on:
            lacking = match_event(w, number, kind, alpha)
            if lacking >= 0:
                return lacking
