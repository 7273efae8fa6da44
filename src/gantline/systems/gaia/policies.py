"""`gaia`: jobs that may wait run while the grid is clean (GAIA, ASPLOS 2024, sections 4 and 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats
from gantline.core.errors import RefusedError, UsageError
from gantline.core.facts import Signal
from gantline.core.plan import Plan
from gantline.core.policy import Policy, parameter
from gantline.core.snapshot import Snapshot

# When the grid is clean: from a job's length and patience to the times in which it should run.
#
# As the paper means it, for clusters of any kind: candidates are the instants at which the signal changes (and now), ties go to the
# earlier one, and nothing is planned that would break the job's patience. GAIA's own way of counting is in `systems/gaia/imitation`.


DAY = 86400.0
QUANTILE = 0.3
"""Ecovisor runs while the signal is below this quantile of the next day's."""


class CleanSpan(NamedTuple):
    """A job should run from `begin` on, until it is done or `end` has come."""

    begin: float
    end: float


class Errand(NamedTuple):
    """A job at its arrival: how long it takes, how long jobs of its kind take, and how long it may wait."""

    now: float
    length: float
    usual: float
    patience: float


def lowest_slot(signal: Signal, job: Errand) -> float:
    """The first instant of least intensity."""
    starts = _starts(signal, job)
    return starts[int(np.argmin(signal.at(np.array(starts))))]


def lowest_window(signal: Signal, job: Errand, length: float) -> float:
    """The start of least carbon for so long a run."""
    starts = np.array(_starts(signal, job))
    return float(starts[_first_least(signal.integral(starts, starts + length))])


def carbon_time(signal: Signal, job: Errand, length: float) -> float:
    """The start that saves most carbon per time to the end; now, unless something is saved."""
    starts = np.array(_starts(signal, job))
    carbon = signal.integral(starts, starts + length)
    return float(starts[_first_least((carbon - carbon[0]) / (starts - job.now + length))])


def cleanest_spans(signal: Signal, job: Errand) -> list[CleanSpan]:
    """Wait Awhile: the cleanest steps that hold the whole job, before its patience is over; earlier ones on ties."""
    edges = np.array([*_edges(signal, job.now, job.now + job.length + job.patience), job.now + job.length + job.patience])
    room = np.diff(edges)
    left, chosen = job.length, []
    for place in np.argsort(signal.at(edges[:-1]), kind="stable").tolist():
        if left <= 0:
            break
        chosen.append((float(edges[place]), min(float(room[place]), left)))
        left -= float(room[place])
    return _joined([CleanSpan(begin, begin + seconds) for begin, seconds in sorted(chosen)])


def spans_below(signal: Signal, job: Errand) -> list[CleanSpan]:
    """Ecovisor: run while the signal is below a threshold fixed at arrival, and without a pause once the patience is used up."""
    day = np.array(_edges(signal, job.now, job.now + DAY))
    weight = np.diff(np.append(day, job.now + DAY))
    threshold = _quantile(signal.at(day), weight, QUANTILE)
    spans, at, left, patience = [], job.now, job.length, job.patience
    while left > 0:
        if patience <= 0:
            spans.append(CleanSpan(at, at + left))
            break
        room = signal.next_step(at) - at
        if signal.at(np.array([at]))[0] >= threshold:
            waited = min(patience, room)
            patience, at = patience - waited, at + waited
        else:
            ran = min(left, room)
            spans.append(CleanSpan(at, at + ran))
            left, at = left - ran, at + ran
    return _joined(spans)


def _starts(signal: Signal, job: Errand) -> list[float]:
    return [job.now] if job.patience <= 0 else _edges(signal, job.now, math.nextafter(job.now + job.patience, math.inf))


def _edges(signal: Signal, begin: float, end: float) -> list[float]:
    """`begin`, and every instant before `end` at which another value begins."""
    first = signal.next_step(begin)
    return [begin, *np.arange(first, end, signal.step).tolist()]


