"""The generic generator: settings and a seed in, a trace out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats
from gantline.traces.generators.arrivals import ArrivalProfile, unit_gaps
from gantline.traces.generators.durations import BySize
from gantline.traces.generators.labels import labels
from gantline.traces.generators.mixes import Mix
from gantline.traces.generators.settings import WorkloadSettings
from gantline.traces.generators.streams import Streams
from gantline.traces.generators.table import as_trace
from gantline.traces.trace import Trace

Counts = NDArray[np.int64]
_HOUR = 3600.0
_STEPS = 1 << 18


def generate_workload(settings: WorkloadSettings, seed: int = 0, name: str = "workload") -> Trace:
    """Draw a workload; each column has a stream of its own, so columns do not disturb each other."""
    streams = Streams(seed)
    arrival, gpus, duration = _arrive(settings, streams)
    columns: dict[str, object] = {"arrival": np.round(arrival, 3), "gpus": gpus, "duration": duration}
    columns |= labels(settings, streams, columns)
    return as_trace(columns, source=f"generated: {name}, seed {seed}")


def generic(seed: int, given: Mapping[str, object]) -> Trace:
    """The generator called ``generic``: nothing is preset."""
    return generate_workload(WorkloadSettings.read(given), seed, "generic")


def work_per_job(settings: WorkloadSettings) -> float:
    """The expected GPU-seconds of a job, integrated over the quantiles so that the limits on durations count too."""
    middles = (np.arange(_STEPS) + 0.5) / _STEPS
    by_size = zip(settings.sizes.values, settings.sizes.shares, strict=True)
    return float(sum(share * size * _durations(settings, size, middles).mean() for size, share in by_size))


def _arrive(settings: WorkloadSettings, streams: Streams) -> tuple[Floats, Counts, Floats]:
    """Arrival, size and duration of every job."""
    profile = ArrivalProfile.of(settings.hours, settings.weekdays, settings.start_hour, settings.start_day)
    rate = settings.jobs_per_hour
    if settings.jobs is not None:
        gpus, duration = _draw_jobs(settings, streams, settings.jobs)
        if rate is not None:
            return profile.clock(_elapsed(settings, streams, settings.jobs) * _HOUR / rate), gpus, duration
        length = settings.length or float(gpus @ duration) / (settings.load or 1.0) / (settings.gpus or 1)
        # The arrival after the last one falls on the end, so that exactly this many jobs lie inside the length.
        elapsed = _elapsed(settings, streams, settings.jobs + 1)
        return profile.clock(elapsed[:-1] * (profile.elapsed(length) / elapsed[-1])), gpus, duration
    length = settings.length or 0.0
    if rate is None:
        rate = (settings.load or 1.0) * (settings.gpus or 1) / work_per_job(settings) * _HOUR
    count = 64 + int(1.1 * length * rate / _HOUR)
    while True:
        arrival = profile.clock(_elapsed(settings, streams, count) * _HOUR / rate)
        if arrival[-1] >= length:
            inside = int(np.searchsorted(arrival, length))
            return arrival[:inside], *_draw_jobs(settings, streams, inside)
        count *= 2


def _elapsed(settings: WorkloadSettings, streams: Streams, count: int) -> Floats:
    gaps = unit_gaps(streams.uniforms("arrival", count), settings.interarrival, settings.variation)
    return np.cumsum(gaps)


def _draw_jobs(settings: WorkloadSettings, streams: Streams, count: int) -> tuple[Counts, Floats]:
    sizes: Mix[int] = settings.sizes
    gpus = np.array(sizes.values, dtype=np.int64)[sizes.pick(streams.uniforms("gpus", count))]
    uniforms = streams.uniforms("duration", count)
    duration: Floats = np.empty(count)
    for size in sizes.values:
        rows = gpus == size
        duration[rows] = _durations(settings, size, uniforms[rows])
    return gpus, duration


def _durations(settings: WorkloadSettings, size: int, uniforms: Floats) -> Floats:
    found = settings.durations.of(size) if isinstance(settings.durations, BySize) else settings.durations
    assert found is not None, "the settings have checked that every size has durations"
    return np.clip(found.quantile(uniforms), settings.shortest, settings.longest).round(3)
