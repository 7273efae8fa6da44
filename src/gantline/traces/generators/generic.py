"""The generic generator: settings and a seed in, a trace out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gantline.core.arrays import Floats
from gantline.traces.generators.drawing import ArrivalProfile, Streams, as_trace, unit_gaps
from gantline.traces.generators.durations import BySize
from gantline.traces.generators.given import Mix, zipf_mix
from gantline.traces.generators.settings import WorkloadSettings
from gantline.traces.options import WrittenOption, format_options
from gantline.traces.trace import Trace

Columns = dict[str, Any]
"""Arrays of numbers, lists or series of text; a series where cells are empty."""
Picks = NDArray[np.int64]


def labels(settings: WorkloadSettings, streams: Streams, jobs: Mapping[str, Any]) -> Columns:
    """Those columns that the settings ask for."""
    count = len(jobs["arrival"])
    gpus, duration = jobs["gpus"], jobs["duration"]
    found = _people(settings, streams, count)
    mixes = {"model": settings.models, "type": settings.types, "outcome": settings.outcomes}
    for name, mix in mixes.items():
        if mix is not None:
            found[name] = _text(mix, streams.uniforms(name, count))
    if settings.priorities is not None:
        picked = settings.priorities.pick(streams.uniforms("priority", count))
        found["priority"] = np.array(settings.priorities.values, dtype=np.float64)[picked]
    if settings.speeds is not None:
        sensitivity = _between(settings.sensitivity, streams, "options", count)
        found["options"] = _options(settings.speeds, sensitivity, gpus, duration)
    if settings.deadline_share > 0:
        slack = _between(settings.deadline_slack, streams, "deadline", count)
        due = np.round(jobs["arrival"] + slack * duration, 3)
        has_one = streams.uniforms("has deadline", count) < settings.deadline_share
        found["deadline"] = pl.Series(np.where(has_one, due, np.nan), nan_to_null=True)
    if settings.elastic_share > 0:
        low, high = settings.elastic_range
        elastic = streams.uniforms("elastic", count) < settings.elastic_share
        found["min_gpus"] = np.where(elastic, np.maximum(1, np.ceil(gpus * low)), gpus).astype(np.int64)
        found["max_gpus"] = np.where(elastic, np.floor(gpus * high), gpus).astype(np.int64)
    if settings.cpus_per_gpu > 0:
        found["cpus"] = gpus * settings.cpus_per_gpu
    if settings.memory_per_gpu > 0:
        found["memory"] = gpus * settings.memory_per_gpu
    return found


def _people(settings: WorkloadSettings, streams: Streams, count: int) -> Columns:
    """Users and queues; a user stays with one queue, as a member of a team does."""
    users = _group(settings.users, "user", settings.user_skew)
    queues = _group(settings.queues, "queue", settings.queue_skew)
    if users is None:
        return {"queue": _text(queues, streams.uniforms("queue", count))} if queues is not None else {}
    picked = users.pick(streams.uniforms("user", count))
    found = {"user": _names(users, picked)}
    if queues is not None:
        found["queue"] = _names(queues, _teams(users, queues)[picked])
    return found


def _teams(users: Mix[str], queues: Mix[str]) -> Picks:
    """The queue of each user: the heaviest users first, each to the queue that lacks most of its share."""
    lacking = queues.shares
    teams = np.zeros(len(users.values), dtype=np.int64)
    for user in np.argsort(-users.shares, kind="stable"):
        teams[user] = np.argmax(lacking)
        lacking[teams[user]] -= users.shares[user]
    return teams


def _group(given: int | Mix[str], word: str, skew: float) -> Mix[str] | None:
    if isinstance(given, Mix):
        return given
    width = len(str(given))
    return zipf_mix(tuple(f"{word}{i:0{width}d}" for i in range(1, given + 1)), skew) if given else None


def _options(speeds: Mix[str], sensitivity: Floats, gpus: Picks, duration: Floats) -> list[str]:
    """Every type as an alternative: the duration divided by the type's speed to the power of the job's sensitivity."""
    factors = [speed**-sensitivity for speed in speeds.weights]
    rows = zip(gpus.tolist(), duration.tolist(), *(factor.tolist() for factor in factors), strict=True)
    texts = []
    for size, time, *slower in rows:
        variants = zip(speeds.values, slower, strict=True)
        texts.append(format_options(WrittenOption(kind, size, round(time * factor, 3)) for kind, factor in variants))
    return texts


def _between(span: tuple[float, float], streams: Streams, name: str, count: int) -> Floats:
    return span[0] + (span[1] - span[0]) * streams.uniforms(name, count)


def _text(mix: Mix[str], uniforms: Floats) -> object:
    return _names(mix, mix.pick(uniforms))


def _names(mix: Mix[str], picked: Picks) -> pl.Series:
    return pl.Series(mix.values, dtype=pl.String).gather(picked)


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
