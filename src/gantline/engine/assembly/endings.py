"""Jobs that end by their loss: a run's rule and the loss curves of its trace give the work that each job really does.

Policies do not see it. Their estimates are those of the whole job, because a scheduler cannot know a future loss.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gantline.core.arrays import Bools, Floats
from gantline.core.columns import Job
from gantline.core.ending import WINDOW, EndingRule
from gantline.core.errors import RefusedError
from gantline.core.tables import Tables
from gantline.traces.loss_curves import LOSS_HELP, losses_of
from gantline.traces.trace import Trace

REPORTS = 100  # of every job, equally far apart in its work
_PROGRESS = np.arange(1, REPORTS + 1) / REPORTS


def end_by_loss(tables: Tables, jobs: Trace, rule: EndingRule) -> Bools | None:
    """Cut the true work of jobs to where the rule ends them; the rows that were cut, or None where no rule is in force."""
    if rule.kind == "never":
        return None
    cells = jobs.texts("loss") if "loss" in jobs.columns else []
    if not any(cells):
        what = f"no job of this trace has a loss curve, so '{rule}' would end none"
        raise RefusedError(what, where="--end-by", fix=f"give the trace a column 'loss': {LOSS_HELP}")
    if rule.kind == "plateau" and rule.window >= REPORTS:
        what = f"a window of {rule.window} reports is never full: a simulated job reports its loss {REPORTS} times"
        raise RefusedError(what, where="--end-by", fix=f"use a window below {REPORTS}, such as {replace(rule, window=WINDOW)}")
    parts = _ends(cells, rule)
    tables.F[Job.WORK, : len(parts)] *= parts
    return np.asarray(parts < 1.0)


def _ends(cells: list[str], rule: EndingRule) -> Floats:
    """After which part of its work each job ends."""
    curves: dict[str, float] = {"": 1.0}
    for cell in cells:
        if cell not in curves:  # many jobs share a curve
            fires = rule.fires(losses_of(cell, _PROGRESS))
            curves[cell] = float(_PROGRESS[int(fires.argmax())]) if fires.any() else 1.0
    return np.array([curves[cell] for cell in cells])
