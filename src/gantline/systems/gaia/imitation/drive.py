"""The loop of `--regime gaia`: GAIA's policies as its simulator runs them, row by row; and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import RefusedError
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import write_jobs, write_log
from gantline.systems.gaia.imitation import clock, ready
from gantline.systems.gaia.imitation.clock import HOUR, TICK, GaiaJobs, GaiaQueues
from gantline.systems.gaia.imitation.ready import Intensity
from gantline.systems.gaia.policies import Gaia
from gantline.traces.trace import Trace

# What GAIA's loop found out: a row per piece as the original writes it, and the tables and the log of the run.


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
    pauses, finish = np.maximum(np.bincount(rows.job, minlength=n) - 1, 0), np.where(done, last, np.nan)
    write_jobs(simulation, service=ran * TICK, first_start=first, finish=finish, restarts=pauses, gpu_time=0.0)
    state.now = float(end.max(initial=0)) * TICK
    reason = np.where(np.isclose(end * TICK, finish[rows.job]), int(Reason.FINISHED), int(Reason.PREEMPTED))
    write_log(
        simulation, row=rows.job, option=t.jobs.option_first[rows.job], reason=reason, begin=rows.start * TICK, end=end * TICK,
        gpus=np.zeros(len(rows.job), dtype=np.int64), devices=np.zeros(0, dtype=np.int64), node=0,
    )  # fmt: skip
    simulation.pieces = rows.frame(t.ids)


# The loop of `--regime gaia`: GAIA's policies as its simulator runs them, row by row.

_FIRST_HOUR = 7000
"""Where the authors' runs begin in their series."""

_BY_CARBON: Mapping[str, ready.Planner] = {
    "lowest": ready.lowest_slot,
    "waiting": ready.by_window(known=False, per_time=False),
    "oracle": ready.by_window(known=True, per_time=False),
    "cst_average": ready.by_window(known=False, per_time=True),
    "cst_oracle": ready.by_window(known=True, per_time=True),
}


def drive(simulation: Simulation, trace: Trace) -> dict[str, Any]:
    """Run the trace by GAIA's rules; carbon, cost and waiting times as the original counts them."""
    policy = simulation.engine.policy
    assert isinstance(policy, Gaia)  # the scope has no other
    signal = simulation.state.facts.grid.carbon
    if signal is None:
        raise RefusedError("no carbon intensity is known", where="--regime gaia", fix="give --carbon FILE.csv")
    jobs = GaiaJobs.of(trace)
    intensity = Intensity(signal, _FIRST_HOUR if policy.start is None else policy.start)
    rows = _run(policy, jobs, intensity, simulation.on_progress)
    _check_room(rows, sum(node.cpus for node in simulation.state.tables.cluster.nodes))
    write_result(simulation, jobs, rows)
    simulation.engine.decisions = len(rows.job)
    return rows.summary(policy.reserved)


def _run(policy: Gaia, jobs: GaiaJobs, intensity: Intensity, report: Callable[[float, int, int], None] | None) -> GaiaRows:
    """Every piece of every job, in the order of starts. To reports a job is inside while a piece of it waits."""
    queues, plan = GaiaQueues.of(policy.waiting, jobs), _planner(policy)
    owner, pieces = [], []
    for job, (arrival, length) in enumerate(zip(jobs.arrival.tolist(), jobs.length.tolist())):
        planned = plan(intensity, arrival, length, queues.of_length(length))
        owner += [job] * len(planned)
        # with Wait Awhile a piece is classed anew, with a threshold the job's class holds
        whole = policy.by_threshold or len(planned) == 1
        pieces += [(*piece, jobs.brief[job] if whole else piece.ticks <= 2 * HOUR) for piece in planned]
    row = np.array(owner, dtype=np.int64)
    first, ticks, brief = (np.array(column, dtype=np.int64) for column in zip(*pieces))
    asked = clock.Pieces(jobs.arrival[row], first, ticks, jobs.cpus[row], brief)

    def on_tick(tick: int, arrived: int, waiting: int) -> None:
        jobs_in = int(row[arrived - 1]) + 1 if arrived else 0
        if report is not None:
            report(tick * TICK, jobs_in, min(waiting, jobs_in))

    found = clock.run_ticks(
        asked, policy.reserved, work_conserving=policy.work_conserving, spot=policy.spot, on_tick=on_tick if report else None
    )
    return GaiaRows.of(row, asked, found, intensity)


def _check_room(rows: GaiaRows, cpus: float) -> None:
    """The original buys as many CPUs as it needs; a cluster that has fewer would be ignored, so it is refused."""
    times = np.concatenate((rows.start, rows.start + rows.ticks))
    change = np.concatenate((rows.cpus, -rows.cpus))
    busy = np.cumsum(change[np.lexsort((change, times))])
    if len(busy) and busy.max() > cpus:
        what = f"the run needs {int(busy.max())} CPUs at once, the cluster has {cpus:g}, and GAIA's simulator knows no limit"
        raise RefusedError(what, where="--cluster", fix="leave --cluster out, or use --regime default")


def _planner(policy: Gaia) -> ready.Planner:
    if policy.suspends:
        return ready.ecovisor if policy.by_threshold else ready.wait_awhile
    return ready.after_patience if policy.scheduling == "cost" else _BY_CARBON[policy.carbon]
