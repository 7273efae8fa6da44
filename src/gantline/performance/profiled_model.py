"""A performance model made of measured profiles: what starts and stops cost on each type, and how fast jobs are that share devices.

Speeds alone are in the options of the jobs already. A job is found by its model's name in the bundle; of others nothing is said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.plan import Mode
from gantline.performance.bundle import Bundle
from gantline.performance.model import Act, Gang, Gangs, PerformanceModel


@dataclass(frozen=True)
class ProfiledModel(PerformanceModel):
    """`added` is what the runner takes in addition for each start, in seconds."""

    bundle: Bundle
    added: float = 0.0

    def cost(self, gangs: Gangs) -> Floats:
        """What a start takes, wherever that was measured."""
        cost = np.full(len(gangs), np.nan)
        for at, (model, kind, gpus, act) in enumerate(zip(gangs.models, gangs.type, gangs.gpus, gangs.act)):
            seat = (gangs.cluster.types[int(kind)], int(gpus))
            profile = self.bundle.jobs.get(model)
            if profile is None or seat not in profile.alone or act == Act.SWITCH:
                continue
            speed = profile.alone[seat]
            first = act == Act.START or speed.resume is None
            cost[at] = self.added + (speed.line.startup if first else speed.resume or 0.0)
        return cost

    def leave(self, model: str, type: str, gpus: int) -> float:
        """As measured; nothing where nothing was measured."""
        profile = self.bundle.jobs.get(model)
        speed = profile.alone.get((type, gpus)) if profile is not None else None
        return speed.leave or 0.0 if speed is not None else 0.0

    def granted(self, gang: Gang) -> float | None:
        """Next to others in space each is as much slower as was measured; one that was not measured gets its part."""
        if gang.grant is None or gang.grant.assignment.mode is not Mode.SPACE:
            return None
        kind, profile = gang.cluster.types[gang.type], self.bundle.jobs.get(gang.model)
        here, speed = set(gang.grant.devices), gang.alone
        mates = [mate for mate in gang.mates if not here.isdisjoint(mate.grant.devices)]
        for mate in mates:
            pairing = profile.pairs.get((kind, gang.gpus, mate.model)) if profile is not None else None
            if pairing is None:
                return None
            speed *= pairing.ratio
        return speed
