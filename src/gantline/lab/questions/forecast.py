"""When will it start, when will it end: the present rolled forward many times, each with other amounts of work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.columns import Job, Option
from gantline.core.errors import NotFoundError, near
from gantline.core.facts import Costs
from gantline.core.fields import human_seconds
from gantline.core.inputs import Input
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.tables import Tables, tables_behind
from gantline.lab.questions.newcomers import PastJob, like_the_past
from gantline.models.uncertainty import Uncertainty
from gantline.simulator.rollout import Candidate, Futures, Newcomers, rollout
from gantline.traces.files.policies import GivenPlacement

SAMPLES = 40
DRAWS = 200  # where times and speeds are drawn as well, so that a tenth of them tells something
_SHORTEST = 1e-6  # seconds that a length has at least
_AS = {"p50": "p50", "p90": "p90", "mean": "p50", "low": "p50", "high": "p90"}
_MOVED_AS = {f"{what}_{name}": f"{what}_{share}" for what in ("start", "finish") for name, share in _AS.items()}
"""Each instant of a forecast, and as which one it is moved when forecasts are late."""


# The quantiles of all futures that a forecast reports.

#: the share of futures in which it has come by then
SHARES: Final = {"p50": 0.5, "p90": 0.9}
#: where the middle nine tenths of all futures begin and end
NINE_TENTHS: Final = (0.05, 0.95)


def place_of(share: float, draws: int) -> int:
    """The place among sorted draws, from zero, which one more future precedes with at least this chance; else the last."""
    return min(math.ceil(round(share * (draws + 1), 9)), draws) - 1


# By how much forecasts are moved, because earlier ones were late; `lateness` learns it.


@dataclass(frozen=True)
class Stretch:
    """Lengths by which each instant of a forecast is moved, learned from so many forecasts."""

    start_p50: float = 0.0
    start_p90: float = 0.0
    finish_p50: float = 0.0
    finish_p90: float = 0.0
    forecasts: int = 0

    @property
    def text(self) -> str:
        """The stretch as a phrase."""
        return f"stretched as {self.forecasts} earlier forecasts were late" if self.forecasts else ""


UNSTRETCHED = Stretch()


@dataclass(frozen=True)
class Setup:
    """What a roll forward needs to know beyond the snapshot."""

    placement: GivenPlacement | None = None  # another rule than that of the run
    costs: Costs | None = None
    horizon: float = math.inf
    uncertainty: Uncertainty = field(default_factory=Uncertainty)
    newcomers: Newcomers | None = None  # jobs that may still be submitted; None: no other job arrives
    samples: int | None = None  # futures; None: `DRAWS` where the performance model has a spread, else `SAMPLES`
    seed: int = 0
    stretch: Stretch = UNSTRETCHED  # by how much earlier forecasts were late
    seconds: float = math.inf  # of CPU time after which no further future is begun; one is made in any case
    has_spread: bool = False  # whether times and speeds are drawn, too: see `at`

    def at(self, snapshot: Snapshot) -> Setup:
        """The same for this instant: whether its performance model has a spread, and how many futures there are."""
        spread = snapshot.performance is not None and snapshot.performance.drawn(0) is not None
        samples = self.samples if self.samples is not None else DRAWS if spread else SAMPLES
        return replace(self, samples=samples, has_spread=spread)

    def with_newcomers(self, jobs: Sequence[PastJob], snapshot: Snapshot, policy: Policy) -> Setup:
        """The same with others that come as these jobs did."""
        until = snapshot.now + self.horizon
        coming = like_the_past(jobs, snapshot, policy, self.uncertainty, until, placement=self.placement, costs=self.costs)
        return replace(self, newcomers=coming)

    @property
    def over(self) -> str:
        """What varies from draw to draw, in words."""
        arrivals = ", with newcomers as in the past" if self.newcomers is not None else ", no new jobs"
        times = ", starts, stops and speeds as measured" if self.has_spread else ""
        return f"work by {self.uncertainty.source}{times}{arrivals}" + (f"; {self.stretch.text}" if self.stretch.forecasts else "")

    def futures(self, snapshot: Snapshot, policy: Policy | Candidate, inputs: Sequence[Input] = (), draws: int | None = None) -> Futures:
        """The snapshot rolled forward `samples` times; the same seed draws the same work, whatever the policy.

        Fewer if `seconds` run out first.
        """
        found: Futures = rollout(
            snapshot,
            policy,
            draws=(self.at(snapshot).samples or 0) if draws is None else draws,
            until=snapshot.now + self.horizon,
            newcomers=self.newcomers,
            seed=self.seed,
            uncertainty=self.uncertainty,
            placement=self.placement,
            costs=self.costs,
            inputs=inputs,
            seconds=self.seconds,
        )[0]
        return found

    def used(self, samples: int) -> str:
        """How many futures an answer rests on, in words."""
        return f"{samples} draws" if samples == self.samples else f"{samples} of {self.samples} draws ({self.seconds:g} s were over)"


@dataclass(frozen=True)
class Forecast:
    """Instants on the clock of the snapshot; infinity: beyond the horizon; NaN: not known, for want of estimates.

    P50: as likely before as after; P90: nine times of ten before. Between low and high are the middle nine tenths of the draws.
    """

    job: str
    now: float
    start_p50: float
    start_p90: float
    finish_p50: float
    finish_p90: float
    samples: int
    start_mean: float = math.nan
    start_low: float = math.nan
    start_high: float = math.nan
    finish_mean: float = math.nan
    finish_low: float = math.nan
    finish_high: float = math.nan
    estimated: bool = True  # else it has no end
    unknown: str = ""  # what is known of the jobs before it, where some are of unknown length: then it has neither start nor end

    @property
    def length(self) -> float:
        """Seconds to the P50 end: what lateness is counted in."""
        return max(self.finish_p50 - self.now, _SHORTEST)

    def stretched(self, by: Stretch) -> Forecast:
        """The same with everything as much later as earlier forecasts were; a P90 is not before its P50."""
        if not by.forecasts or not math.isfinite(self.finish_p50):
            return self
        found = {name: max(self.now, getattr(self, name) + getattr(by, said) * self.length) for name, said in _MOVED_AS.items()}
        for what in ("start", "finish"):
            found[f"{what}_p90"] = max(found[f"{what}_p90"], found[f"{what}_p50"])
        return replace(self, **found)

    def known(self, is_estimated: bool, unknown: str) -> Forecast:
        """The same without the instants that rest on lengths which nobody knows."""
        guessed = ("start_", "finish_") if unknown else () if is_estimated else ("finish_",)
        names = [one.name for one in fields(self) if one.name.startswith(guessed)] if guessed else []
        guesses: dict[str, Any] = dict.fromkeys(names, math.nan)
        return replace(self, **guesses, estimated=is_estimated, unknown=unknown)

    def message(self) -> str:
        """When it starts, if it does not run, and when it ends, as one sentence."""
        if self.unknown:
            return f"{self.unknown}: its start is not known"
        start = "" if self.start_p90 <= self.now else f"expected start {self._in(self.start_p50)} (P50), {self._in(self.start_p90)} (P90); "
        if not self.estimated:
            return f"{start}its end is not known: it has no estimate"
        return f"{start}expected end {self._in(self.finish_p50)} (P50), {self._in(self.finish_p90)} (P90)"

    def _in(self, instant: float) -> str:
        return f"in {human_seconds(instant - self.now)}" if math.isfinite(instant) else "not within the horizon"

    def as_json(self) -> dict[str, Any]:
        """Plain values; what lies beyond the horizon, or is not known, is null."""
        return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in asdict(self).items()}


def forecast(snapshot: Snapshot, policy: Policy, jobs: Iterable[str] | None = None, setup: Setup | None = None) -> list[Forecast]:
    """A forecast for these jobs (default: all that are active), in order of arrival."""
    setup, ids = setup or Setup(), snapshot.jobs.ids
    place = {name: at for at, name in enumerate(ids)}
    wanted = list(ids if jobs is None else jobs)
    for name in wanted:
        if name not in place:
            raise NotFoundError(f"no job '{name}' waits or runs", where="forecast", fix=near(name, ids))
    if not wanted:
        return []
    rolled, places = setup.futures(snapshot, policy), [place[name] for name in wanted]
    instants, spreads = [], []
    for drawn in (rolled.start[:, places], rolled.finish[:, places]):
        instants += list(np.sort(drawn, axis=0)[[place_of(share, len(drawn)) for share in SHARES.values()]])
        spreads += [np.mean(drawn, axis=0), *np.quantile(drawn, NINE_TENTHS, axis=0, method="nearest")]
    parts, spans = np.array(instants).T.tolist(), np.array(spreads).T.tolist()
    blind = unestimated(snapshot)
    return [
        Forecast(name, snapshot.now, part[0], part[1], part[2], part[3], len(rolled), *span)
        .stretched(setup.stretch)
        .known(place[name] not in blind, unknown)
        for name, part, span, unknown in zip(wanted, parts, spans, known_ahead(snapshot, rolled, places))
    ]


# What is known of the jobs before another, where some of them have no estimate: then no instant is named.
#
# A length that nobody knows is a guess, with which policies can decide, and from which no start follows that could be shown.


def unestimated(snapshot: Snapshot) -> set[int]:
    """Places of the jobs whose length is unknown."""
    blind = tables_behind(snapshot).unestimated
    return {place for place, row in enumerate(snapshot.jobs.rows.tolist()) if row in blind} if blind else set()


def known_ahead(snapshot: Snapshot, rolled: Futures, places: Sequence[int]) -> list[str]:
    """For each of these jobs what is known of those that hold or get its devices first, if any is of unknown length; else nothing."""
    blind = unestimated(snapshot)
    if not blind:
        return [""] * len(places)
    begins, gpus = np.median(rolled.start, axis=0), np.asarray(snapshot.jobs.gpus)
    blinds = np.isin(np.arange(len(begins)), list(blind))
    ran = np.isfinite(rolled.start).all(axis=0) & np.isfinite(rolled.finish).all(axis=0) & ~blinds
    hours = np.zeros(len(begins))
    hours[ran] = np.median(rolled.finish[:, ran] - rolled.start[:, ran], axis=0) * gpus[ran] / 3600.0
    may_use = _types(tables_behind(snapshot), snapshot.jobs.rows)
    found = []
    for place in places:
        before = (begins < begins[place]) & may_use[:, may_use[place]].any(axis=1)
        unknown = int(np.count_nonzero(before & blinds))
        found.append(_unknown_hours(int(np.count_nonzero(before)), float(hours[before].sum()), unknown) if unknown else "")
    return found


def _types(tables: Tables, rows: Ints) -> Bools:
    """Which types of devices each job may have, by (job, type)."""
    count = tables.I[Job.OPTION_COUNT, rows]
    option = np.concatenate([np.arange(first, first + some) for first, some in zip(tables.I[Job.OPTION_FIRST, rows], count)])
    found = np.zeros((len(rows), len(tables.cluster.types)), dtype=np.bool_)
    found[np.repeat(np.arange(len(rows)), count), tables.options.I[Option.TYPE, option]] = True
    return found


def _unknown_hours(jobs: int, hours: float, unknown: int) -> str:
    """Such as ``8 jobs, 14 GPU-hours ahead, 3 of unknown length``."""
    known = f", {hours:.3g} GPU-hours" if hours > 0.0 else ""
    return f"{jobs} job{'s' if jobs != 1 else ''}{known} ahead, {unknown} of unknown length"
