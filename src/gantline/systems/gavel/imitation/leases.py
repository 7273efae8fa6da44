"""What Gavel's rounds leave in the log: an interval for as long as a job keeps its devices."""

from __future__ import annotations

import math

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.core.phases import PENDING
from gantline.core.phases import RUNNING as RUNS
from gantline.core.reasons import Reason
from gantline.engine import log as g
from gantline.engine.log import LogColumns
from gantline.systems.gavel.imitation.tables import NOW, ROUNDS, TASKS, GavelDevices, GavelJobs, Tasks

_MOVED, _PREEMPTED = int(Reason.MOVED), int(Reason.PREEMPTED)


@kernel
def log_round(clock: Floats, count: Ints, jobs: GavelJobs, tasks: Tasks, devices: GavelDevices, log: LogColumns) -> None:
    """Open an interval for every job on new devices, close those of every job that has moved or stopped."""
    now, F, I = clock[NOW], jobs.F, jobs.I
    stamp = count[ROUNDS]
    for task in range(count[TASKS]):
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
            if I[c.INTERVAL, job] >= 0:
                log.entry[g.L_REASON, I[c.INTERVAL, job]] = _MOVED
                I[c.PREEMPTIONS, job] += 1
            open_lease(F, I, job, jobs.option[job, j], now, tasks, devices, task, log)
    for task in range(count[TASKS]):
        job = tasks.first[task]
        if tasks.second[task] < 0 and I[c.INTERVAL, job] >= 0 and jobs.seen[job] != stamp:
            log.entry[g.L_REASON, I[c.INTERVAL, job]] = _PREEMPTED
            I[c.INTERVAL, job], I[c.PHASE, job] = -1, PENDING
            I[c.PREEMPTIONS, job] += 1


@kernel
def open_lease(
    F: Floats, I: Ints, job: int, option: int, now: float, tasks: Tasks, devices: GavelDevices, task: int, log: LogColumns
) -> None:
    """Log that the job holds its task's devices from now on."""
    at = log.written[g.INTERVALS]
    log.written[g.INTERVALS] += 1
    log.entry[g.L_ROW, at], log.entry[g.L_OPTION, at], log.entry[g.L_REASON, at] = job, option, 0
    log.entry[g.L_OFFSET, at], log.entry[g.L_COUNT, at], log.entry[g.L_NODE, at] = log.written[g.DEVICES], tasks.need[task], -1
    log.time[g.L_START, at] = now
    for k in range(tasks.need[task]):
        log.device[log.written[g.DEVICES]] = devices.name[tasks.held[task, k]]
        log.written[g.DEVICES] += 1
    I[c.INTERVAL, job], I[c.PHASE, job] = at, RUNS
    if math.isnan(F[c.FIRST_START, job]):
        F[c.FIRST_START, job], F[c.MARK, job] = now, now
    else:
        I[c.RESTARTS, job] += 1
    F[c.LAST_START, job] = now