def _first_least(values: Floats) -> int:
    """The first of those that are least, but for rounding."""
    least = float(values.min())
    return int(np.argmax(values <= least + 1e-9 * max(1.0, abs(least))))


def _quantile(values: Floats, weight: Floats, share: float) -> float:
    """The least value below or at which so much of the time lies."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order]) / weight.sum()
    return float(values[order][int(np.searchsorted(reached, share))])


def _joined(spans: list[CleanSpan]) -> list[CleanSpan]:
    """The same times with neighbours made one; the last one has no end: what is late is finished then."""
    joined: list[CleanSpan] = []
    for span in spans:
        if joined and span.begin <= joined[-1].end + 1e-6:
            joined[-1] = CleanSpan(joined[-1].begin, span.end)
        else:
            joined.append(span)
    return [*joined[:-1], CleanSpan(joined[-1].begin, math.inf)] if joined else [CleanSpan(-math.inf, math.inf)]


# The parameters of GAIA, by the names of its own command line, and what they mean.

SCHEDULING = (
    "carbon",
    "cost",
    "carbon-cost",
    "carbon-spot",
    "carbon-cost-spot",
    "suspend-resume",
    "suspend-resume-spot",
    "suspend-resume-threshold",
    "suspend-resume-spot-threshold",
)
CARBON = ("lowest", "waiting", "oracle", "cst_average", "cst_oracle")


# `gaia`: jobs that may wait run while the grid is clean (GAIA, ASPLOS 2024, sections 4 and 5).

_TWO_HOURS = 7200.0


@dataclass(frozen=True)
class Gaia(Policy):
    """Jobs that may wait run while the grid is clean; among those that are due, first come, first served.

    When a job comes, the times in which it should run are fixed and remembered. A job that falls behind (its devices were busy) runs as
    soon as its patience is used up: then nothing is gained by waiting any longer.
    """

    name = "gaia"
    paper = "Hanafy et al., Going Green for Less Green: Optimizing the Cost of Reducing Cloud Carbon Emissions, ASPLOS 2024"
    needs = frozenset({"remaining", "carbon"})

    scheduling: str = parameter("carbon", f"when a job runs: {', '.join(SCHEDULING)}", one_of=SCHEDULING)
    carbon: str = parameter(
        "cst_average",
        "which start: lowest (slot), waiting (window), cst_average (saving per time), oracle and cst_oracle (true length)",
        one_of=CARBON,
    )
    waiting: str = parameter("6x24", "hours that jobs below and from two hours may wait: 6x24, or one number for both")
    reserved: int = parameter(0, "machines already paid for, on which the -cost forms start jobs early", low=0)
    start: int | None = parameter(None, "regime gaia: first hour of the series (7000 unless given)", low=0, unit="hours")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.patience()

    def patience(self) -> tuple[int, int]:
        """Hours that short and long jobs may wait."""
        parts = self.waiting.split("x")
        if len(parts) > 2 or not all(part.isdecimal() and int(part) <= 720 for part in parts):
            raise UsageError(
                f"waiting is '{self.waiting}'", where="policy 'gaia'", fix="give whole hours up to 720: 6x24 (short jobs x long jobs) or 12"
            )
        return int(parts[0]), int(parts[-1])

    @property
    def work_conserving(self) -> bool:
        return "cost" in self.scheduling

    @property
    def spot(self) -> bool:
        return "spot" in self.scheduling

    @property
    def suspends(self) -> bool:
        return self.scheduling.startswith("suspend-resume")

    @property
    def by_threshold(self) -> bool:
        return self.scheduling.endswith("threshold")

    def for_regime(self, regime: str) -> Policy:
        if regime == "gaia":
            return self
        if self.spot:
            raise RefusedError(
                f"scheduling '{self.scheduling}' buys spot machines, which a cluster of your own does not have",
                where="policy 'gaia'",
                fix="use --regime gaia, or a form without spot",
            )
        if self.start is not None:
            raise RefusedError("'start' is read in regime gaia only", where="policy 'gaia'", fix="say --series-start instead")
        if self.work_conserving and not self.reserved:
            raise RefusedError(
                f"scheduling '{self.scheduling}' starts jobs early on devices that are paid for, and none is",
                where="policy 'gaia'",
                fix="say how many: --set reserved=8",
            )
        if self.reserved and not self.work_conserving:
            raise RefusedError(f"scheduling '{self.scheduling}' does not read 'reserved'", where="policy 'gaia'", fix="use a -cost form")
        return self

    def decide(self, snapshot: Snapshot) -> Plan:
        signal, memory = snapshot.facts.grid.carbon, snapshot.memory or {}
        if signal is None:
            raise RefusedError("no carbon intensity is known", where="policy 'gaia'", fix="give --carbon FILE.csv")
        jobs, now = snapshot.jobs, snapshot.now
        left, rows = jobs.remaining.tolist(), [str(row) for row in jobs.rows.tolist()]
        seen: dict[str, list[float]] = {name: list(sums) for name, sums in memory.get("seen", {}).items()}
        known: dict[str, Any] = memory.get("plans", {})
        plans = {
            row: known[row] if row in known else self._plan(signal, now, length, deadline, seen)
            for row, length, deadline in zip(rows, left, jobs.deadline.tolist())
        }
        spans = [plans[row]["spans"] for row in rows]
        latest = np.array([plans[row]["end"] for row in rows]) - jobs.remaining  # a later start breaks what the job may wait
        due = np.array([any(begin <= now < end for begin, end in each) for each in spans], dtype=bool) | (now >= latest - 1e-6)
        if not self.suspends:
            due |= jobs.running
        changes = [time for each in spans for span in each for time in span]
        changes += latest[~due].tolist()
        due = self._with_early(snapshot, due)
        until = min((time for time in changes if time > now), default=math.inf)
        return Plan.rank(np.where(due, jobs.arrival, math.inf), valid_until=until, memory={"plans": plans, "seen": seen})

    def _plan(self, signal: Signal, now: float, length: float, deadline: float, seen: dict[str, list[float]]) -> dict[str, Any]:
        """When a job that has just come should run, and when it has to be done at the latest."""
        short, long = self.patience()
        queue, hours = ("short", short) if length < _TWO_HOURS else ("long", long)
        count, total = seen.get(queue, (0.0, 0.0))
        seen[queue] = [count + 1.0, total + length]
        slack = deadline - now - length if deadline == deadline else math.inf
        job = Errand(now, length, (total + length) / (count + 1.0), max(0.0, min(3600.0 * hours, slack)))
        return {"spans": [list(span) for span in self._spans(signal, job)], "end": now + length + job.patience}

    def _spans(self, signal: Signal, job: Errand) -> list[CleanSpan]:
        if self.suspends:
            return spans_below(signal, job) if self.by_threshold else cleanest_spans(signal, job)
        if self.scheduling == "cost":
            begin = job.now + job.patience
        elif self.carbon == "lowest":
            begin = lowest_slot(signal, job)
        else:
            length = job.length if self.carbon in ("oracle", "cst_oracle") else job.usual
            choose = carbon_time if self.carbon.startswith("cst") else lowest_window
            begin = choose(signal, job, length)
        return [CleanSpan(begin, math.inf)]

    def _with_early(self, snapshot: Snapshot, due: Bools) -> Bools:
        """The jobs that are due, and in order of arrival those which the devices already paid for have room for."""
        if not self.work_conserving:
            return due
        gpus = snapshot.jobs.gpus
        room, early = self.reserved - int(gpus[due].sum()), due.copy()
        for place in np.flatnonzero(~due).tolist():
            if gpus[place] <= room:
                early[place] = True
                room -= int(gpus[place])
        return early
