"""What Lucid's simulator found out, in the tables and the log of a run, and a row per job as the original reports it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import polars as pl

from gantline.core.columns import Job
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import write_log
from gantline.systems.lucid.imitation.jobs import LucidJob, LucidOutcome


def write_result(simulation: Simulation, jobs: Sequence[LucidJob], outcomes: Sequence[LucidOutcome], known: Collection[int]) -> None:
    """Fill in starts, ends, service and intervals; jobs of virtual clusters that the cluster does not have were never let in."""
    state, t = simulation.state, simulation.state.tables
    start, end = (np.array([getattr(one, name) for one in outcomes], dtype=np.float64) for name in ("start", "end"))
    done = end >= 0
    ran = np.array([sum(spell.end - spell.begin for spell in one.spells) for one in outcomes], dtype=np.float64)
    t.F[Job.SERVICE] = ran
    t.F[Job.GPUTIME] = ran * t.I[Job.GPUS]
    t.F[Job.FIRST_START] = t.F[Job.MARK] = np.where(start >= 0, start, np.nan)
    t.F[Job.FINISH] = np.where(done, end, np.nan)
    t.F[Job.DONE] = t.F[Job.SAFE] = np.where(done, t.F[Job.WORK], 0.0)
    t.I[Job.RESTARTS] = t.I[Job.PREEMPTIONS] = [one.preemptions for one in outcomes]
    let_in = np.isin(np.arange(len(jobs)), list(known))
    t.I[Job.PHASE] = np.where(done, int(Phase.COMPLETED), np.where(let_in, int(Phase.PENDING), int(Phase.REJECTED)))
    state.now = float(end.max(initial=0.0))
    spells = sorted(((spell, job.row) for job, one in zip(jobs, outcomes) for spell in one.spells), key=lambda entry: entry[0].begin)
    row = np.array([row for _, row in spells], dtype=np.int64)
    ends = np.array([spell.end for spell, _ in spells], dtype=np.float64)
    write_log(
        simulation, row=row, option=t.I[Job.OPTION_FIRST][row], begin=[spell.begin for spell, _ in spells], end=ends,
        reason=np.where(ends == end[row], int(Reason.FINISHED), int(Reason.PREEMPTED)), gpus=[len(spell.devices) for spell, _ in spells],
        devices=[device for spell, _ in spells for device in spell.devices],
    )  # fmt: skip
    simulation.pieces = _frame(jobs, outcomes)


def _frame(jobs: Sequence[LucidJob], outcomes: Sequence[LucidOutcome]) -> pl.DataFrame:
    """A row per job. `queueing` is the original's: a wait for the profiler counts beside the wait in the main phase."""
    return pl.DataFrame(
        {
            "job": [job.name for job in jobs],
            "queue": [job.vc for job in jobs],
            "gpus": [job.gpus for job in jobs],
            "arrival": [job.submit for job in jobs],
            "duration": [job.duration for job in jobs],
            "first_start": [_time(one.start) for one in outcomes],
            "finish": [_time(one.end) for one in outcomes],
            "jct": [_time(one.end) and one.end - job.submit for job, one in zip(jobs, outcomes)],
            "queueing": [one.waited for one in outcomes],
            "preemptions": [one.preemptions for one in outcomes],
            "profiled": [one.profiled for one in outcomes],
            "profiling_wait": [one.profiling_wait for one in outcomes],
            "done_in_profiling": [one.done_in_profiling for one in outcomes],
            "nodes": [one.nodes for one in outcomes],
            "partners": [" ".join(dict.fromkeys(change.partner for change in one.changes if change.partner)) for one in outcomes],
            "rate_changes": [";".join(f"{at}:{rate:g}:{partner}" for at, rate, partner in one.changes) for one in outcomes],
        },
        schema_overrides={"first_start": pl.Int64, "finish": pl.Int64, "jct": pl.Int64},
    )


def _time(second: int) -> int | None:
    return second if second >= 0 else None
