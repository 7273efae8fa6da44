"""Futures of one case in bulk: every line of work rolled forward from the same instant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats
from gantline.engine.drivers.futures.case import room_for
from gantline.engine.drivers.futures.loop import run_batch
from gantline.engine.drivers.futures.places import MOST_DECISIONS, FutureCase, Newcomer


@dataclass(frozen=True)
class CountedFutures:
    """What becomes of the jobs in each future, by (future, job), and how many decisions each future takes."""

    start: Floats
    finish: Floats
    decisions: Floats

    @property
    def gave_up(self) -> bool:
        """Whether some future decided again and again without getting anywhere."""
        return bool((self.decisions > MOST_DECISIONS).any())


def run_counted(case: FutureCase, work: Floats, coming: Floats | None = None) -> CountedFutures:
    """Roll one future forward for each line of `work`, (future, job).

    `coming` holds the newcomers of each future, (future, what, number): see `places.COMING`.
    """
    if coming is None:
        coming = np.zeros((len(work), len(Newcomer), 0))
    found = CountedFutures(np.empty(work.shape), np.empty(work.shape), np.zeros(len(work)))
    run_batch(case, room_for(case, coming.shape[2]), work, coming, found.start, found.finish, found.decisions)
    return found
