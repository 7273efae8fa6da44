"""Do the accounts of a run agree? What its log says of when gangs held devices, and what their jobs were charged for it."""

from __future__ import annotations

import numpy as np

from gantline.core.columns import Job
from gantline.core.phases import COMPLETED
from gantline.engine.engine import Engine
from gantline.engine.log import Interval

SLACK = 1e-6  # seconds, and of a charge that part


def check_accounts(engine: Engine, *, whole: bool = True, prompt: bool = True) -> list[str]:
    """Every contradiction, in words: intervals that end before they begin, or after their job; charges beyond what was held.

    `whole`: the log has all that was ever held; a run that goes on from a snapshot logs only what comes after.
    `prompt`: starts and ends are known at once; where reports take time, devices are held until the report of the end has been received,
    and what a gang is charged is corrected by what it reports.
    """
    state = engine.state
    log, t = state.log, state.tables
    n = log.intervals
    rows, count, start, end = log.LI[Interval.ROW, :n], log.LI[Interval.COUNT, :n], log.LF[Interval.START, :n], log.LF[Interval.END, :n]
    found = [f"'{t.ids[rows[k]]}' held devices from {start[k]:g} to {end[k]:g}" for k in np.flatnonzero(end < start)[:3].tolist()]
    finish, done = t.F[Job.FINISH], t.I[Job.PHASE] == COMPLETED
    late = done[rows] & ((end if prompt else start) > finish[rows] + SLACK)
    found += [f"'{t.ids[rows[k]]}' ended at {finish[rows[k]]:g}, and held {start[k]:g}-{end[k]:g}" for k in np.flatnonzero(late)[:3]]
    if engine.grants.used_fluid or not (whole and prompt):  # shares of the time are charged without an interval
        return found
    length = np.maximum(np.where(np.isnan(end), state.now, end) - start, 0.0)
    for what, column, held in (("seconds", Job.SERVICE, length), ("device-seconds", Job.GPUTIME, length * count)):
        most, charged = np.bincount(rows, weights=held, minlength=t.F.shape[1]), t.F[column]
        over = np.flatnonzero(charged > most * (1.0 + SLACK) + SLACK)[:3].tolist()
        found += [f"'{t.ids[k]}' was charged {charged[k]:g} {what} and held {most[k]:g}" for k in over]
    return found
