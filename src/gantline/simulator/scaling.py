"""The scaling curves that the jobs of a trace bring along, as a performance model."""

from __future__ import annotations

from gantline.core.cluster import Cluster
from gantline.core.errors import TraceError, UsageError
from gantline.performance.scaling import Scaling, ScalingModel
from gantline.workload.trace import Trace


def scaling_model(trace: Trace, cluster: Cluster) -> ScalingModel | None:
    """The model of the column `scaling`; None where no job has a curve. A curve that cannot be meant is told with its line."""
    frame = trace.frame
    if "scaling" not in frame.columns:
        return None
    batches = frame["batch_size"].to_list() if "batch_size" in frame.columns else [None] * frame.height
    curves: list[Scaling | None] = []
    node = [max((node.gpus for node in cluster.nodes if node.type == name), default=1) for name in cluster.types]
    for row, (text, batch) in enumerate(zip(frame["scaling"].to_list(), batches)):
        try:
            curves.append(Scaling.parse(text, batch) if text else None)
            ScalingModel.of([frame["job"][row]], curves[-1:], [frame["gpus"][row]], node)
        except UsageError as error:
            told = error.what if error.what.startswith("job ") else f"job '{frame['job'][row]}': {error.what}"
            raise TraceError(told, file=trace.source, line=row + 2, field="scaling", fix=error.fix) from None
    if not any(curves):
        return None
    return ScalingModel.of(frame["job"].to_list(), curves, frame["gpus"].to_list(), node)
