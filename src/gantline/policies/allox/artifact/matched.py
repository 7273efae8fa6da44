"""IRFsim's AlloX, event by event."""

from __future__ import annotations

import numpy as np

from gantline.core.jit import compiled
from gantline.policies.allox.artifact.clock import advance
from gantline.policies.allox.artifact.event import match_event
from gantline.policies.allox.artifact.world import NOW, World
from gantline.policies.allox.ways import Ints


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
