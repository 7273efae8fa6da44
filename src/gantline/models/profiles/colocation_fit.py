"""What gangs beside others have shown: a job's speed beside a full node, and how far whole jobs differ."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gantline.core.errors import RefusedError, UsageError
from gantline.models.profiles.bundle import SampledLine, Speed

_SURE = 0.002  # the least half width of a range: no measurement of a second or two knows more


@dataclass(frozen=True)
class TrialLife:
    """One gang that was started, watched among others, stopped and resumed. Times are seconds."""

    start: float  # from the order to its first step
    leave: float  # from the order to stop until it is gone
    resume: float  # as `start`, from what it had saved
    speeds: tuple[tuple[float, float], ...]  # part of the other devices of its node that were busy, steps per second
    together: float = 0.0  # how much longer a start took for each other device on which one began at the same time


def fit_colocation(lives: Sequence[TrialLife]) -> Speed:
    """The speed falls linearly with the part of the other devices that is busy, or not at all; everything else is a mean with its samples.

    A job that ends saves and leaves as one that is stopped does. That is part of its start, because it ends once, however often it is
    resumed.
    """
    seen = np.array([point for life in lives for point in life.speeds])
    if not len(seen) or not (seen[:, 1] > 0.0).all():
        raise UsageError("no step was seen", where="profile", fix="watch the job for longer")
    busy, speed = seen.T
    slope, alone = map(float, np.polyfit(busy, speed, 1)) if len(set(busy.tolist())) > 1 else (0.0, 0.0)
    if slope >= 0.0:  # neighbours make nothing faster: what looks like it is chance
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


# How far the speeds of whole jobs lie from what their kind shows in the same run: the spread of lives.
#
# A profile watches a few lives of each kind, so it knows the mean of a kind badly and says little of how one job
# differs from the next (its cores, its neighbours, its place on the device). Jobs that really ran say it: their times
# are fitted by a start for each size and a pace for each kind, and what is left is theirs alone. An error of the
# profile, or a machine that was slower that day, does not enter.

FEWEST = 20  # lives from which a spread is learned
_LONG = 3.0  # starts that a life must last, so that a late start is not taken for a slow job


class WholeLife(NamedTuple):
    """One gang that ran from its start to the end of its job."""

    kind: str
    gpus: int
    work: float  # seconds of training, as its profile has it for a gang alone
    seconds: float  # from the order to start it until it had ended


def spread_of_lives(runs: Sequence[Sequence[WholeLife]]) -> tuple[float, ...]:
    """Speed of each life over the mean of its kind in its run, of those that were long enough to tell; their mean is 1."""
    found = [one for lives in runs for one in _of_run(lives)]
    if len(found) < FEWEST:
        raise RefusedError(
            f"{len(found)} lives tell too little", where="lives", fix=f"give {FEWEST} that last longer than {_LONG:g} starts"
        )
    return tuple((np.array(found) / np.mean(found)).tolist())


def _of_run(lives: Sequence[WholeLife]) -> list[float]:
    sizes, kinds = sorted({life.gpus for life in lives}), sorted({life.kind for life in lives})
    free = len(lives) - len(sizes) - len(kinds)
    if free <= 0:
        return []
    known = np.array([[*(life.gpus == size for size in sizes), *(life.work * (life.kind == kind) for kind in kinds)] for life in lives])
    fitted = np.linalg.lstsq(known.astype(np.float64), np.array([life.seconds for life in lives]), rcond=None)[0].tolist()
    starts, paces = dict(zip(sizes, fitted)), dict(zip(kinds, fitted[len(sizes) :]))
    wider = math.sqrt(len(lives) / free)  # the fit has taken a part of the differences for itself
    found = []
    for life in lives:
        trained, expected = life.seconds - starts[life.gpus], paces[life.kind] * life.work
        if life.work >= _LONG * starts[life.gpus] and trained > 0.0 and expected > 0.0:
            found.append((expected / trained) ** wider)
    return found
