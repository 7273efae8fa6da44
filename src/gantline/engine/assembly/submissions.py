"""The jobs of a trace as submissions, one by one: a run of these is the run of the trace."""

from __future__ import annotations

from gantline.core.cluster import Cluster
from gantline.core.columns import Job
from gantline.core.inputs import Submit
from gantline.core.job_json import encode_job
from gantline.engine.assembly.load import load_tables
from gantline.engine.submissions import SUBMITTED
from gantline.traces.trace import Trace


def submissions(trace: Trace, cluster: Cluster, *, checkpoint: float = 0.0) -> list[Submit]:
    """What would be submitted to this cluster, in order of arrival, with the true amount of work of each job."""
    tables = load_tables(trace, cluster, checkpoint=checkpoint)
    found = []
    for row in range(len(tables.ids)):
        arrival = float(tables.F[Job.ARRIVAL, row])
        job = encode_job(tables, row, arrival, int(tables.I[Job.OPTION_FIRST, row]))
        found.append(Submit(arrival, {key: value for key, value in job.items() if key in SUBMITTED}, float(tables.F[Job.WORK, row])))
    return found
