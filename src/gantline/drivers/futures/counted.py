"""What became of the jobs of an instant in many futures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats


@dataclass(frozen=True)
class Counted:
    """What became of the jobs in each future: (future, job), and sums over each (`places.SUM_FINISH` ...); `lost` futures went nowhere.

    Without jobs (`keep_jobs`), `start` and `finish` have no lines, only columns.
    """

    start: Floats
    finish: Floats
    sums: Floats
    lost: int

    @classmethod
    def joined(cls, parts: Sequence[Counted]) -> Counted:
        """Parts of one batch, one after the other."""
        if len(parts) == 1:
            return parts[0]
        start, finish, sums = (np.concatenate([getattr(part, name) for part in parts]) for name in ("start", "finish", "sums"))
        return cls(start, finish, sums, sum(part.lost for part in parts))
