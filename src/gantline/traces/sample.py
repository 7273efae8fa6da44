"""New traces from old ones: fewer jobs, another load, another time, a window.

Each function returns a new trace with a note of what was done; jobs keep their order, and deadlines move with the
arrivals that they belong to.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from gantline.core.errors import UsageError
from gantline.core.fields import human_seconds
from gantline.traces.dates import divide
from gantline.traces.trace import Trace


def sample(trace: Trace, *, n: int | None = None, fraction: float | None = None, seed: int = 0) -> Trace:
    """A random subset of ``n`` jobs, or of a ``fraction`` of them; arrivals stay, so the load falls with the count."""
    if (n is None) == (fraction is None):
        raise UsageError("give either a number of jobs or a fraction of them")
    if fraction is not None:
        if not 0 < fraction <= 1:
            raise UsageError(f"fraction {fraction} is not above 0 and at most 1", fix="such as 0.1")
        n = max(1, round(fraction * len(trace)))
    assert n is not None
    if not 1 <= n <= len(trace):
        raise UsageError(f"cannot take {n} of {len(trace)} jobs", fix=f"give 1 to {len(trace)}")
    chosen = np.sort(np.random.default_rng(seed).choice(len(trace), size=n, replace=False))
    return _derive(trace, trace.frame[chosen], f"a sample of {n} of {len(trace)} jobs (seed {seed})")


def scale(trace: Trace, *, load: float) -> Trace:
    """The same jobs at ``load`` times the rate: every time between arrivals is divided by the factor."""
    if not (math.isfinite(load) and load > 0):
        raise UsageError(f"load factor {load} is not above 0", fix="2 doubles the load, 0.5 halves it")
    frame = _arriving(trace, divide(trace.frame["arrival"], load))
    return _derive(trace, frame.drop("started", "ended", strict=False), f"load times {load:g}")


def shift(trace: Trace, *, by: float) -> Trace:
    """The same jobs ``by`` seconds later (earlier if negative)."""
    arrival = trace.frame["arrival"] + by
    if not math.isfinite(by) or arrival[0] < 0:
        raise UsageError(f"a shift by {by} would begin before 0", fix=f"at least {-trace.frame['arrival'][0]:g}")
    return _derive(trace, _arriving(trace, arrival), f"shifted by {'-' * (by < 0)}{human_seconds(abs(by))}")


def window(trace: Trace, *, start: float = 0.0, end: float = math.inf) -> Trace:
    """The jobs that arrive from ``start`` up to, not including, ``end``; ``start`` becomes time 0."""
    inside = (pl.col("arrival") >= start) & (pl.col("arrival") < end)
    kept = trace.frame.filter(inside)
    if not start < end or kept.is_empty():
        first, last = trace.frame["arrival"][0], trace.frame["arrival"][-1]
        raise UsageError(f"no job arrives from {start:g} to {end:g}", fix=f"arrivals lie between {first:g} and {last:g}")
    cut = Trace(kept, trace.source, trace.notes)
    until = f"to {human_seconds(end)}" if math.isfinite(end) else "on"
    note = f"the window from {human_seconds(start)} {until}: {len(kept)} of {len(trace)} jobs"
    return _derive(cut, _arriving(cut, kept["arrival"] - start), note)


def _arriving(trace: Trace, arrival: pl.Series) -> pl.DataFrame:
    """The rows at new times of arrival; deadlines and real starts keep their distance."""
    frame = trace.frame
    for name in ("deadline", "started", "ended"):
        if name in frame.columns:
            frame = frame.with_columns((frame[name] - frame["arrival"] + arrival).alias(name))
    return frame.with_columns(arrival.alias("arrival"))


def _derive(trace: Trace, frame: pl.DataFrame, note: str) -> Trace:
    return Trace(frame, trace.source, (*trace.notes, note))
