"""Scaling curves that are not known beforehand: what jobs report at the sizes they have run with, and honest guesses for the others.

Voda's collector (Hsieh and Lee, IC2E 2023) keeps the mean epoch time per number of workers and divides that of one worker by it. Where one
worker was never tried, its prior of a second makes every speedup meaningless. Here a guess never rests on a size that was not tried:

    tried                  the mean of what was reported there
    between two tried      on the line between them
    above the largest      the same speed per worker as there, an upper bound where curves bend down
    below the smallest     the same speed per worker as there, a lower bound; so is the speed of one worker that speedups refer to
    nothing tried          in proportion to the request, which the user's duration speaks of
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError
from gantline.core.policy import Source
from gantline.core.rng import stream
from gantline.models.model import Gang, Gangs, Observed, PerformanceModel

_KEPT_JOBS = 5000


@dataclass(frozen=True)
class LearnedCurves(PerformanceModel):
    """Gangs go as `truth` says (None: as divided); policies know what was reported, each report off by a factor with deviation `noise`."""

    truth: Any = None
    noise: float = 0.05

    def __post_init__(self) -> None:
        if not 0.0 <= self.noise < 1.0:
            raise UsageError(f"noise is {self.noise:g}", where="scaling learned:NOISE", fix="a deviation from 0 to below 1")

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        if self.truth is None:
            return gangs.divided.copy(), np.full(len(gangs), np.inf)
        rate, until = self.truth.rates(gangs)
        return np.asarray(rate, dtype=np.float64), np.asarray(until, dtype=np.float64)

    def granted(self, gang: Gang) -> float | tuple[float, float] | None:
        found: float | tuple[float, float] | None = None if self.truth is None else self.truth.granted(gang)
        return found

    def rate(self, job: str, type: int, gpus: int) -> float | None:
        found: float | None = None if self.truth is None else self.truth.rate(job, type, gpus)
        return found

    def observe(self, gangs: Gangs) -> Observed:
        """The mean of the reports of each job at each size, and how many they were: one per decision while it works."""
        known: dict[str, Any] = dict(gangs.learned or {})
        speed = self.rates(gangs)[0]
        for at, job in enumerate(gangs.jobs):
            if speed[at] > 0.0 and gangs.since[at] <= gangs.now and gangs.done[at] > 0.0:
                size, tried = str(int(gangs.gpus[at])), dict(known.pop(job, {}))
                count, mean = tried.get(size, [0, 0.0])
                report = float(speed[at])
                if self.noise > 0.0:
                    report *= float(np.exp(self.noise * stream(0, int(count), f"report/{job}/{size}").standard_normal()))
                tried[size] = [count + 1, mean + (report - mean) / (count + 1)]
                known[job] = tried
        return Observed(learned=dict(list(known.items())[-_KEPT_JOBS:]))

    def known_speeds(self, learned: Mapping[str, Any] | None, job: str, asked: int, sizes: Ints) -> Floats:
        """Work per second at each size, as far as it can be known."""
        return believed_speeds((learned or {}).get(job, {}), asked, sizes)[0]


def believed_speeds(tried: Mapping[str, list[float]], asked: int, sizes: Ints) -> tuple[Floats, Ints]:
    """Speeds at the given sizes, and where each comes from (`Source`: measured, similar between two measured, default)."""
    if not tried:
        return sizes / max(asked, 1), np.full(len(sizes), int(Source.DEFAULT))
    known = np.array(sorted(int(size) for size in tried))
    speed = np.array([tried[str(size)][1] for size in known.tolist()])
    inside = np.interp(sizes, known, speed)
    found = np.where(sizes > known[-1], speed[-1] * sizes / known[-1], np.where(sizes < known[0], speed[0] * sizes / known[0], inside))
    between = (sizes > known[0]) & (sizes < known[-1])
    source = np.where(np.isin(sizes, known), int(Source.MEASURED), np.where(between, int(Source.SIMILAR), int(Source.DEFAULT)))
    return found, source


def read_scaling(text: str) -> float | None:
    """The noise of ``learned`` or ``learned:0.1``; None for ``listed``."""
    name, _, noise = text.partition(":")
    if name == "listed" and not noise:
        return None
    try:
        if name != "learned":
            raise ValueError
        return LearnedCurves(noise=float(noise) if noise else 0.05).noise
    except ValueError:
        raise UsageError(f"'{text}' is no way to know speeds", where="--scaling", fix="listed, learned or learned:0.1") from None
