"""What Gavel's rounds leave in the log: an interval for as long as a job keeps its devices."""

from __future__ import annotations

import math

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.jit import kernel
from gantline.core.phases import PENDING
from gantline.core.phases import RUNNING as RUNS
from gantline.core.reasons import Reason
from gantline.engine.log import Interval, LogColumns, LogSize
from gantline.systems.gavel.imitation.tables import GavelDevices, GavelJobs, RoundCount, RoundTime, Tasks

_MOVED, _PREEMPTED = int(Reason.MOVED), int(Reason.PREEMPTED)


@kernel
def log_round(clock: Floats, count: Ints, jobs: GavelJobs, tasks: Tasks, devices: GavelDevices, log: LogColumns) -> None:
    """Open an interval for every job on new devices, close those of every job that has moved or stopped."""
    now, F, I = clock[RoundTime.NOW], jobs.F, jobs.I
    stamp = count[RoundCount.ROUNDS]
    for task in range(count[RoundCount.TASKS]):
        j = tasks.type[task]
        if j < 0:
            continue
        for side in range(2):
            job = tasks.first[task] if side == 0 else tasks.second[task]
            if job < 0:
                continue
            jobs.seen[job] = stamp
            if tasks.before[task] == j:
                continue
            if I[Job.INTERVAL, job] >= 0:
                log.entry[Interval.REASON, I[Job.INTERVAL, job]] = _MOVED
                I[Job.PREEMPTIONS, job] += 1
            open_lease(F, I, job, jobs.option[job, j], now, tasks, devices, task, log)
    for task in range(count[RoundCount.TASKS]):
        job = tasks.first[task]
        if tasks.second[task] < 0 and I[Job.INTERVAL, job] >= 0 and jobs.seen[job] != stamp:
            log.entry[Interval.REASON, I[Job.INTERVAL, job]] = _PREEMPTED
            I[Job.INTERVAL, job], I[Job.PHASE, job] = -1, PENDING
            I[Job.PREEMPTIONS, job] += 1


@kernel
def open_lease(
    F: Floats, I: Ints, job: int, option: int, now: float, tasks: Tasks, devices: GavelDevices, task: int, log: LogColumns
) -> None:
    """Log that the job holds its task's devices from now on."""
    at = log.written[LogSize.INTERVALS]
    log.written[LogSize.INTERVALS] += 1
    log.entry[Interval.ROW, at], log.entry[Interval.OPTION, at], log.entry[Interval.REASON, at] = job, option, 0
    log.entry[Interval.OFFSET, at], log.entry[Interval.COUNT, at], log.entry[Interval.NODE, at] = (
        log.written[LogSize.DEVICES],
        tasks.need[task],
        -1,
    )
    log.time[Interval.START, at] = now
    for k in range(tasks.need[task]):
        log.device[log.written[LogSize.DEVICES]] = devices.name[tasks.held[task, k]]
        log.written[LogSize.DEVICES] += 1
    I[Job.INTERVAL, job], I[Job.PHASE, job] = at, RUNS
    if math.isnan(F[Job.FIRST_START, job]):
        F[Job.FIRST_START, job], F[Job.MARK, job] = now, now
    else:
        I[Job.RESTARTS, job] += 1
    F[Job.LAST_START, job] = now
