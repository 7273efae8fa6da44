"""The line through a profiler's short runs: what a start costs and what a step takes, with a range for the latter.

AlloX (EuroSys 2020, section 5) makes two runs per device type and extrapolates. Repeated runs at the same two lengths tell in addition how
far the answer can be trusted: the range is the 95 % interval of the slope.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gantline.core.errors import UsageError
from gantline.core.estimates import Estimate, Source

#: 97.5 % quantiles of Student's t by degrees of freedom; from eleven on the last one serves
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.1)


@dataclass(frozen=True, slots=True)
class SampledLine:
    """Seconds of a run of n steps: ``startup + n x seconds``."""

    startup: float
    seconds: float  # per step
    low: float  # between which values `seconds` lies
    high: float

    @property
    def rate(self) -> float:
        """Steps per second."""
        return 1.0 / self.seconds

    def whole(self, steps: float) -> Estimate:
        """The time that a job of so many steps takes, start included."""
        middle, low, high = (self.startup + steps * each for each in (self.seconds, self.low, self.high))
        return Estimate(middle, low, high, Source.PROFILED)


def fit_line(runs: Sequence[tuple[float, float]], resolution: float = 0.01) -> SampledLine:
    """The least-squares line through runs of (steps, seconds); two lengths at least.

    Two runs leave nothing to judge the error by, so it is taken to be that of a clock with this resolution. A line that does not rise says
    that the runs were too short to see a step: then the longest run bounds a step from above, and nothing bounds it from below.
    """
    if len({steps for steps, _ in runs}) < 2:
        raise UsageError("runs of one length show no speed", where="profile", fix="make short runs of two lengths, such as 10 and 60 steps")
    if any(not (steps >= 0 and seconds > 0 and math.isfinite(seconds)) for steps, seconds in runs):
        raise UsageError("a run took no time at all", where="profile", fix="leave out runs that did not start")
    count = len(runs)
    steps_mean = math.fsum(steps for steps, _ in runs) / count
    mean = math.fsum(seconds for _, seconds in runs) / count
    spread = math.fsum((steps - steps_mean) ** 2 for steps, _ in runs)
    slope = math.fsum((steps - steps_mean) * (seconds - mean) for steps, seconds in runs) / spread
    longest, at = max((steps, seconds) for steps, seconds in runs)
    if slope <= 0.0:
        return SampledLine(0.0, at / longest, 0.0, at / longest)
    startup = mean - slope * steps_mean
    if startup < 0.0:  # nothing starts before it is asked to
        startup, slope = 0.0, math.fsum(s * t for s, t in runs) / math.fsum(s * s for s, _ in runs)
    off = math.fsum((seconds - startup - slope * steps) ** 2 for steps, seconds in runs)
    blur = _STUDENT[min(count - 2, len(_STUDENT)) - 1] * math.sqrt(off / (count - 2) / spread) if count > 2 else 0.0
    blur = max(blur, resolution / math.sqrt(spread))
    return SampledLine(startup, slope, max(slope - blur, 0.0), slope + blur)


def two_points(notes: Sequence[tuple[float, int]], steps: int, total: float) -> list[tuple[float, float]]:
    """Two runs (steps, seconds) out of one that noted (seconds since its start, steps made): it, and the same if it had ended early.

    What it did after its last step (a checkpoint, the end of the process) belongs to both. The early one is taken after a quarter of the
    training, so that slow first steps count as part of the start, as they do in a job of any length.
    """
    first, last = notes[0], notes[-1]
    early = next(note for note in notes if note[0] >= first[0] + (last[0] - first[0]) / 4)
    if early[1] >= last[1]:
        raise UsageError("it noted its steps only once", where="profile", fix="longer runs")
    pace = (last[0] - early[0]) / (last[1] - early[1])
    closing = max(0.0, total - last[0] - (steps - last[1]) * pace)
    return [(float(early[1]), early[0] + closing), (float(steps), total)]
