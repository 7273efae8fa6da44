"""Jobs that may run on a GPU or on the cores of a CPU node, like those that AlloX was simulated with (EuroSys 2020).

The shape is that of its simulator's workload: every user has a mean time on the CPU and a mean speed-up on the GPU of its
own, both normal around that and cut off. The draws are ours. With ``skew`` 0 all users submit alike; above, the first
users, whose jobs are short, submit more than the last, whose jobs are long, so that the few long jobs have to be kept
from drowning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import ndtr, ndtri

from gantline.core.arrays import Floats
from gantline.core.errors import near
from gantline.traces.generators.drawing import Streams, as_trace, unit_gaps
from gantline.traces.generators.given import check_above_zero, fault, settings_of, zipf_mix
from gantline.traces.options import WrittenOption, format_options
from gantline.traces.trace import Trace

_TIMES, _TIME_SPREAD, _TIME_LIMITS = (80.0, 350.0), 20.0, (40.0, 450.0)  # seconds on the CPU
_SPEEDUPS, _SPEEDUP_SPREAD, _SPEEDUP_LIMITS = (1.6, 15.0), 0.7, (0.7, 60.0)  # the spread is a part of the mean
_LARGEST_ERROR = 0.99


@dataclass(frozen=True, kw_only=True, slots=True)
class HybridSettings:
    """``error`` is the standard deviation of the relative errors of estimates, ``cores`` what a job takes of a CPU node,
    ``variation`` that of the gaps between arrivals. ``only`` keeps one user's jobs, to see how it fares alone."""

    jobs: int = 2000
    jobs_per_hour: float = 1600.0
    users: int = 10
    only: str = ""
    skew: float = 0.0
    variation: float = 3.0
    error: float = 0.1
    cores: float = 32.0

    def __post_init__(self) -> None:
        check_above_zero(self, "jobs", "jobs_per_hour", "users", "variation", "cores")
        for name in ("skew", "error"):
            if getattr(self, name) < 0:
                raise fault(name, f"{getattr(self, name)} is below zero")


def hybrid(seed: int, given: Mapping[str, object]) -> Trace:
    """The generator called ``hybrid``."""
    wanted = settings_of(HybridSettings, given)
    streams, count = Streams(seed), wanted.jobs
    width = len(str(wanted.users))
    users = zipf_mix(tuple(f"user{number:0{width}d}" for number in range(1, wanted.users + 1)), wanted.skew)
    owner = users.pick(streams.uniforms("user", count))
    mean_time, mean_speedup = np.linspace(*_TIMES, wanted.users)[owner], np.linspace(*_SPEEDUPS, wanted.users)[owner]
    on_cpu = _normal(streams.uniforms("time", count), mean_time, np.full(count, _TIME_SPREAD), _TIME_LIMITS)
    speedup = _normal(streams.uniforms("speed-up", count), mean_speedup, _SPEEDUP_SPREAD * mean_speedup, _SPEEDUP_LIMITS)
    on_cpu, on_gpu = np.round(on_cpu, 1), np.round(np.maximum(on_cpu / speedup, 1.0), 1)
    memory = 1.0 + np.floor(16.0 * streams.uniforms("memory", count))
    gaps = unit_gaps(streams.uniforms("arrival", count), "gamma", wanted.variation) * 3600.0 / wanted.jobs_per_hour
    columns = {
        "arrival": pl.Series(np.round(np.cumsum(gaps) - gaps[0], 1)),
        "gpus": pl.Series(np.ones(count, dtype=np.int64)),
        "duration": pl.Series(on_gpu),
        "user": pl.Series(users.values, dtype=pl.String).gather(owner),
        "options": pl.Series(
            [
                format_options((WrittenOption("gpu", 1, fast, memory=2.0), WrittenOption("cpu", 0, slow, wanted.cores, gigabytes)))
                for fast, slow, gigabytes in zip(on_gpu.tolist(), on_cpu.tolist(), memory.tolist())
            ]
        ),
    }
    if wanted.error:
        columns |= {name: _errors(streams.uniforms(name, count), wanted.error) for name in ("gpu_err", "cpu_err")}
    if wanted.only and wanted.only not in users.values:
        raise fault("only", f"there is no user '{wanted.only}'", near(wanted.only, users.values))
    frame = as_trace(columns, f"generated: hybrid, seed {seed}")
    return frame if not wanted.only else Trace(frame.frame.filter(pl.col("user") == wanted.only), source=frame.source)


def _normal(uniforms: Floats, mean: Floats, spread: Floats, limits: tuple[float, float]) -> Floats:
    """Normal values within limits, as quantiles of uniform numbers."""
    low, high = (ndtr((limit - mean) / spread) for limit in limits)
    values: Floats = mean + spread * ndtri(low + (high - low) * uniforms)
    return np.clip(values, *limits)


def _errors(uniforms: Floats, spread: float) -> pl.Series:
    drawn = ndtri(np.clip(uniforms, 1e-12, 1.0 - 1e-12)) * spread
    return pl.Series(np.round(np.clip(drawn, -_LARGEST_ERROR, _LARGEST_ERROR), 6))
