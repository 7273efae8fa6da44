"""Why a job waits, which jobs are ahead of it, and which change would start it.

The answer is found by asking: the policy decides on the present as it is, and again with one thing about the job changed. What it and the
engine would then do is the answer, so that it holds for every policy, memory and placement.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import NotFoundError, near
from gantline.core.insiders import tables_behind
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.units import human_seconds
from gantline.lab.questions.changes import RUNS, StepChange, step_changes
from gantline.lab.questions.forecast import Forecast, Setup, forecast
from gantline.simulator.from_here import JobOutcome, carry_out
from gantline.simulator.rollout import CpuBudget


@dataclass(frozen=True)
class Ahead:
    """A job that has, or would get, devices before the one in question."""

    job: str
    gpus: int
    holds: bool  # devices, after the decision; else it waits too, but ranks before
    ends_in: float  # seconds, as estimated; NaN: not known


@dataclass(frozen=True)
class Explanation:
    """The answer. `act` is what the next decision does with the job; `why` the binding constraint, where it waits."""

    job: str
    act: str
    why: str
    devices: tuple[int, ...] = ()
    ahead: tuple[Ahead, ...] = ()
    changes: tuple[StepChange, ...] = ()  # each would start it now
    searched: bool = False  # whether such changes were searched: there was time for it
    waits_for: tuple[str, ...] = ()  # jobs that make room for it when they end, by the estimates
    expected: Forecast | None = None
    unknown: str = ""  # why no start is expected: the time for that was over
    in_charge: str = ""  # which policy decides and why, where one chooses among several
    notes: tuple[str, ...] = field(default=())

    def lines(self) -> list[str]:
        """The answer as sentences."""
        if self.act in RUNS:
            lines = [f"{self.job} {self.act}" + (f" on devices {', '.join(map(str, self.devices))}" if self.devices else "")]
        else:
            lines = [f"{self.job} {self.act}: {self.why}"]
        holders = [one for one in self.ahead if one.holds]
        if holders:
            lines.append("devices are with " + "; ".join(_holder(one) for one in holders[:5]) + _more(len(holders) - 5))
        waiting = [one.job for one in self.ahead if not one.holds]
        if waiting:
            lines.append(
                f"{len(waiting)} {'waits' if len(waiting) == 1 else 'wait'} ahead of it: "
                + ", ".join(waiting[:5])
                + _more(len(waiting) - 5)
            )
        lines += self.prospects()
        if self.expected is not None:
            lines.append(self.expected.told())
        elif self.unknown:
            lines.append(f"expected start {self.unknown}")
        return [*lines, *([self.in_charge] if self.in_charge else []), *self.notes]

    def prospects(self) -> list[str]:
        """What would start it, as sentences."""
        lines = [change.sentence for change in self.changes]
        if self.act in RUNS:
            return lines
        if self.waits_for:
            return [*lines, "it would start when " + " and ".join(self.waits_for) + (" end" if len(self.waits_for) > 1 else " ends")]
        return lines or (["no single change tried would start it now"] if self.searched else [])


def explain(snapshot: Snapshot, policy: Policy, job: str, setup: Setup | None = None) -> Explanation:
    """Explain one active job."""
    setup, ids = setup or Setup(), snapshot.jobs.ids
    if job not in ids:
        raise NotFoundError(f"no job '{job}' waits or runs", where="explain", fix=near(job, ids))
    place = ids.index(job)
    plan = policy.decide(snapshot)
    outcomes = carry_out(snapshot, plan, setup.placement)
    own, chosen = outcomes[place], "" if plan.in_charge is None else str(plan.in_charge)
    rank = plan.ranking.key if plan.ranking is not None and own.act not in RUNS else None
    ahead = tuple(_ahead(snapshot, outcomes, place, rank)) if own.act not in RUNS else ()
    found = Explanation(job, own.act, own.why, own.devices, ahead, in_charge=chosen)
    budget = CpuBudget(setup.seconds)
    if setup.samples != 0:
        late = f"not within {setup.seconds:g} s of CPU"
        found = replace(found, unknown=late) if budget.over else replace(found, expected=forecast(snapshot, policy, [job], setup)[0])
    if own.act in RUNS or budget.over:
        return found
    changes = tuple(step_changes(snapshot, policy, place, setup.placement))
    return replace(found, changes=changes, searched=True, waits_for=() if budget.over else _makes_room(snapshot, policy, place, setup))


def _ahead(snapshot: Snapshot, outcomes: list[JobOutcome], place: int, rank: Floats | None) -> Iterator[Ahead]:
    """Jobs that hold devices after the decision, soonest to end first; then jobs that wait and rank before it, in order."""
    jobs, ids = snapshot.jobs, snapshot.jobs.ids  # columns are gathered when they are read: once, not for each job
    rate = np.where(jobs.rate > 0, jobs.rate, np.nan)
    left, gpus = np.maximum(jobs.remaining, 0.0) / rate, jobs.gpus
    left[np.isin(jobs.rows, list(tables_behind(snapshot).unestimated))] = np.nan  # a guess is not shown as a number
    holders = [k for k, one in enumerate(outcomes) if one.act in RUNS and k != place]
    for k in sorted(holders, key=lambda k: (math.inf if math.isnan(left[k]) else float(left[k]), k)):
        yield Ahead(ids[k], len(outcomes[k].devices), True, float(left[k]))
    if rank is None:
        return
    waits = [k for k, one in enumerate(outcomes) if one.act not in RUNS and (rank[k], k) < (rank[place], place)]
    for k in sorted(waits, key=lambda k: (rank[k], k)):
        yield Ahead(ids[k], int(gpus[k]), False, math.nan)


def _makes_room(snapshot: Snapshot, policy: Policy, place: int, setup: Setup) -> tuple[str, ...]:
    """Jobs that end at the instant at which the job starts, if all goes as estimated."""
    (rolled,) = replace(setup, newcomers=None).futures(snapshot, policy, draws=0)
    start = float(rolled.start[place])
    if not math.isfinite(start):
        return ()
    before = [k for k in range(len(rolled.finish)) if k != place and rolled.finish[k] <= start + 1e-6]
    latest = max((float(rolled.finish[k]) for k in before), default=-math.inf)
    if latest < start - max(snapshot.round, 1e-6):  # it starts for another reason: its turn, an order that moves
        return ()
    ids = snapshot.jobs.ids
    return tuple(ids[k] for k in before if rolled.finish[k] >= latest - 1e-6)


def _holder(one: Ahead) -> str:
    ends = "" if math.isnan(one.ends_in) else f", about {human_seconds(one.ends_in)} left"
    return f"{one.job} ({one.gpus} GPU{'s' if one.gpus != 1 else ''}{ends})"


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""
