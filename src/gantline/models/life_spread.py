"""How far the speeds of whole jobs lie from what their kind shows in the same run: the spread of lives.

A profile watches a few lives of each kind, so it knows the mean of a kind badly and says little of how one job differs from the next
(its cores, its neighbours, its place on the device). Jobs that really ran say it: their times are fitted by a start for each size and a
pace for each kind, and what is left is theirs alone. An error of the profile, or a machine that was slower that day, does not enter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gantline.core.errors import RefusedError

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
