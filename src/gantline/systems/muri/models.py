"""The model of stages for the jobs of a trace, whose stage times are looked at before the run begins."""

from __future__ import annotations

from gantline.core.cluster import Cluster
from gantline.core.errors import TraceError
from gantline.models.sharing.stage_cycles import ITERATION, STAGES, StageCycles, Stages, usable
from gantline.traces.trace import Trace


def stage_cycles(jobs: Trace, cluster: Cluster) -> StageCycles:
    """Refuses stage times that are none; a job without any is one that shares devices in parts."""
    frame = jobs.frame
    for name in (*STAGES, ITERATION):
        if name not in frame.columns:
            fix = "give seconds of an iteration; gantline trace import muri does"
            raise TraceError(f"column '{name}' is missing", file=jobs.source, field=name, fix=fix)
    for row, (*times, step) in enumerate(frame.select(*STAGES, ITERATION).rows()):
        if any(each is not None for each in (*times, step)) and not (usable(Stages(*times)) and step is not None and step > 0.0):
            what = f"job '{frame['job'][row]}' has stages of {', '.join(map(str, times))} s in an iteration of {step} s"
            raise TraceError(what, file=jobs.source, line=row + 2, fix="give times of 0 or more, not all of them 0, or leave all empty")
    return StageCycles()
