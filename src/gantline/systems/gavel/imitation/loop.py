"""Gavel's simulator, round by round, compiled; it comes back only when shares are wanted.

A round ends when the last of its tasks does. A task does a whole number of steps, so rounds are a little shorter than
their length, and end early when every task does. Arrivals wait for the end of the round. `gavel_rounds` says the rest.
"""

from __future__ import annotations

import math
from typing import Final

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.jit import kernel
from gantline.core.phases import COMPLETED, FAILED, PENDING
from gantline.core.phases import RUNNING as RUNS
from gantline.core.reasons import Reason
from gantline.engine.log import Interval, LogColumns, LogSize
from gantline.policies.turns import TurnScratch, TurnTasks, choose_turns
from gantline.systems.gavel.imitation.tables import (  # fmt: skip  # fmt: skip
    GavelDevices,
    GavelJobs,
    GavelPairs,
    GavelRules,
    RoundCount,
    RoundStep,
    RoundTime,
    Tasks,
)

# The end of a round of Gavel: steps and time are credited, finished jobs leave.

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


# What Gavel's rounds leave in the log: an interval for as long as a job keeps its devices.

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


ASK: Final = 0  # shares are wanted
ROOM: Final = 1  # more room is wanted: in the log, among tasks, in the list of orders
DONE: Final = 2
STALLED: Final = 3  # jobs wait, nothing runs and nothing will come


@kernel
def run_rounds(
    rules: GavelRules,
    clock: Floats,
    count: Ints,
    jobs: GavelJobs,
    pairs: GavelPairs,
    tasks: Tasks,
    devices: GavelDevices,
    orders: Ints,
    log: LogColumns,
) -> int:
    """Run until shares are wanted, room is short or the tracked jobs have ended."""
    arrival = jobs.F[Job.ARRIVAL]
    while True:
        if count[RoundCount.STEP] == RoundStep.CLOSE:
            if count[RoundCount.RUNNING] > 0:
                close_round(rules, clock, count, jobs, tasks, devices, log)
            elif count[RoundCount.NEXT] < len(arrival):  # nothing runs: on to the next arrival
                clock[RoundTime.NOW] = max(clock[RoundTime.NOW], arrival[count[RoundCount.NEXT]])
            elif count[RoundCount.STALE] == 0:
                return STALLED
            else:
                clock[RoundTime.LAST_RESET] = 0.0
            if count[RoundCount.LEFT] == 0 or clock[RoundTime.NOW] >= clock[RoundTime.UNTIL]:
                return DONE
            count[RoundCount.STEP] = RoundStep.ADMIT
        if count[RoundCount.STEP] == RoundStep.ADMIT:
            while count[RoundCount.NEXT] < len(arrival) and arrival[count[RoundCount.NEXT]] <= clock[RoundTime.NOW]:
                if not admit_job(rules, clock, count, jobs, pairs, tasks):
                    return ROOM
            width = 2 * len(devices.taken) + 2
            if (
                log.written[LogSize.INTERVALS] + width > log.entry.shape[1]
                or log.written[LogSize.DEVICES] + width > len(log.device)
                or count[RoundCount.ORDER] >= len(orders)
            ):
                return ROOM
            count[RoundCount.STEP] = RoundStep.TURNS
            if count[RoundCount.STALE] == 1 and (
                clock[RoundTime.NOW] - clock[RoundTime.LAST_RESET] >= clock[RoundTime.SPACING] or clock[RoundTime.LAST_RESET] == 0.0
            ):
                return ASK
        for j in range(len(devices.free)):
            devices.free[j] = devices.capacity[j]
        chosen = choose_turns(
            TurnTasks(
                tasks.share,
                tasks.time,
                tasks.deficit,
                tasks.speed,
                tasks.need,
                tasks.first,
                tasks.second,
                tasks.known,
                count[RoundCount.TASKS],
            ),
            devices.total,
            orders[count[RoundCount.ORDER]],
            devices.free,
            rules.strict,
            rules.artifact,
            TurnScratch(tasks.priority, tasks.heap, jobs.busy),
            tasks.turn,
            tasks.chosen,
        )
        if not rules.one_order:
            count[RoundCount.ORDER] += 1
        place_turns(count, tasks, devices, chosen)
        start_round(rules, clock, count, jobs, pairs, tasks, devices)
        log_round(clock, count, jobs, tasks, devices, log)
        count[RoundCount.STEP] = RoundStep.CLOSE


@kernel
def admit_job(rules: GavelRules, clock: Floats, count: Ints, jobs: GavelJobs, pairs: GavelPairs, tasks: Tasks) -> bool:
    """The next job becomes a task, and one more with every job it may share devices with. False: no room."""
    alone, job = count[RoundCount.TASKS], count[RoundCount.NEXT]
    if alone + count[RoundCount.ACTIVE] + 1 > len(tasks.first):
        return False
    need = jobs.I[Job.GPUS, job]
    add_task(tasks, alone, job, -1, need, clock[RoundTime.LENGTH] / 2.0)
    for j in range(tasks.speed.shape[1]):
        tasks.speed[alone, j] = jobs.speed[job, j]
    add = alone + 1
    if rules.packs:
        for task in range(alone):
            other = tasks.first[task]
            if tasks.second[task] >= 0 or jobs.I[Job.GPUS, other] != need:
                continue
            add_task(tasks, add, other, job, need, 0.0)
            believe(pairs, jobs, tasks, add)
            add += 1
    count[RoundCount.TASKS] = add
    count[RoundCount.NEXT] += 1
    count[RoundCount.ACTIVE] += 1
    count[RoundCount.MOST] = max(count[RoundCount.MOST], count[RoundCount.ACTIVE])
    count[RoundCount.STALE] = 1
    jobs.F[Job.ADMITTED, job] = clock[RoundTime.NOW]
    jobs.I[Job.PHASE, job] = PENDING
    return True


