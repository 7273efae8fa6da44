"""Draws jobs that may still arrive from those of the past, in blocks of consecutive jobs, each with the gap before it.

The moving-block bootstrap of `past.py`, from now on instead of over again. They come for twice as long as the present queue would take by
itself, so that no job of the queue outlasts them; the work that policies see of them is as inexact as estimates are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from gantline.core.errors import RefusedError
from gantline.core.inputs import Submit
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.models.uncertainty import Uncertainty
from gantline.simulator.rollout import rollout

FEWEST = 10  # jobs of the past, to know how others will come
MOST = 300  # newcomers of one future, or as many as the queue has jobs
_FIX = f"ask again when {FEWEST} have ended"
HALVINGS = 3
PastJob: TypeAlias = Mapping[str, Any]
"""Its arrival, gpus, duration or estimate, and what else is known."""
_COPIED = ("user", "queue", "model", "priority", "min_gpus", "max_gpus", "options", "metrics")
EXACT = Uncertainty(0.0)


@dataclass(frozen=True)
class LikeThePast:
    """Called with a source of chance, it gives the newcomers of one future, from `now` on for `span` seconds."""

    jobs: tuple[PastJob, ...]  # in order of arrival
    now: float
    span: float
    largest: int  # a job that asks for more devices than there are would be refused, now as then
    uncertainty: Uncertainty = EXACT
    most: int = MOST
    first_gap: float | None = None  # seconds before the first of the jobs; None: as long as gaps are on average
    halvings: int = 0  # each future looks back over the whole past, or its latest half, quarter, ...: how often jobs come may have changed

    def __call__(self, random: np.random.Generator) -> list[Submit]:
        if self.halvings:
            return self._looking_back(int(random.integers(self.halvings + 1)))(random)
        arrival = np.array([float(job["arrival"]) for job in self.jobs])
        gaps = np.diff(arrival, prepend=arrival[0])
        gaps[0] = float(np.mean(gaps[1:])) if self.first_gap is None else self.first_gap
        size = max(1, round(math.sqrt(len(self.jobs))))
        found: list[Submit] = []
        at = self.now
        while len(found) < self.most:
            first = int(random.integers(0, len(self.jobs) - size + 1))
            for place in range(first, first + size):
                at += float(gaps[place])
                if at > self.now + self.span or len(found) >= self.most:
                    return found
                found.append(self._one(self.jobs[place], at, len(found), random))
        return found

    def _looking_back(self, halvings: int) -> LikeThePast:
        """The same over the latest part of the past, if enough came in it; all its time before the first and after the last is one gap."""
        arrival = [float(job["arrival"]) for job in self.jobs]
        since = self.now - (self.now - arrival[0]) / 2**halvings
        first = int(np.searchsorted(arrival, since))
        if len(self.jobs) - first < FEWEST:
            since, first = arrival[0], 0
        gap = arrival[first] - since + self.now - arrival[-1]
        return replace(self, jobs=self.jobs[first:], halvings=0, first_gap=gap)

    def _one(self, job: PastJob, at: float, number: int, random: np.random.Generator) -> Submit:
        fields = {key: job[key] for key in _COPIED if job.get(key) not in (None, "")}
        gpus = int(job.get("gpus", 1))
        if "options" not in fields:
            gpus = min(gpus, self.largest)
            for key in ("min_gpus", "max_gpus"):
                if key in fields:
                    fields[key] = min(int(fields[key]), self.largest)
        work, estimate = self._amounts(job, random)
        return Submit(at, {"id": f"newcomer-{number}", "gpus": gpus, "estimate": max(estimate, 1e-3), **fields}, work)

    def _amounts(self, job: PastJob, random: np.random.Generator) -> tuple[float, float]:
        """The work and the estimate of one like it: one of them is known, and says how the other may be."""
        if "duration" in job:
            work = float(job["duration"])
            return work, work * math.exp(-self.uncertainty.sigma * float(random.standard_normal()))
        estimate = float(job["estimate"])
        return estimate * self.uncertainty.ratio(random), estimate


def like_the_past(
    jobs: Sequence[PastJob],
    snapshot: Snapshot,
    policy: Policy,
    uncertainty: Uncertainty = EXACT,
    until: float = math.inf,
    **how: Any,
) -> LikeThePast:
    """Newcomers for the queue of a snapshot, at most until an instant; `how` is what a roll forward needs to know besides."""
    known = sorted(jobs, key=lambda job: float(job["arrival"]))
    if len(known) < FEWEST:
        raise RefusedError(f"only {len(known)} jobs are known, too few to say how others come", where="newcomers", fix=_FIX)
    if not tell_how_others_come([job["arrival"] for job in known]):
        raise RefusedError("all jobs of the past came at once", where="newcomers", fix="leave it out")
    ends = np.minimum(rollout(snapshot, policy, until=until, **how)[0].finish, until)
    span = 2.0 * float(np.max(ends[np.isfinite(ends)], initial=snapshot.now) - snapshot.now)
    largest = max((int(node.gpus) for node in snapshot.cluster.description.nodes), default=1)
    of_a_look = not any("duration" in job for job in known)  # up to now, on the clock of the snapshot; a table has another
    halvings, most = HALVINGS if of_a_look else 0, max(MOST, len(snapshot.jobs))
    return LikeThePast(tuple(known), snapshot.now, span, largest, uncertainty, most, halvings=halvings)


def tell_how_others_come(arrivals: Sequence[float]) -> bool:
    """Whether there are enough of them, at more than one instant."""
    return len(arrivals) >= FEWEST and max(arrivals) > min(arrivals)
