"""The scaling curves that the jobs of a trace bring along, as a performance model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantline.core.cluster import Cluster
from gantline.core.errors import TraceError, UsageError
from gantline.traces.trace import Trace

if TYPE_CHECKING:
    from gantline.models.parameter_servers import ServerModel
    from gantline.models.scaling import Scaling, ScalingModel


def scaling_model(trace: Trace, cluster: Cluster) -> ScalingModel | ServerModel | None:
    """The model of the column `scaling`; None where no job has a curve. A curve that cannot be meant is reported with its line."""
    if "scaling" not in trace.columns:
        return None
    frame = trace.frame
    from gantline.models.parameter_servers import TERMS
    from gantline.models.scaling import Scaling, ScalingModel

    texts = [text or "" for text in frame["scaling"].to_list()]
    with_servers = [text.partition("=")[0].strip() in TERMS for text in texts]
    if any(with_servers):
        return _servers(trace, texts, with_servers)
    names, gpus = frame["job"].to_list(), frame["gpus"].to_list()
    batches = frame["batch_size"].to_list() if "batch_size" in frame.columns else [None] * frame.height
    curves: list[Scaling | None] = []
    for row, (text, batch) in enumerate(zip(texts, batches)):
        try:
            curves.append(Scaling.parse(text, batch) if text else None)
            ScalingModel.on(names[row : row + 1], curves[-1:], gpus[row : row + 1], cluster)
        except UsageError as error:
            raise _fault(trace, row, error) from None
    return ScalingModel.on(names, curves, gpus, cluster) if any(curves) else None


def _servers(trace: Trace, texts: list[str], with_servers: list[bool]) -> ServerModel:
    """Jobs that train with parameter servers; others may be beside them only without a curve."""
    from gantline.models.parameter_servers import ServerJob, ServerModel

    frame, jobs = trace.frame, {}
    for row, text in enumerate(texts):
        try:
            if text and not with_servers[row]:
                raise UsageError("other jobs train with parameter servers", fix="give all of them sync= or async=, or none")
            if text:
                jobs[frame["job"][row]] = ServerJob.parse(text)
        except UsageError as error:
            raise _fault(trace, row, error) from None
    rows = frame.select("job", "gpus", "duration").iter_rows()
    asked = {job: (int(gpus), float(duration)) for job, gpus, duration in rows if job in jobs}
    unit = {job: truth.speed.speed(max(asked[job][0], 1), max(asked[job][0], 1)) for job, truth in jobs.items()}
    return ServerModel(jobs, {job: duration for job, (_, duration) in asked.items()}, unit)


def _fault(trace: Trace, row: int, error: UsageError) -> TraceError:
    what = error.what if error.what.startswith("job ") else f"job '{trace.frame['job'][row]}': {error.what}"
    return TraceError(what, file=trace.source, line=row + 2, field="scaling", fix=error.fix)