@kernel
def add_task(tasks: Tasks, task: int, first: int, second: int, need: int, credit: float) -> None:
    """A task without shares; a job begins with half a round on its account, a pair with nothing."""
    tasks.first[task], tasks.second[task], tasks.need[task] = first, second, need
    tasks.known[task], tasks.type[task], tasks.before[task] = 0, -1, -1
    for j in range(tasks.share.shape[1]):
        tasks.share[task, j], tasks.time[task, j], tasks.deficit[task, j] = 0.0, credit, 0.0


@kernel
def believe(pairs: GavelPairs, jobs: GavelJobs, tasks: Tasks, task: int) -> None:
    """Where a pair may run, as far as is known; a member that cannot run alone cannot run in a pair."""
    one, two = tasks.first[task], tasks.second[task]
    a, b = jobs.key[one], jobs.key[two]
    for j in range(tasks.speed.shape[1]):
        speed = min(pairs.believed[a, b, j], pairs.believed[b, a, j])
        tasks.speed[task, j] = speed if jobs.speed[one, j] > 0.0 and jobs.speed[two, j] > 0.0 else 0.0


@kernel
def place_turns(count: Ints, tasks: Tasks, devices: GavelDevices, chosen: int) -> None:
    """Devices for all turns, largest gangs first: those of the last round if they are free, else the first free ones."""
    devices.taken[:] = 0
    size = 0
    for task in range(count[RoundCount.TASKS]):
        tasks.before[task] = tasks.type[task]
        tasks.type[task] = -1
        if tasks.before[task] >= 0:
            count[RoundCount.EXTENDABLE] += 1
    for at in range(chosen):
        size = max(size, tasks.need[tasks.chosen[at]])
    while size > 0:
        smaller = 0
        for at in range(chosen):
            task = tasks.chosen[at]
            if tasks.need[task] < size:
                smaller = max(smaller, tasks.need[task])
            elif tasks.need[task] == size and tasks.before[task] == tasks.turn[task] and keep_devices(tasks, devices, task, size):
                count[RoundCount.EXTENDED] += 1
        for at in range(chosen):
            task = tasks.chosen[at]
            if tasks.need[task] != size or tasks.type[task] >= 0:
                continue
            tasks.before[task] = -1
            tasks.type[task] = tasks.turn[task]
            device, got = devices.first[tasks.turn[task]], 0
            while got < size:
                if devices.taken[device] == 0:
                    devices.taken[device] = 1
                    tasks.held[task, got] = device
                    got += 1
                device += 1
        size = smaller


@kernel
def keep_devices(tasks: Tasks, devices: GavelDevices, task: int, size: int) -> bool:
    """The task stays on its devices, unless a larger gang has taken one of them."""
    for k in range(size):
        if devices.taken[tasks.held[task, k]] == 1:
            return False
    for k in range(size):
        devices.taken[tasks.held[task, k]] = 1
    tasks.type[task] = tasks.turn[task]
    return True


@kernel
def start_round(
    rules: GavelRules, clock: Floats, count: Ints, jobs: GavelJobs, pairs: GavelPairs, tasks: Tasks, devices: GavelDevices
) -> None:
    """Steps and end of every turn."""
    now = clock[RoundTime.NOW]
    clock[RoundTime.BEGAN] = now
    running = 0
    for task in range(count[RoundCount.TASKS]):
        j = tasks.type[task]
        if j < 0:
            continue
        running += 1
        count[RoundCount.GPU_ROUNDS] += tasks.need[task]
        one, two = tasks.first[task], tasks.second[task]
        spans = rules.across and spans_nodes(tasks, devices, task)
        if two < 0:
            speed = jobs.speed_across[one, j] if spans else jobs.speed[one, j]
            tasks.finish[task] = now + give_steps(rules, clock, jobs, tasks, task, 0, one, speed)
            continue
        a, b = jobs.key[one], jobs.key[two]
        truth = pairs.truth_across if spans else pairs.truth
        first = give_steps(rules, clock, jobs, tasks, task, 0, one, truth[a, b, j])
        second = give_steps(rules, clock, jobs, tasks, task, 1, two, truth[b, a, j])
        tasks.finish[task] = now + max(first, second)
        if pairs.believed[a, b, j] != pairs.truth[a, b, j] or pairs.believed[b, a, j] != pairs.truth[b, a, j]:
            pairs.believed[a, b, j], pairs.believed[b, a, j] = pairs.truth[a, b, j], pairs.truth[b, a, j]
            for other in range(count[RoundCount.TASKS]):
                if tasks.second[other] >= 0:
                    believe(pairs, jobs, tasks, other)
    count[RoundCount.RUNNING] = running
    if running > 0:
        count[RoundCount.ROUNDS] += 1


@kernel
def give_steps(rules: GavelRules, clock: Floats, jobs: GavelJobs, tasks: Tasks, task: int, side: int, job: int, speed: float) -> float:
    """Whole steps for one round, no more than are left; the seconds they take."""
    steps = math.floor(speed * clock[RoundTime.LENGTH])
    if not rules.artifact:
        steps = max(steps, 1.0) if speed > 0.0 else 0.0
    left = jobs.steps[job] - jobs.done[job]
    if left < steps:
        steps = left
    tasks.steps[task, side] = steps
    return steps / speed if speed > 0.0 else 0.0


@kernel
def spans_nodes(tasks: Tasks, devices: GavelDevices, task: int) -> bool:
    """Whether the task's devices belong to more than one node."""
    apart = 0
    for k in range(1, tasks.need[task]):
        apart += int(devices.node[tasks.held[task, k]] != devices.node[tasks.held[task, 0]])
    return apart > 0
