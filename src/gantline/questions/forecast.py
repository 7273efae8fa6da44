"""When will it start, when will it end: the present rolled forward many times, each with other amounts of work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from gantline.core.costs import Costs
from gantline.core.errors import NotFoundError, near
from gantline.core.inputs import Input
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.files.placements import GivenPlacement
from gantline.questions.shares import SHARES
from gantline.questions.stretch import UNSTRETCHED, Stretch
from gantline.simulator.rollout import Candidate, Futures, Newcomers, rollout
from gantline.simulator.uncertainty import Uncertainty

SAMPLES = 40
_SHORTEST = 1e-6  # seconds that a length has at least
_INSTANTS = ("start_p50", "start_p90", "finish_p50", "finish_p90")


@dataclass(frozen=True)
class Setup:
    """What a roll forward needs to know beyond the snapshot."""

    placement: GivenPlacement | None = None  # another rule than that of the run
    costs: Costs | None = None
    horizon: float = math.inf
    uncertainty: Uncertainty = field(default_factory=Uncertainty)
    newcomers: Newcomers | None = None  # jobs that may still be submitted; None: no other job arrives
    samples: int = SAMPLES
    seed: int = 0
    stretch: Stretch = UNSTRETCHED  # by how much earlier forecasts were late
    seconds: float = math.inf  # of CPU time after which no further future is begun; one is made in any case

    @property
    def over(self) -> str:
        """What varies from draw to draw, in words."""
        arrivals = ", with newcomers as in the past" if self.newcomers is not None else ", no new jobs"
        return f"work by {self.uncertainty.source}{arrivals}" + (f"; {self.stretch.text}" if self.stretch.forecasts else "")

    def futures(self, snapshot: Snapshot, policy: Policy | Candidate, inputs: Sequence[Input] = (), draws: int | None = None) -> Futures:
        """The snapshot rolled forward `samples` times; the same seed draws the same work, whatever the policy.

        Fewer if `seconds` run out first.
        """
        found: Futures = rollout(
            snapshot,
            policy,
            draws=self.samples if draws is None else draws,
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
    """Instants on the clock of the snapshot; infinity: beyond the horizon.

    P50: as likely before as after; P90: nine times of ten before.
    """

    job: str
    now: float
    start_p50: float
    start_p90: float
    finish_p50: float
    finish_p90: float
    samples: int

    @property
    def length(self) -> float:
        """Seconds to the P50 end: what lateness is counted in."""
        return max(self.finish_p50 - self.now, _SHORTEST)

    def stretched(self, by: Stretch) -> Forecast:
        """The same with everything as much later as earlier forecasts were; a P90 is not before its P50."""
        if not by.forecasts or not math.isfinite(self.finish_p50):
            return self
        found = {name: max(self.now, getattr(self, name) + getattr(by, name) * self.length) for name in _INSTANTS}
        for what in ("start", "finish"):
            found[f"{what}_p90"] = max(found[f"{what}_p90"], found[f"{what}_p50"])
        return replace(self, **found)

    def as_json(self) -> dict[str, Any]:
        """Plain values; what lies beyond the horizon is null."""
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
    instants = []
    for drawn in (rolled.start[:, places], rolled.finish[:, places]):
        instants += list(np.quantile(drawn, list(SHARES.values()), axis=0, method="higher"))
    parts = np.array(instants).T.tolist()
    return [
        Forecast(name, snapshot.now, part[0], part[1], part[2], part[3], len(rolled)).stretched(setup.stretch)
        for name, part in zip(wanted, parts)
    ]
