"""A performance model made of measured profiles: what starts and stops cost, and speeds beside others.

Speeds alone are in the options of the jobs already. A job is found by its model's name in the bundle; of others
nothing is said. Times may be drawn from what was measured (`DrawnTimes`), so that a prediction has a spread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from statistics import fmean
from typing import ClassVar

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.plan import Mode
from gantline.models.model import Act, Gang, Gangs, PerformanceModel
from gantline.models.profiles.bundle import SAMPLED, Bundle, Speed


@dataclass(frozen=True)
class ProfiledModel(PerformanceModel):
    """`added` is what the runner takes in addition for each start, in seconds.

    `draw`: every start, stop, resume and speed is drawn from what was measured, in the draw of that number; None: each is the mean.
    """

    about_everyone: ClassVar[bool] = True  # how fast a job is depends on how many devices of its node are busy

    bundle: Bundle
    added: float = 0.0
    draw: int | None = None

    @cached_property
    def _drawn(self) -> DrawnTimes | None:
        return None if self.draw is None else DrawnTimes.of(self.bundle, self.draw)

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        """As measured beside as many others of the node; in the run of a draw each job has a speed of its own."""
        rate, until = super().rates(gangs)
        speeds = [self._speed(model, gangs.cluster.types[int(kind)], int(gpus)) for model, kind, gpus in _models_and_devices(gangs)]
        if any(speed is not None and speed.crowded != 1.0 for speed in speeds):
            rate *= [1.0 if speed is None else 1.0 - (1.0 - speed.crowded) * busy for speed, busy in zip(speeds, gangs.busy_beside)]
        if self.draw is not None:
            rate *= [self._factor("speed", model, speed, job) for model, speed, job in zip(gangs.models, speeds, gangs.jobs)]
        return rate, until

    def cost(self, gangs: Gangs) -> Floats:
        """What a start takes, wherever that was measured; gangs that start at once delay each other."""
        cost, together = np.full(len(gangs), np.nan), _starting_together(gangs)
        for at, ((model, kind, gpus), act) in enumerate(zip(_models_and_devices(gangs), gangs.act)):
            speed = self._speed(model, gangs.cluster.types[int(kind)], int(gpus))
            if speed is None or act == Act.SWITCH:
                continue
            first = act == Act.START or speed.resume is None
            seconds = speed.line.startup if first else speed.resume or 0.0
            what, occasion = ("start", ()) if act == Act.START else ("resume", (gangs.now,))
            seconds *= self._factor(what, model, speed, gangs.jobs[at], *occasion)
            cost[at] = self.added + seconds + speed.together * together[at]
        return cost

    def leave(self, job: str, model: str, type: str, gpus: int, now: float) -> float:
        """As measured; nothing where nothing was measured."""
        speed = self._speed(model, type, gpus)
        return (speed.leave or 0.0) * self._factor("leave", model, speed, job, now) if speed is not None else 0.0

    def drawn(self, number: int) -> ProfiledModel | None:
        """In the draw of that number, where single measurements were kept."""
        kept = bool(self.bundle.lives) or any(speed.samples for job in self.bundle.jobs.values() for speed in job.alone.values())
        return replace(self, draw=number) if kept else None

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

    def _speed(self, model: str, kind: str, gpus: int) -> Speed | None:
        profile = self.bundle.jobs.get(model)
        return None if profile is None else profile.alone.get((kind, gpus))

    def _factor(self, what: str, model: str, speed: Speed | None, *occasion: object) -> float:
        """By how much a time or a speed differs from its profile in this draw."""
        if self._drawn is None or speed is None:
            return 1.0
        return self._drawn.factor(what, model, speed.lives, *occasion)


def _starting_together(gangs: Gangs) -> list[int]:
    """For each gang, other devices of its nodes on which one of these begins at this instant."""
    nodes = [gangs.cluster.device_node[list(gangs.devices(at))] for at in range(len(gangs))]
    begins = [act != Act.SWITCH for act in gangs.act]
    started = Counter(one for node, begin in zip(nodes, begins) if begin for one in node.tolist())
    return [sum(started[one] for one in set(node.tolist())) - begin * len(node) for node, begin in zip(nodes, begins)]


def _models_and_devices(gangs: Gangs) -> zip[tuple[str, int, int]]:
    return zip(gangs.models, gangs.type, gangs.gpus)


# Times drawn from what was measured, so that a prediction has a spread.
#
# A bootstrap in two steps. A profile is the mean of a few measurements: each draw takes the mean of as many that are
# picked anew, with replacement, once per kind of job. Then every start, stop, resume and run of a job is picked by
# itself. A kind was measured once or twice only, so measurements are pooled: of starts, stops and resumes over the
# mean of all kinds on the same devices, which counts differences between kinds as chance and errs on the wide side.
# Speeds are pooled over the mean of their kind, where whole jobs have shown them (`Bundle.lives`); else over the
# fitted speed, which differs less: it was watched for seconds, beside the same neighbours.


@dataclass(frozen=True)
class DrawnTimes:
    """Factors by which times and speeds differ from their profile, in the draw of that number."""

    pooled: Mapping[str, tuple[float, ...]]  # by what of `SAMPLED`: measurements over their mean
    draw: int
    _means: dict[tuple[str, str, int], float] = field(default_factory=dict, compare=False, repr=False)  # of kinds, once picked

    @classmethod
    def of(cls, bundle: Bundle, draw: int) -> DrawnTimes:
        """From all that a bundle has of each."""
        pooled: dict[str, list[float]] = {what: [] for what in SAMPLED}
        for device_count in bundle.device_counts:
            for what in SAMPLED:
                seen = [
                    one
                    for job in bundle.jobs.values()
                    if device_count in job.alone
                    for one in job.alone[device_count].samples.get(what, ())
                ]
                mean = 1.0 if what == "speed" or not seen else fmean(seen)
                pooled[what] += [one / mean for one in seen if mean > 0.0]
        if bundle.lives:
            pooled["speed"] = [*bundle.lives]
        return cls({what: tuple(ratios) for what, ratios in pooled.items()}, draw)

    def factor(self, what: str, kind: str, measured: int, *occasion: object) -> float:
        """That of one occasion of a kind of job which was measured so many times; 1 where nothing was."""
        pool = self.pooled.get(what, ())
        if not pool:
            return 1.0
        known = what, kind, max(measured, 1)
        if known not in self._means:
            self._means[known] = fmean(self._pick(pool, what, kind, place) for place in range(known[2]))
        return self._means[known] * self._pick(pool, what, kind, *occasion)

    def _pick(self, pool: tuple[float, ...], *key: object) -> float:
        digest = blake2b(repr((self.draw, *key)).encode(), digest_size=8).digest()
        return pool[int.from_bytes(digest, "little") % len(pool)]
