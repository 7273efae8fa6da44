"""The model of guests by its name; what jobs use of their devices is looked at before the run begins."""

from __future__ import annotations

from gantline.core.cluster import Cluster
from gantline.core.errors import TraceError
from gantline.models.sharing.device_contention import PEAK, PHASE, USE, DeviceContention
from gantline.traces.trace import Trace


def guests(jobs: Trace, cluster: Cluster) -> DeviceContention:
    """Refuses uses of a device that are none; a job without one uses all of it."""
    frame = jobs.frame
    for name, high in ((USE, 1.0), (PEAK, 1.0), (PHASE, float("inf"))):
        for row, value in enumerate(frame[name].to_list() if name in frame.columns else ()):
            if value is not None and not 0.0 < value <= high:
                fix = "give a part of a device, above 0 and up to 1" if high == 1.0 else "give seconds above 0"
                raise TraceError(f"job '{frame['job'][row]}' has {value}", file=jobs.source, line=row + 2, field=name, fix=fix)
    return DeviceContention()
