"""When the grid is clean: from a job's length and patience to the times in which it should run.

As the paper means it, for clusters of any kind: candidates are the instants at which the signal changes (and now), ties go to the
earlier one, and nothing is planned that would break the job's patience. GAIA's own way of counting is in `systems/gaia/imitation`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.signal import Signal

DAY = 86400.0
QUANTILE = 0.3
"""Ecovisor runs while the signal is below this quantile of the next day's."""


class CleanSpan(NamedTuple):
    """A job should run from `begin` on, until it is done or `end` has come."""

    begin: float
    end: float


class Errand(NamedTuple):
    """A job at its arrival: how long it takes, how long jobs of its kind take, and how long it may wait."""

    now: float
    length: float
    usual: float
    patience: float


def lowest_slot(signal: Signal, job: Errand) -> float:
    """The first instant of least intensity."""
    starts = _starts(signal, job)
    return starts[int(np.argmin(signal.at(np.array(starts))))]


def lowest_window(signal: Signal, job: Errand, length: float) -> float:
    """The start of least carbon for so long a run."""
    starts = np.array(_starts(signal, job))
    return float(starts[_first_least(signal.integral(starts, starts + length))])


def carbon_time(signal: Signal, job: Errand, length: float) -> float:
    """The start that saves most carbon per time to the end; now, unless something is saved."""
    starts = np.array(_starts(signal, job))
    carbon = signal.integral(starts, starts + length)
    return float(starts[_first_least((carbon - carbon[0]) / (starts - job.now + length))])


def cleanest_spans(signal: Signal, job: Errand) -> list[CleanSpan]:
    """Wait Awhile: the cleanest steps that hold the whole job, before its patience is over; earlier ones on ties."""
    edges = np.array([*_edges(signal, job.now, job.now + job.length + job.patience), job.now + job.length + job.patience])
    room = np.diff(edges)
    left, chosen = job.length, []
    for place in np.argsort(signal.at(edges[:-1]), kind="stable").tolist():
        if left <= 0:
            break
        chosen.append((float(edges[place]), min(float(room[place]), left)))
        left -= float(room[place])
    return _joined([CleanSpan(begin, begin + seconds) for begin, seconds in sorted(chosen)])


def spans_below(signal: Signal, job: Errand) -> list[CleanSpan]:
    """Ecovisor: run while the signal is below a threshold fixed at arrival, and without a pause once the patience is used up."""
    day = np.array(_edges(signal, job.now, job.now + DAY))
    weight = np.diff(np.append(day, job.now + DAY))
    threshold = _quantile(signal.at(day), weight, QUANTILE)
    spans, at, left, patience = [], job.now, job.length, job.patience
    while left > 0:
        if patience <= 0:
            spans.append(CleanSpan(at, at + left))
            break
        room = signal.next_step(at) - at
        if signal.at(np.array([at]))[0] >= threshold:
            waited = min(patience, room)
            patience, at = patience - waited, at + waited
        else:
            ran = min(left, room)
            spans.append(CleanSpan(at, at + ran))
            left, at = left - ran, at + ran
    return _joined(spans)


def _starts(signal: Signal, job: Errand) -> list[float]:
    return [job.now] if job.patience <= 0 else _edges(signal, job.now, math.nextafter(job.now + job.patience, math.inf))


def _edges(signal: Signal, begin: float, end: float) -> list[float]:
    """`begin`, and every instant before `end` at which another value begins."""
    first = signal.next_step(begin)
    return [begin, *np.arange(first, end, signal.step).tolist()]


def _first_least(values: Floats) -> int:
    """The first of those that are least, but for rounding."""
    least = float(values.min())
    return int(np.argmax(values <= least + 1e-9 * max(1.0, abs(least))))


def _quantile(values: Floats, weight: Floats, share: float) -> float:
    """The least value below or at which so much of the time lies."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order]) / weight.sum()
    return float(values[order][int(np.searchsorted(reached, share))])


def _joined(spans: list[CleanSpan]) -> list[CleanSpan]:
    """The same times with neighbours made one; the last one has no end: what is late is finished then."""
    joined: list[CleanSpan] = []
    for span in spans:
        if joined and span.begin <= joined[-1].end + 1e-6:
            joined[-1] = CleanSpan(joined[-1].begin, span.end)
        else:
            joined.append(span)
    return [*joined[:-1], CleanSpan(joined[-1].begin, math.inf)] if joined else [CleanSpan(-math.inf, math.inf)]
