"""What lives of a job beside others have shown, as one entry of a profile: its speed alone and beside a full node, starts and stops."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gantline.core.errors import UsageError
from gantline.models.bundle import Speed
from gantline.models.sampled_line import SampledLine

_SURE = 0.002  # the least half width of a range: no measurement of a second or two knows more


@dataclass(frozen=True)
class TrialLife:
    """One gang that was started, watched among others, stopped and resumed. Times are seconds."""

    start: float  # from the order to its first step
    leave: float  # from the order to stop until it is gone
    resume: float  # as `start`, from what it had saved
    speeds: tuple[tuple[float, float], ...]  # part of the other devices of its node that were busy, steps per second
    together: float = 0.0  # how much longer a start took for each other device on which one began at the same time


def fit_company(lives: Sequence[TrialLife]) -> Speed:
    """The speed falls linearly with the part of the other devices that is busy, or not at all; everything else is a mean with its samples.

    A job that ends saves and leaves as one that is stopped does. That is part of its start, because it ends once, however often it is
    resumed.
    """
    seen = np.array([point for life in lives for point in life.speeds])
    if not len(seen) or not (seen[:, 1] > 0.0).all():
        raise UsageError("no step was seen", where="profile", fix="watch the job for longer")
    busy, speed = seen.T
    slope, alone = map(float, np.polyfit(busy, speed, 1)) if len(set(busy.tolist())) > 1 else (0.0, 0.0)
    if slope >= 0.0:  # company makes nothing faster: what looks like it is chance
        slope, alone = 0.0, float(speed.mean())
    if not (alone > 0.0 and alone + slope > 0.0):
        raise UsageError("its speeds beside others do not lie on a line above zero", where="profile", fix="watch the job for longer")
    ratios = speed / (alone + slope * busy)
    blur = max(2.0 * float(np.std(ratios)), _SURE)
    leaves, resumes = [life.leave for life in lives], [life.resume for life in lives]
    starts = [life.start + statistics.fmean(leaves) for life in lives]
    line = SampledLine(statistics.fmean(starts), 1.0 / alone, 1.0 / alone / (1.0 + blur), 1.0 / alone * (1.0 + blur))
    samples = {"start": tuple(starts), "leave": tuple(leaves), "resume": tuple(resumes), "speed": tuple(ratios.tolist())}
    return Speed(
        line,
        leave=statistics.fmean(leaves),
        resume=statistics.fmean(resumes),
        crowded=(alone + slope) / alone,
        together=max(statistics.fmean(life.together for life in lives), 0.0),
        samples=samples,
    )
