"""Writes the result of the loop into the tables and the log of a run, and measures the errors of the fitted models."""

from __future__ import annotations

from typing import Any

import numpy as np

from gantline.core.columns import Job
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import DeviceSeats, write_log
from gantline.models.goodput.measured import packed_shape
from gantline.models.goodput.observations import BATCH, LOG_STEP, NODES, REPLICAS
from gantline.models.goodput.speed_model import step_time
from gantline.systems.pollux.imitation.clock import Column
from gantline.systems.pollux.imitation.loop import Loop, PolluxSpan

_ELSEWHERE = (1, 2, 4, 8, 16)  # devices at which beliefs are compared with the truth


def write_result(simulation: Simulation, loop: Loop) -> None:
    """Fill in starts, ends, service, restarts and the intervals in which devices were held."""
    state, t = simulation.state, simulation.state.tables
    F, I, jobs = t.F, t.I, loop.jobs
    F[Job.SERVICE], F[Job.GPUTIME], F[Job.FINISH] = jobs.F[Column.SECONDS], jobs.F[Column.SERVICE], jobs.F[Column.FINISH]
    I[Job.RESTARTS] = I[Job.PREEMPTIONS] = np.maximum(jobs.I[Column.RESTARTS], 0)
    F[Job.FIRST_START] = F[Job.MARK] = [loop.first.get(job, np.nan) for job in range(F.shape[1])]
    ends = loop.applications.courses.edges[jobs.I[Column.APP], loop.applications.courses.epochs[jobs.I[Column.APP]] - 1]
    F[Job.DONE] = F[Job.SAFE] = F[Job.WORK] * np.minimum(jobs.F[Column.PROGRESS] / ends, 1.0)
    I[Job.PHASE] = np.where(np.isnan(F[Job.FINISH]), int(Phase.PENDING), int(Phase.COMPLETED))
    state.now = max((span.end for span in loop.spans), default=loop.now)
    simulation.engine.decisions = loop.decisions
    _write_log(simulation, loop)


def _write_log(simulation: Simulation, loop: Loop) -> None:
    """One interval per span; a node's devices are given out from the lowest number that is free."""
    t = simulation.state.tables
    spans = sorted(loop.spans, key=lambda span: (span.begin, span.job))
    seats, first = DeviceSeats(t.D.shape[1]), t.cluster.first_device.tolist()
    held = [
        device
        for span in spans
        for node in span.nodes
        for device in seats.take(1, span.begin, span.end, first[node], t.cluster.nodes[node].gpus)
    ]
    write_log(
        simulation,
        row=[span.job for span in spans],
        option=[int(t.I[Job.OPTION_FIRST, span.job]) for span in spans],
        reason=[_reason(span, loop.now) for span in spans],
        begin=[span.begin for span in spans],
        end=[span.end for span in spans],
        gpus=[len(span.nodes) for span in spans],
        devices=held,
    )


def _reason(span: PolluxSpan, now: float) -> int:
    if span.finished:
        return int(Reason.FINISHED)
    return int(Reason.END if span.end >= now else Reason.RESIZED)


def belief_errors(loop: Loop) -> dict[str, Any]:
    """Mean relative error of step times, as the last models see them: where a job has been, and on 1 to 16 devices, packed."""
    jobs, there, elsewhere = loop.jobs, [], []
    for job in np.flatnonzero(jobs.I[Column.MODEL] == 1).tolist():
        model, app = jobs.model[job], int(jobs.I[Column.APP, job])
        rows = jobs.seen[job, : jobs.I[Column.SEEN, job]]
        for row in rows:
            there.append(_error(step_time(model, int(row[NODES]), int(row[REPLICAS]), row[BATCH], 0), float(np.exp(row[LOG_STEP]))))
        local = float(rows[-1, BATCH])
        for devices in _ELSEWHERE:
            shape = packed_shape(devices, loop.applications.per_node)
            elsewhere.append(_error(step_time(model, len(shape), devices, local, 0), loop.applications.step_time(app, shape, local, 0.0)))
    return {"belief_error_seen": _mean(there), "belief_error_elsewhere": _mean(elsewhere)}


def _error(believed: float, true: float) -> float:
    return abs(believed / true - 1.0)


def _mean(errors: list[float]) -> float | None:
    return float(np.mean(errors)) if errors else None
