"""IRFsim's AlloXPlus: after every start the list of pairs is made and sorted anew, by comparisons that are not transitive."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.jit import kernel
from gantline.systems.allox.imitation.clock import advance
from gantline.systems.allox.imitation.methods import BROKEN, DONE, FULL, PAUSED, list_pairs
from gantline.systems.allox.imitation.sort import BROKEN as SORT_BROKEN
from gantline.systems.allox.imitation.sort import java_sort
from gantline.systems.allox.imitation.world import ARRIVAL, EVENTS, LOGGED, NOW, REPORTED, SCRATCH, World, fits, start


@kernel
def run_plus(w: World, pause: int, age: float, rest: Ints) -> int:
    """Run until nothing is left to do, the log is nearly full, so many events have been, or Java's sort gives up."""
    while w.counts[LOGGED] + w.tasks.shape[1] <= w.log_codes.shape[1]:
        if w.counts[EVENTS] >= pause:
            return PAUSED
        if not advance(w):
            if w.pool[NOW] == np.inf:
                return DONE
        elif not allox_plus(w, age, rest):
            return BROKEN
    return FULL


@kernel
def allox_plus(w: World, age: float, rest: Ints) -> bool:
    """One pair at a time, long-waiting jobs first, then by whole seconds of difference in Java's sort; False: that gives up."""
    pairs, order, time, old = w.lists[SCRATCH + 1], w.lists[SCRATCH], w.keys[0], w.keys[1]
    while True:
        count = list_pairs(w, pairs)
        fitting = 0
        for i in range(count):
            task, device = pairs[i] // 2, pairs[i] % 2
            fitting += fits(w, task, device)
            order[i], time[i] = i, w.tasks[REPORTED + device, task]
            old[i] = 1.0 if w.pool[NOW] - w.tasks[ARRIVAL, task] >= age else 0.0
        if fitting == 0:
            return True
        if java_sort(order[:count], time, old, w.lists[SCRATCH + 2], rest) == SORT_BROKEN:
            return False
        for i in order[:count]:
            if fits(w, pairs[i] // 2, pairs[i] % 2):
                start(w, pairs[i] // 2, pairs[i] % 2, pairs[i] // 2)
                break
