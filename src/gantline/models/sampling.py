"""Profiling by short runs: two per device type, a straight line through them (AlloX, EuroSys 2020, section 5).

A run of a share s of a job's work takes ``startup + s x work`` seconds, so two shares give both unknowns and the whole time
``startup + work``. One interface serves the simulator and live machines: `Sampler.plan_runs` says which runs to make and
what each occupies, someone makes them (`Sampler.measure` in a simulation, a real process live), and `Sampler.fit` turns
the samples into estimates with a range that says how little so short a run can show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf

import numpy as np

from gantline.core.errors import UsageError
from gantline.core.policy import Estimate, Source

LARGEST_ERROR = 0.99


@dataclass(frozen=True, slots=True)
class RunResources:
    """What a job's runs on one device type occupy."""

    type: int
    devices: int = 1
    cpus: float = 0.0
    memory: float = 0.0  # GB


@dataclass(frozen=True, slots=True)
class SampledRun:
    """One short run to make: a share of the job's work on some resources, ended after ``limit`` seconds at the latest."""

    resources: RunResources
    share: float
    limit: float = inf


@dataclass(frozen=True, slots=True)
class Sample:
    """How long a share of the work took on a device type."""

    type: int
    share: float
    seconds: float


@dataclass(frozen=True)
class Sampler:
    """How jobs are sampled.

    IRFsim's model is the default: 1 % and 2 % of the work, at least a second each. AlloX' own profiler makes one run
    of nothing but the start-up and one of 1.5 %: ``shares=(0.0, 0.015)``.
    """

    shares: tuple[float, ...] = (0.01, 0.02)
    shortest: float = 1.0  # seconds that any run takes at least
    resolution: float = 0.0  # seconds between looks at whether a run has ended
    limit: float = inf  # seconds after which a run is given up

    def __post_init__(self) -> None:
        if len(self.shares) < 2 or any(a >= b for a, b in pairwise(self.shares)):
            raise UsageError(
                f"shares are {list(self.shares)}", where="sampling", fix="give two or more rising shares, such as 0.01 and 0.02"
            )
        if self.shares[0] < 0 or self.shares[-1] > 1:
            raise UsageError("a share lies outside 0 to 1", where="sampling", fix="shares are parts of the whole work")
        if min(self.shortest, self.resolution) < 0 or self.limit <= 0:
            raise UsageError("a time is negative", where="sampling", fix="shortest and resolution from 0 on, limit above 0")

    def plan_runs(self, places: Sequence[RunResources]) -> tuple[SampledRun, ...]:
        """The runs that a job with these places needs, type by type, short ones first."""
        if not places:
            raise UsageError("the job has no device type to be sampled on", where="sampling", fix="give it an option")
        return tuple(SampledRun(resources, share, self.limit) for resources in places for share in self.shares)

    def measure(self, run: SampledRun, work: float, rng: np.random.Generator, *, startup: float = 0.0, error: float = 0.0) -> Sample:
        """A simulated run of a job whose whole work takes ``work`` true seconds; ``error`` is the relative deviation of its speed."""
        if work <= 0:
            raise UsageError(f"the work to sample is {work:g} s", where="sampling", fix="give a positive duration")
        stretch = 1.0 + float(np.clip(rng.normal(0.0, error), -LARGEST_ERROR, LARGEST_ERROR)) if error else 1.0
        seconds = max(startup + run.share * work * stretch, self.shortest)
        if self.resolution:
            seconds = self.resolution * ceil(seconds / self.resolution - 1e-9)
        return Sample(run.resources.type, run.share, min(seconds, run.limit))

    def fit(self, samples: Iterable[Sample]) -> dict[int, Estimate]:
        """The time of the whole job on each type that was sampled often enough."""
        by_type: dict[int, list[Sample]] = {}
        for sample in samples:
            by_type.setdefault(sample.type, []).append(sample)
        return {kind: self.fit_line(made) for kind, made in sorted(by_type.items()) if len({s.share for s in made}) > 1}

    def fit_line(self, samples: Sequence[Sample]) -> Estimate:
        """Extrapolate a least-squares line to the whole work.

        A line that does not rise says that noise was all there was to see: then the longest run is what is known to be
        needed, and the time of the largest share bounds the rest.
        """
        share = np.array([sample.share for sample in samples])
        seconds = np.array([sample.seconds for sample in samples])
        if np.any(seconds <= 0) or not np.all(np.isfinite(seconds)):
            raise UsageError("a sample took no time at all", where="sampling", fix="leave out runs that did not start")
        away = share - share.mean()
        pull = 1.0 / len(share) + (1.0 - share.mean()) * away / (away**2).sum()  # of each sample on the value at 1
        value = float(pull @ seconds)
        longest = float(seconds.max())
        at = int(share.argmax())
        if value <= longest * (1 + 1e-9):
            floor = max(longest, self.shortest)
            return Estimate(floor, floor, max(floor, float(seconds[at] / share[at])), Source.PROFILED)
        blur = float(np.abs(pull).sum()) * self.resolution / 2
        return Estimate(value, max(value - blur, longest), value + blur, Source.PROFILED)
