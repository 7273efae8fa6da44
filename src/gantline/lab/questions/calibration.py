"""How many of the forecasts made during a run came true: half of the starts should lie before the P50, nine of ten before the P90."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.engine.drivers.journal import Journal
from gantline.lab.questions.forecast import SHARES, UNSTRETCHED, Forecast, Setup, Stretch, forecast
from gantline.simulator.simulate import simulate

_TIE = 1e-6  # seconds: a start on the very instant of the forecast counts as in time


@dataclass(frozen=True)
class Calibration:
    """Shares of what really happened by the forecast instant, of so many forecasts of jobs that waited."""

    forecasts: int
    start_by_p50: float
    start_by_p90: float
    finish_by_p50: float
    finish_by_p90: float
    start_error: float  # mean distance of the P50 start, seconds
    learned: Calibration | None = None  # of those that were stretched as earlier ones had been late; None: there were too few
    stretch: Stretch = UNSTRETCHED  # as it was learned in the end

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "learned": None if self.learned is None else self.learned.as_json()}

    def lines(self) -> list[str]:
        """The result as sentences."""
        if not self.forecasts:
            return ["no forecast could be checked: no job waited"]

        def shares(what: str, half: float, most: float) -> str:
            return f"{what}: {100 * half:.0f} % by the P50 (50 would be right), {100 * most:.0f} % by the P90 (90 would be right)"

        found = [
            f"{self.forecasts} forecasts of jobs that had just arrived",
            shares("starts", self.start_by_p50, self.start_by_p90),
            shares("ends", self.finish_by_p50, self.finish_by_p90),
        ]
        if self.learned is not None:
            first, *rest = self.learned.lines()
            found += [f"stretched by what earlier forecasts had shown (--learn), {first}", *rest]
        return found


class Forecasting(Journal):
    """A journal that forecasts every job when it is first seen waiting, up to so many."""

    def __init__(self, policy: Policy, setup: Setup, most: int = 60, coming: Sequence[Mapping[str, object]] = ()) -> None:
        super().__init__(whole=False)
        self._policy, self._setup, self._most, self._coming = policy, setup, most, coming
        self._known: set[str] = set()
        self._seen: dict[str, tuple[float, float]] = {}  # start and finish of those that were forecast, NaN: not yet
        self.made: list[Forecast] = []
        self.learned: list[Forecast] = []  # the later ones, stretched by what was known when they were made
        self.stretch = UNSTRETCHED

    def decided(self, snapshot: Snapshot, plan: Plan) -> None:
        """Forecast the jobs that are new and wait, before the plan is carried out."""
        ids, running = snapshot.jobs.ids, snapshot.jobs.running
        self._look(dict(zip(ids, running.tolist())), snapshot.now)
        fresh = [name for name, runs in zip(ids, running) if name not in self._known and not runs]
        self._known.update(ids)
        if fresh and len(self.made) < self._most:
            setup = self._setup
            if self._coming:
                setup = setup.with_newcomers(self._coming, snapshot, self._policy)
            found = forecast(snapshot, self._policy, fresh, setup)
            self.stretch = learn(self.made, self._seen, snapshot.now)
            if self.stretch.forecasts:
                self.learned += [one.stretched(self.stretch) for one in found]
            self.made += found
            self._seen |= dict.fromkeys(fresh, (math.nan, math.nan))

    def _look(self, active: Mapping[str, bool], now: float) -> None:
        """Note which jobs have started or ended since the last decision."""
        for name, (start, finish) in self._seen.items():
            if math.isnan(start) and active.get(name, True):
                start = now
            if math.isnan(finish) and name not in active:
                finish = now
            self._seen[name] = (start, finish)


def calibration(made: list[Forecast], happened: Mapping[str, tuple[float, float]]) -> Calibration:
    """Compare forecasts with (start, finish) of each job; jobs that have not ended are left out."""
    known = [(one, *happened[one.job]) for one in made if one.job in happened]
    known = [(one, start, finish) for one, start, finish in known if math.isfinite(start) and math.isfinite(finish)]
    if not known:
        return Calibration(0, math.nan, math.nan, math.nan, math.nan, math.nan)

    def share(values: list[bool]) -> float:
        return float(np.mean(values))

    return Calibration(
        len(known),
        share([start <= one.start_p50 + _TIE for one, start, _ in known]),
        share([start <= one.start_p90 + _TIE for one, start, _ in known]),
        share([finish <= one.finish_p50 + _TIE for one, _, finish in known]),
        share([finish <= one.finish_p90 + _TIE for one, _, finish in known]),
        float(np.mean([abs(start - min(one.start_p50, 1e15)) for one, start, _ in known])),
    )


def check_forecasts(
    trace: Any, cluster: Any, policy: Policy, setup: Setup, most: int = 60, *, coming: Sequence[Mapping[str, Any]] = (), **options: Any
) -> Calibration:
    """Replay a table of jobs, forecast each when it is first seen waiting, and count how many forecasts came true.

    `coming`: jobs that future arrivals are expected to resemble.
    """
    watching = Forecasting(policy, setup, most, coming)
    run = simulate(trace, cluster, policy, record=watching, placement=setup.placement, **options)
    happened = {row["job"]: (row["first_start"], row["finish"]) for row in run.jobs.iter_rows(named=True)}
    later = calibration(watching.learned, happened)
    stretch = learn(watching.made, happened, math.inf)
    return replace(calibration(watching.made, happened), learned=later if later.forecasts else None, stretch=stretch)


# How much later jobs start and end than forecast, learned from forecasts that are due.
#
# Futures in which no new job arrives, or in which work is surer than it is, end too early. Whatever the reason, forecasts that are
# due show by how much: lateness is counted in lengths, of which one is the time from the forecast to the job's P50 end, and nine of ten
# were less late than what the P90 is moved by (split conformal prediction: Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random
# World", 2005). It guarantees the share, if future forecasts err as past ones did, and nothing about any single forecast.

FEWEST = 20  # forecasts that must be due before anything is learned


def learn(made: Iterable[Forecast], happened: Mapping[str, tuple[float, float]], now: float) -> Stretch:
    """What forecasts have shown by now: each counts when its P90 has passed, true or not, so that early ends do not bias it.

    `happened` are (start, finish) of jobs, NaN for what has not come yet.
    """
    found = {}
    count = 0
    for at, name in enumerate(("start", "finish")):
        over = [one for one in made if getattr(one, f"{name}_p90") <= now]
        count = len(over)
        if count < FEWEST:
            return UNSTRETCHED
        for part, share in SHARES.items():
            late = sorted(_lengths(one, f"{name}_{part}", happened.get(one.job, (math.nan,) * 2)[at], now) for one in over)
            found[f"{name}_{part}"] = late[min(math.ceil((count + 1) * share), count) - 1]
    return Stretch(**found, forecasts=count)


def _lengths(one: Forecast, name: str, came: float, now: float) -> float:
    """How late it came, or is by now."""
    return ((now if math.isnan(came) else came) - float(getattr(one, name))) / one.length
