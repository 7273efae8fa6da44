"""When a job may start, by GAIA's policies and the carbon intensity of its thirty days."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import RefusedError
from gantline.core.facts import Signal
from gantline.systems.gaia.imitation.clock import HOUR, SPAN, GaiaQueue

# The carbon intensity of GAIA's thirty days: one value per hour, the same for each of its ticks, nothing behind the end.


_HOURS = SPAN // HOUR


class Intensity:
    """Grams (or kilograms) that a watt (or a kilowatt) emits in a tick, summed over ticks."""

    def __init__(self, signal: Signal, first_hour: int) -> None:
        if signal.step != 3600.0:
            raise RefusedError(
                f"the series has a row every {signal.step:g} s", where="--carbon", fix="GAIA's simulator reads one row per hour"
            )
        values = np.asarray(signal.values[first_hour : first_hour + _HOURS])
        if len(values) < _HOURS:
            raise RefusedError(
                f"the series has {len(signal.values)} hours, and a run from hour {first_hour} on reads {_HOURS}",
                where="--carbon",
                fix=f"give --set start=H with H from 0 to {max(0, len(signal.values) - _HOURS)}, or a longer series",
            )
        self.hourly: Floats = values / 1000.0
        self._sums = np.concatenate(([0.0], np.cumsum(self.hourly)))

    def at(self, tick: int) -> float:
        return float(self.hourly[tick // HOUR])

    def over(self, begin: int, ticks: int) -> float:
        """What a watt emits from this tick on."""
        return self._until(min(begin + ticks, SPAN)) - self._until(min(begin, SPAN))

    def ticks(self, begin: int, end: int) -> Floats:
        """The intensity of every tick from begin to end, or to the end of the thirty days."""
        end = min(end, SPAN)
        hours = np.repeat(self.hourly[begin // HOUR : -(-end // HOUR)], HOUR)
        skipped = begin - begin // HOUR * HOUR
        return hours[skipped : skipped + end - begin]

    def _until(self, tick: int) -> float:
        hour, rest = divmod(tick, HOUR)
        return float(self._sums[hour]) + (float(self.hourly[hour]) * rest / HOUR if rest else 0.0)


# When a job may start, by GAIA's policies: a list of pieces (first tick, ticks), which is one piece unless a job may be suspended.
#
# Candidates of the policies that move a start are whole hours after the arrival, not hours of the clock; a window is cut at the end of
# the thirty days.


class Piece(NamedTuple):
    """A job, or a part of it, in one go."""

    ready: int
    ticks: int


Planner = Callable[[Intensity, int, int, GaiaQueue], list[Piece]]
"""From the arrival, the length and the queue of a job to its pieces."""

QUANTILE = 0.3
"""Ecovisor runs while the intensity is below this quantile of the next day's."""


def after_patience(intensity: Intensity, now: int, length: int, queue: GaiaQueue) -> list[Piece]:
    """As late as the job may wait; the grid is not looked at."""
    return [Piece(now + queue.patience, length)]


def lowest_slot(intensity: Intensity, now: int, length: int, queue: GaiaQueue) -> list[Piece]:
    """The first tick of least intensity while the job may wait."""
    last = min(now + queue.patience, SPAN - 1)
    edges = [now, *range((now // HOUR + 1) * HOUR, last + 1, HOUR)]
    return [Piece(min(edges, key=intensity.at), length)]


def by_window(*, known: bool, per_time: bool) -> Planner:
    """The start of least carbon, or that saves most carbon per time to the end, for a job of its own length (known) or of the usual one."""

    def plan(intensity: Intensity, now: int, length: int, queue: GaiaQueue) -> list[Piece]:
        ticks = length if known else queue.usual
        return [Piece(_best_hour(intensity, now, length, queue, ticks, per_time=per_time), length)]

    return plan


def wait_awhile(intensity: Intensity, now: int, length: int, queue: GaiaQueue) -> list[Piece]:
    """The ticks of least intensity, earlier ones first: the job is suspended in between."""
    level = intensity.ticks(now, now + length + queue.patience)
    chosen = np.sort(np.argsort(level, kind="stable")[:length])
    return [Piece(now + int(part[0]), len(part)) for part in np.split(chosen, np.flatnonzero(np.diff(chosen) != 1) + 1)]


def ecovisor(intensity: Intensity, now: int, length: int, queue: GaiaQueue) -> list[Piece]:
    """Run while the intensity is below a threshold that is fixed at arrival, and without a pause once the patience is used up."""
    threshold = float(np.quantile(intensity.ticks(now, now + 24 * HOUR), QUANTILE))
    pieces: list[Piece] = []
    left, patience, at = length, queue.patience, now
    while left > 0 and at < SPAN:
        rest_of_hour = min((at // HOUR + 1) * HOUR, SPAN) - at
        if intensity.at(at) < threshold:
            ran = min(left, rest_of_hour)
        elif patience <= 0:
            ran = min(left, SPAN - at)
        else:
            waited = min(patience, rest_of_hour)
            patience, at = patience - waited, at + waited
            continue
        if pieces and pieces[-1].ready + pieces[-1].ticks == at:
            pieces[-1] = Piece(pieces[-1].ready, pieces[-1].ticks + ran)
        else:
            pieces.append(Piece(at, ran))
        left, at = left - ran, at + ran
    return pieces


def _best_hour(intensity: Intensity, now: int, length: int, queue: GaiaQueue, ticks: int, *, per_time: bool) -> int:
    """The best start among whole hours from now on, first on ties, for a job of so many ticks that fits the window."""
    end = min(now + max(length, queue.usual) + queue.patience, SPAN)
    at_once = intensity.over(now, ticks)
    best, found = -np.inf, now
    for start in range(now, now + queue.patience + 1, HOUR):
        if start + ticks > end:
            break
        saved = at_once - intensity.over(start, ticks)
        score = saved / (start - now + ticks) if per_time else saved
        if score > best:
            best, found = score, start
    return found
