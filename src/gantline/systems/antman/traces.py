"""Jobs that leave a part of their GPUs idle: the columns that say so, and a generator of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from gantline.core.cluster import Cluster
from gantline.models.sharing.device_contention import PEAK, PHASE, USE, DeviceContention
from gantline.traces.generators.drawing import Streams, as_trace
from gantline.traces.generators.given import check_above_zero, fault, settings_of
from gantline.traces.trace import Trace

# The model of guests by its name; what jobs use of their devices is looked at before the run begins.


def guests(jobs: Trace, cluster: Cluster) -> DeviceContention:
    """Refuses uses of a device that are none; a job without one uses all of it."""
    frame = jobs.frame
    for name, high in ((USE, 1.0), (PEAK, 1.0), (PHASE, float("inf"))):
        for row, value in enumerate(frame[name].to_list() if name in frame.columns else ()):
            if value is not None and not 0.0 < value <= high:
                fix = "give a part of a device, above 0 and up to 1" if high == 1.0 else "give seconds above 0"
                raise jobs.fault(row, name, f"has {value}", fix)
    return DeviceContention()


# Jobs that leave a part of their GPUs idle, most of them guaranteed and some opportunistic, as on AntMan's clusters (OSDI 2020).
#
# A guaranteed job uses 30 to 70 % of its GPUs; every second one alternates with 90 % every half an hour. A guest uses
# all that it is given. The draws are ours; with ``guests=no`` the same guaranteed jobs come alone.

_SIZES = (1, 1, 1, 2, 2, 4, 8)
_LOW, _RANGE, _PEAK, _PHASE = 0.3, 0.4, 0.9, 1800.0
_SHORTEST, _TIMES_LONGER = 1200.0, 24.0


@dataclass(frozen=True, kw_only=True, slots=True)
class GuestSettings:
    """``guest_share`` of the jobs are opportunistic; ``guests`` says whether they come at all."""

    jobs: int = 200
    jobs_per_hour: float = 20.0
    guest_share: float = 0.3
    guests: bool = True

    def __post_init__(self) -> None:
        check_above_zero(self, "jobs", "jobs_per_hour")
        if not 0.0 <= self.guest_share <= 1.0:
            raise fault("guest_share", f"{self.guest_share} is no part of the jobs", "give 0 to 1")


def antman(seed: int, given: Mapping[str, object]) -> Trace:
    """The generator called ``antman``."""
    wanted = settings_of(GuestSettings, given)
    streams, count = Streams(seed), wanted.jobs
    guest = streams.uniforms("class", count) < wanted.guest_share
    gaps = -np.log1p(-streams.uniforms("arrival", count)) * 3600.0 / wanted.jobs_per_hour
    moves = ~guest & (streams.uniforms("phases", count) < 0.5)
    use = np.where(guest, 1.0, np.round(_LOW + _RANGE * streams.uniforms("use", count), 2))
    columns = {
        "job": pl.Series([f"{'guest' if each else 'host'}-{place}" for place, each in enumerate(guest.tolist())]),
        "arrival": pl.Series(np.round(np.cumsum(gaps) - gaps[0], 1)),
        "gpus": pl.Series(np.array(_SIZES)[(streams.uniforms("size", count) * len(_SIZES)).astype(np.int64)]),
        "duration": pl.Series(np.round(_SHORTEST * _TIMES_LONGER ** streams.uniforms("duration", count), 1)),
        "opportunistic": pl.Series(guest.astype(np.float64)),
        "gpu_use": pl.Series(use),
        "gpu_use_peak": pl.Series(np.where(moves, _PEAK, np.nan)).fill_nan(None),
        "gpu_phase": pl.Series(np.where(moves, _PHASE, np.nan)).fill_nan(None),
    }
    trace = as_trace(columns, f"generated: antman, seed {seed}")
    return trace if wanted.guests else Trace(trace.frame.filter(pl.col("opportunistic") == 0.0), source=trace.source)
