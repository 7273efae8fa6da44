"""Changes of a submitted job: its priority, its queue, its estimate."""

from __future__ import annotations

import math

from gantline.core.columns import Job
from gantline.core.estimates import HIGH, LOW
from gantline.core.inputs import SetJob
from gantline.core.tables import Tables
from gantline.engine.gang import set_due


def set_job(tables: Tables, row: int, value: SetJob) -> bool:
    """The row has what is given from now on; what is None stays."""
    if value.priority is not None:
        tables.F[Job.PRIORITY, row] = value.priority
    if value.queue is not None:
        tables.I[Job.QUEUE, row] = code_of(tables.queues, value.queue)
    if value.estimate is not None:
        tables.F[Job.ESTIMATE, row] = value.estimate
        tables.unestimated.discard(row)
        for name in (LOW, HIGH):  # a range around the old one means nothing any more
            if name in tables.metrics:
                tables.metrics[name][row] = math.nan
        set_due(tables.F, row)
    return True


def code_of(names: list[str], name: str) -> int:
    """The code of a name, which is listed when it is new."""
    if name not in names:
        names.append(name)
    return names.index(name)
