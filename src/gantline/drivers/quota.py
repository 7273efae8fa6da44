"""Entry by quota, one by one."""

from __future__ import annotations

import numpy as np

from gantline.admission.rules import AdmissionRule
from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.engine import lists as ls
from gantline.engine.advance import admit
from gantline.engine.state import State


def admit_by_quota(state: State, admission: AdmissionRule) -> Ints:
    """Let in whom the quota allows, keeping `active` in order of arrival."""
    t, came = state.tables, state.lists.number[ls.NEXT]
    arrived = np.arange(came)
    held = arrived[(t.I[c.PHASE][:came] == Phase.HELD) & (t.I[c.REASON][:came] != Reason.HELD)]
    t.I[c.REASON, held] = int(Reason.QUOTA)
    entering = admission.select(t, held, state.rows)
    for row in entering:
        admit(t.F, t.I, state.lists, row, state.now)
    return np.array(entering, dtype=np.int64)
