"""Gavel's ideal mode: no rounds, every job gets exactly its shares of time (OSDI 2020, section 7.4, Figure 13).

Shares are computed at every arrival and every finish. The artifact notices a finish at the next arrival only; here it
is seen when it happens.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.columns import Device, Job
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.engine.gang import close_interval, open_interval
from gantline.engine.log import Log
from gantline.engine.time_shares import Fluid
from gantline.systems.gavel.imitation.setup import GavelSetup
from gantline.systems.gavel.policies.allocation import Allocation, devices_used, effective_throughput
from gantline.systems.gavel.policies.instance import Instance

Ask = Callable[[Ints, float], tuple[Instance, Allocation]]


def run_ideally(setup: GavelSetup, ask: Ask, until: float, log: Log, accounts: Fluid) -> tuple[float, float]:
    """Run to the end of the tracked jobs; the time by then and the device-seconds used. `accounts`: what a log of devices cannot show."""
    jobs, F, I = setup.jobs, setup.jobs.F, setup.jobs.I
    arrival, following, now, used = F[Job.ARRIVAL], 0, 0.0, 0.0
    active: list[int] = []
    tracked = slice(setup.rules.low, setup.rules.high)
    while np.isnan(F[Job.FINISH, tracked]).any() and now < until:
        while following < len(arrival) and arrival[following] <= now:
            active.append(following)
            F[Job.ADMITTED, following], I[Job.PHASE, following] = now, Phase.PENDING
            following += 1
        coming = float(arrival[following]) if following < len(arrival) else np.inf
        if not active:
            now = coming
            continue
        rows = np.array(active, dtype=np.int64)
        instance, allocation = ask(rows, now)
        speed = effective_throughput(instance, allocation)
        left = jobs.steps[rows] - jobs.done[rows]
        ends = now + np.where(speed > 0, left / np.where(speed > 0, speed, 1.0), np.inf)
        end = min(float(ends.min()), coming, until)
        if not np.isfinite(end):
            break
        runs = speed > 0
        F[Job.FIRST_START, rows[runs]] = np.where(np.isnan(F[Job.FIRST_START, rows[runs]]), now, F[Job.FIRST_START, rows[runs]])
        F[Job.MARK, rows[runs]] = F[Job.FIRST_START, rows[runs]]
        jobs.done[rows] += speed * (end - now)
        _note_who_runs(setup, rows, runs, now, log)
        given = (instance.scale * allocation.share.sum(axis=1)) * (end - now)
        F[Job.SERVICE, rows[runs]] += end - now
        F[Job.GPUTIME, rows] += given
        for row, seconds in zip(active, given.tolist(), strict=True):
            accounts.held[row] = accounts.held.get(row, 0.0) + seconds
        used += float(devices_used(instance, allocation).sum()) * (end - now)
        for seconds in (setup.devices.held, setup.devices.paid):
            seconds[:] += devices_used(instance, allocation) * (end - now)
        done = rows[ends <= end]
        F[Job.FINISH, done], I[Job.PHASE, done] = end, Phase.COMPLETED
        jobs.done[done] = jobs.steps[done]
        for row in done.tolist():
            close_interval(I, row, end, int(Reason.FINISHED), log.columns)
        finished = set(done.tolist())
        active = [row for row in active if row not in finished]
        now = end
    accounts.device_seconds = used
    return now, used


def _note_who_runs(setup: GavelSetup, rows: Ints, runs: Bools, now: float, log: Log) -> None:
    """An interval is the time in which a job has a share, of whatever type; it has no devices."""
    I, D = setup.jobs.I, np.zeros((len(Device), 0), dtype=np.int64)
    log.reserve(len(rows), 0)
    for row in rows[runs & (I[Job.INTERVAL, rows] < 0)].tolist():
        open_interval(I, D, row, now, log.columns)
    for row in rows[~runs].tolist():
        close_interval(I, row, now, int(Reason.PREEMPTED), log.columns)
