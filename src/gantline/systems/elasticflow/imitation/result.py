"""Writes the result of the imitation into the tables and the log of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job, Option
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import DeviceSeats, write_log
from gantline.systems.elasticflow.imitation.outcome import ElasticFlowOutcome, Span


def write_result(simulation: Simulation, found: ElasticFlowOutcome, exact: bool) -> dict[str, Any]:
    """Starts, ends, verdicts and intervals; `finish` is the end as the artifact records it, GPUs are held until the round that sees it."""
    state, t = simulation.state, simulation.state.tables
    F, I, n = t.F, t.I, len(found.start)
    job, start, end, _, gpus = _columns(found.spans)
    done = ~np.isnan(found.ended)
    F[Job.SERVICE] = np.bincount(job, weights=end - start, minlength=n)
    F[Job.GPUTIME] = np.bincount(job, weights=(end - start) * gpus, minlength=n)
    F[Job.FIRST_START] = F[Job.MARK] = found.start
    F[Job.FINISH] = np.where(done, found.end, np.nan)
    F[Job.DONE] = F[Job.SAFE] = np.where(done, F[Job.WORK], 0.0)
    I[Job.PHASE] = np.where(done, int(Phase.COMPLETED), np.where(found.rejected, int(Phase.REJECTED), int(Phase.PENDING)))
    again = np.zeros(n, dtype=np.int64)
    order = np.lexsort((start, job))
    gap = (job[order][1:] == job[order][:-1]) & (start[order][1:] > end[order][:-1])
    np.add.at(again, job[order][1:][gap], 1)
    I[Job.PREEMPTIONS] = I[Job.RESTARTS] = again
    state.now = float(end.max(initial=0.0))
    _write_log(simulation, found)
    judged = found.exact if exact and found.exact is not None else found.end
    met = done & (judged <= found.deadline)
    t.verdicts["met"] = np.where(np.isinf(found.deadline), np.nan, met.astype(np.float64))
    if found.exact is not None:
        t.verdicts["exact_end"] = np.where(done, found.exact, np.nan)
    due = np.isfinite(found.deadline)
    accepted = int((met & due).sum())
    declined = int(found.rejected.sum() + (done & due & ~met).sum())
    ratio = accepted / (accepted + declined) if accepted + declined else None
    fields: dict[str, Any] = {"admitted": int(n - found.rejected.sum()), "rejected": int(found.rejected.sum()), "rounds": found.rounds}
    fields |= {"deadlines_met": accepted, "deadlines_declined": declined, "late_admitted": int((done & due & ~met).sum())}
    return fields | {"deadline_ratio": ratio}


def _columns(spans: list[Span]) -> tuple[Ints, Floats, Floats, Ints, Ints]:
    """Spans as columns: job, start, end, first rank, GPUs."""
    table = np.array(spans, dtype=np.float64).reshape(-1, 5)
    job, first, gpus = (table[:, k].astype(np.int64) for k in (0, 3, 4))
    return job, table[:, 1], table[:, 2], first, gpus


def _write_log(simulation: Simulation, found: ElasticFlowOutcome) -> None:
    t, n = simulation.state.tables, len(found.spans)
    job, start, end, first, gpus = _columns(found.spans)
    by_time = np.lexsort((job, start))
    gpus, first, job, start, end = gpus[by_time], first[by_time], job[by_time], start[by_time], end[by_time]
    option = np.full(n, -1, dtype=np.int64)
    size = t.options.I[Option.GPUS]
    for k, (row, held) in enumerate(zip(job.tolist(), gpus.tolist())):
        own = slice(int(t.I[Job.OPTION_FIRST, row]), int(t.I[Job.OPTION_FIRST, row] + t.I[Job.OPTION_COUNT, row]))
        option[k] = own.start + int(np.argmax(size[own] == held))
    reason = np.where(end == found.ended[job], int(Reason.FINISHED), int(Reason.RESIZED))
    devices = _devices(simulation, start, end, first, gpus)
    write_log(simulation, row=job, option=option, reason=reason, begin=start, end=end, gpus=gpus, devices=devices)


def _devices(simulation: Simulation, start: Floats, end: Floats, first: Ints, gpus: Ints) -> Ints:
    """The devices of every span: its ranks, or for baselines that only count GPUs the lowest that are free."""
    if (first >= 0).all():
        return np.repeat(first - (np.cumsum(gpus) - gpus), gpus) + np.arange(int(gpus.sum()))
    seats = DeviceSeats(simulation.state.tables.D.shape[1])
    taken = (seats.take(count, *span) for count, *span in zip(gpus.tolist(), start.tolist(), end.tolist()))
    return np.array([device for devices in taken for device in devices], dtype=np.int64)
