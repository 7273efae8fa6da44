"""Plans that say nothing but which devices everybody has: whoever is told what it has keeps it, and a commit is about the others.

This is what a decision costs when a policy names all devices each time and few of them change: one comparison per gang, and one pass over
those who are there.
"""

from __future__ import annotations

from operator import eq

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Bools, Ints
from gantline.core.jit import kernel
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.core.plan import Assignments
from gantline.core.reasons import Reason
from gantline.core.tables import Matrices
from gantline.engine import lists as ls
from gantline.engine.in_force import InForce
from gantline.engine.lists import Lists
from gantline.engine.state import State

_DEFERRED = int(Reason.DEFERRED)


def keep(state: State, force: InForce, rows: Ints, table: Assignments, named: Bools) -> tuple[Bools, bool]:
    """Which assignments their rows have already, and keep; whether that is all and nobody has to stop. `named` gets the plan's rows."""
    granted, asked = force.column("devices")[rows].tolist(), table.entries("devices")
    kept = np.fromiter(map(eq, granted, asked), dtype=np.bool_, count=len(rows))
    kept &= np.fromiter(map(bool, asked), dtype=np.bool_, count=len(rows))  # whoever names none means an option
    return kept, bool(_keep(state.matrices, state.lists, rows, force.epoch, kept, named))


@kernel
def _keep(t: Matrices, lists: Lists, rows: Ints, epoch: Ints, kept: Bools, named: Bools) -> bool:
    """Whoever keeps what it has loses the reason and the lease of an earlier plan; the others are left alone while there is more to do."""
    whole = True
    for k in range(rows.shape[0]):
        row = rows[k]
        named[row] = True
        phase = t.I[c.PHASE, row]
        free = (phase == STARTING or phase == RUNNING) and t.I[c.LOCKED, row] == 0
        if kept[k] and free and t.I[c.HEAD, row] >= 0 and epoch[row] == t.I[c.EPOCH, row]:
            t.I[c.REASON, row] = 0
            t.F[c.LIMIT_END, row] = np.inf
            t.F[c.UNTIL, row] = np.inf
        else:
            kept[k] = False
            whole = False
    for k in range(lists.number[ls.ACTIVE]):
        row = lists.active[k]
        if not named[row] and t.I[c.PHASE, row] != PENDING:
            whole = False
    if whole:
        for k in range(lists.number[ls.ACTIVE]):
            row = lists.active[k]
            if not named[row] and t.I[c.PHASE, row] == PENDING:
                t.I[c.REASON, row] = _DEFERRED
    return whole
