"""The end of a round of Gavel: steps and time are credited, finished jobs leave."""

from __future__ import annotations

import math

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.jit import kernel
from gantline.core.phases import COMPLETED, FAILED
from gantline.core.reasons import Reason
from gantline.engine.log import Interval, LogColumns
from gantline.systems.gavel.imitation.tables import GavelDevices, GavelJobs, GavelRules, RoundCount, RoundTime, Tasks  # fmt: skip

_FAILURES = 5  # in a row, after which the artifact drops a job
_FINISHED = int(Reason.FINISHED)


@kernel
def close_round(
    rules: GavelRules, clock: Floats, count: Ints, jobs: GavelJobs, tasks: Tasks, devices: GavelDevices, log: LogColumns
) -> None:
    """The clock goes to the end of the last turn; steps and time are credited, finished jobs leave."""
    end, ended = clock[RoundTime.NOW], False
    for task in range(count[RoundCount.TASKS]):
        if tasks.type[task] >= 0:
            end = max(end, tasks.finish[task])
    for task in range(count[RoundCount.TASKS]):
        j = tasks.type[task]
        if j < 0:
            continue
        if failed(rules, tasks, task):
            held_in_vain(jobs, tasks, task, log)
            ended |= drop_after_failures(count, jobs, tasks, task)
            continue
        finish = tasks.finish[task]
        credit = finish - (clock[RoundTime.LAST_END] if rules.artifact else clock[RoundTime.BEGAN])
        tasks.time[task, j] += credit
        devices.total[j] += credit
        devices.held[j] += tasks.need[task] * credit
        for side in range(2):
            job = tasks.first[task] if side == 0 else tasks.second[task]
            if job >= 0:
                devices.paid[j] += tasks.need[task] * credit
                ended |= credit_job(clock, jobs, job, tasks.steps[task, side], tasks.need[task], finish, log)
    clock[RoundTime.NOW], clock[RoundTime.LAST_END] = end, end
    if ended:
        count[RoundCount.STALE] = 1
        drop_ended(rules, count, jobs, tasks)


@kernel
def failed(rules: GavelRules, tasks: Tasks, task: int) -> bool:
    """Whether a worker got no step at all; the artifact divides a gang's steps among its workers and rounds down."""
    for side in range(2 if tasks.second[task] >= 0 else 1):
        steps = tasks.steps[task, side]
        if steps <= 0.0 or (rules.artifact and math.floor(steps / tasks.need[task]) <= 0.0 and tasks.need[task] > 1):
            return True
    return False


@kernel
def held_in_vain(jobs: GavelJobs, tasks: Tasks, task: int, log: LogColumns) -> None:
    """Log that the devices were held for the turn, although nothing is credited."""
    for side in range(2):
        job = tasks.first[task] if side == 0 else tasks.second[task]
        if job >= 0:
            log.time[Interval.END, jobs.I[Job.INTERVAL, job]] = tasks.finish[task]


@kernel
def drop_after_failures(count: Ints, jobs: GavelJobs, tasks: Tasks, task: int) -> bool:
    """Nothing is credited; a job that failed too often is given up."""
    count[RoundCount.STALE] = 1
    job = tasks.first[task]
    if tasks.second[task] >= 0:
        return False
    jobs.failures[job] += 1
    if jobs.failures[job] < _FAILURES:
        return False
    jobs.I[Job.PHASE, job] = FAILED
    return True


@kernel
def credit_job(clock: Floats, jobs: GavelJobs, job: int, steps: float, gpus: int, finish: float, log: LogColumns) -> bool:
    """Steps and time of a turn; whether the job is done."""
    F, I = jobs.F, jobs.I
    jobs.done[job] += steps
    jobs.failures[job] = 0
    F[Job.SERVICE, job] += finish - clock[RoundTime.BEGAN]
    F[Job.GPUTIME, job] += gpus * (finish - clock[RoundTime.BEGAN])
    log.time[Interval.END, I[Job.INTERVAL, job]] = finish
    if jobs.done[job] < jobs.steps[job]:
        return False
    F[Job.FINISH, job] = finish
    log.entry[Interval.REASON, I[Job.INTERVAL, job]] = _FINISHED
    I[Job.INTERVAL, job], I[Job.PHASE, job] = -1, COMPLETED
    return True


@kernel
def drop_ended(rules: GavelRules, count: Ints, jobs: GavelJobs, tasks: Tasks) -> None:
    """Tasks of jobs that have ended leave the list; the others keep their order."""
    kept = 0
    for task in range(count[RoundCount.TASKS]):
        one, two = tasks.first[task], tasks.second[task]
        one_left = jobs.I[Job.PHASE, one] >= COMPLETED
        two_left = two >= 0 and jobs.I[Job.PHASE, two] >= COMPLETED
        if one_left or two_left:
            if two < 0:
                count[RoundCount.ACTIVE] -= 1
                count[RoundCount.LEFT] -= int(rules.low <= one < rules.high)
            elif tasks.type[task] >= 0 and not (one_left and two_left):
                count[RoundCount.EXTENDABLE] += 1  # the survivor's lease could have been extended
            continue
        if kept != task:
            for j in range(tasks.share.shape[1]):
                tasks.share[kept, j], tasks.time[kept, j] = tasks.share[task, j], tasks.time[task, j]
                tasks.deficit[kept, j], tasks.speed[kept, j] = tasks.deficit[task, j], tasks.speed[task, j]
            for k in range(tasks.need[task]):
                tasks.held[kept, k] = tasks.held[task, k]
            tasks.first[kept], tasks.second[kept], tasks.need[kept], tasks.known[kept] = one, two, tasks.need[task], tasks.known[task]
            tasks.type[kept] = tasks.type[task]
        kept += 1
    count[RoundCount.TASKS] = kept
