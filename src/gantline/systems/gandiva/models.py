"""Jobs that share GPUs by how busy each keeps them, and gangs that are slower across servers: a model of our own for Gandiva's experiments.

A job says how busy it keeps a GPU alone (`gpu_util`, 0 to 1; 1 where it says nothing) and how many times slower it is on several servers
(`spread_slowdown`). Jobs that together leave a GPU idle do not disturb each other; else each gets its part of what contention leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats
from gantline.models.model import Gangs, PerformanceModel


@dataclass(frozen=True)
class Utilisation(PerformanceModel):
    """Speeds by how busy GPUs are."""

    contention: float = 0.9
    """What is left of a GPU that more is asked of than it has."""

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        used, spread = np.nan_to_num(gangs.metric("gpu_util"), nan=1.0), np.nan_to_num(gangs.metric("spread_slowdown"), nan=1.0)
        rate = np.where(gangs.nodes > 1, gangs.divided / np.maximum(spread, 1.0), gangs.divided)
        place = {row: at for at, row in enumerate(gangs.rows.tolist())}
        for at, grant in enumerate(gangs.grants):
            if grant is None or not grant.shared:
                continue
            mates = [place[mate.row] for mate in gangs[at].mates if mate.row in place]
            if mates:
                asked = float(used[at] + used[mates].sum())
                rate[at] = gangs.alone[at] * (1.0 if asked <= 1.0 else self.contention / asked)
        return rate, np.full(len(gangs), np.inf)
