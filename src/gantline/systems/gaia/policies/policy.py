"""`gaia`: jobs that may wait run while the grid is clean (GAIA, ASPLOS 2024, sections 4 and 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gantline.core.arrays import Bools
from gantline.core.errors import RefusedError
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.signal import Signal
from gantline.core.snapshot import Snapshot
from gantline.systems.gaia.policies import clean_times as clean
from gantline.systems.gaia.policies.settings import GaiaSettings

_TWO_HOURS = 7200.0


@dataclass(frozen=True)
class Gaia(GaiaSettings):
    """Jobs that may wait run while the grid is clean; among those that are due, first come, first served.

    When a job comes, the times in which it should run are fixed and remembered. A job that falls behind (its devices were busy) runs as
    soon as its patience is used up: then nothing is gained by waiting any longer.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"remaining", "carbon"})

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
        job = clean.Errand(now, length, (total + length) / (count + 1.0), max(0.0, min(3600.0 * hours, slack)))
        return {"spans": [list(span) for span in self._spans(signal, job)], "end": now + length + job.patience}

    def _spans(self, signal: Signal, job: clean.Errand) -> list[clean.CleanSpan]:
        if self.suspends:
            return clean.spans_below(signal, job) if self.by_threshold else clean.cleanest_spans(signal, job)
        if self.scheduling == "cost":
            begin = job.now + job.patience
        elif self.carbon == "lowest":
            begin = clean.lowest_slot(signal, job)
        else:
            length = job.length if self.carbon in ("oracle", "cst_oracle") else job.usual
            choose = clean.carbon_time if self.carbon.startswith("cst") else clean.lowest_window
            begin = choose(signal, job, length)
        return [clean.CleanSpan(begin, math.inf)]

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
