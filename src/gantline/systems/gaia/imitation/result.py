"""What GAIA's loop found out: a row per piece as the original writes it, and the tables and the log of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import write_log
from gantline.systems.gaia.imitation import clock
from gantline.systems.gaia.imitation.intensity import Intensity
from gantline.systems.gaia.imitation.jobs import HOUR, TICK, GaiaJobs

ON_DEMAND_PRICE = 0.0624
"""Money per CPU-hour."""
_PRICES = np.array([ON_DEMAND_PRICE, 0.0, 0.2 * ON_DEMAND_PRICE])  # by `clock.ON_DEMAND`, RESERVED, SPOT
_RESERVED_SHARE = 0.4
_NAMES = ("on-demand", "reserved", "spot")


@dataclass(frozen=True)
class GaiaRows:
    """One row per piece that was started, in the order of starts; times are ticks."""

    job: Ints
    arrival: Ints
    ticks: Ints
    cpus: Ints
    start: Ints
    bought: Ints
    carbon: Floats
    cost: Floats

    @staticmethod
    def of(job: Ints, pieces: clock.Pieces, found: clock.PieceStarts, intensity: Intensity) -> GaiaRows:
        order = found.order
        start, ticks, cpus = found.start[order], pieces.ticks[order], pieces.cpus[order]
        each = np.array([intensity.over(begin, length) for begin, length in zip(start.tolist(), ticks.tolist())])
        bought = found.bought[order]
        cost = cpus * ticks / HOUR * _PRICES[bought]
        return GaiaRows(job[order], pieces.arrival[order], ticks, cpus, start, bought, each * cpus, cost)

    def summary(self, reserved: int) -> dict[str, Any]:
        """Totals as the original counts them: the fee of reserved machines up to the last start, waits averaged per piece."""
        last_start = float(self.start.max(initial=0)) / HOUR
        fee = reserved * _RESERVED_SHARE * ON_DEMAND_PRICE * last_start
        return {
            "carbon": float(self.carbon.sum()),
            "cost": float(self.cost.sum()) + fee,
            "reserved_fee": fee,
            "mean_wait_h": float((self.start - self.arrival).mean()) / HOUR if len(self.start) else 0.0,
            "pieces": len(self.job),
        }

    def frame(self, names: list[str]) -> pl.DataFrame:
        """A row per piece, in seconds."""
        return pl.DataFrame(
            {
                "job": [names[job] for job in self.job.tolist()],
                "arrival": self.arrival * TICK,
                "first_start": self.start * TICK,
                "finish": (self.start + self.ticks) * TICK,
                "wait": (self.start - self.arrival) * TICK,
                "length": self.ticks * TICK,
                "cpus": self.cpus,
                "carbon": self.carbon,
                "cost": self.cost,
                "bought": [_NAMES[kind] for kind in self.bought.tolist()],
            }
        )


def write_result(simulation: Simulation, jobs: GaiaJobs, rows: GaiaRows) -> None:
    """Fill in starts, ends, service and intervals. A job that the thirty days left without all its pieces has not ended."""
    state, t = simulation.state, simulation.state.tables
    n = len(jobs.arrival)
    end = rows.start + rows.ticks
    ran = np.bincount(rows.job, weights=rows.ticks, minlength=n)
    first, last = np.full(n, np.nan), np.full(n, np.nan)
    np.fmin.at(first, rows.job, rows.start * TICK)
    np.fmax.at(last, rows.job, end * TICK)
    done = ran >= jobs.length
    t.F[Job.SERVICE] = ran * TICK
    t.F[Job.GPUTIME] = 0.0
    t.F[Job.FIRST_START] = t.F[Job.MARK] = first
    t.F[Job.FINISH] = np.where(done, last, np.nan)
    t.F[Job.DONE] = t.F[Job.SAFE] = np.where(done, t.F[Job.WORK], 0.0)
    pauses = np.maximum(np.bincount(rows.job, minlength=n) - 1, 0)
    t.I[Job.RESTARTS] = t.I[Job.PREEMPTIONS] = pauses
    t.I[Job.PHASE] = np.where(done, int(Phase.COMPLETED), int(Phase.PENDING))
    state.now = float(end.max(initial=0)) * TICK
    reason = np.where(np.isclose(end * TICK, t.F[Job.FINISH][rows.job]), int(Reason.FINISHED), int(Reason.PREEMPTED))
    write_log(
        simulation, row=rows.job, option=t.I[Job.OPTION_FIRST][rows.job], reason=reason, begin=rows.start * TICK, end=end * TICK,
        gpus=np.zeros(len(rows.job), dtype=np.int64), devices=np.zeros(0, dtype=np.int64), node=0,
    )  # fmt: skip
    simulation.pieces = rows.frame(t.ids)
