"""Gavel's simulator, round by round, compiled; it comes back only when shares are wanted.

A round ends when the last of its tasks does. A task does a whole number of steps, so rounds are a little shorter than
their length, and end early when every task does. Arrivals wait for the end of the round. `gavel_rounds` says the rest.
"""

from __future__ import annotations

import math
from typing import Final

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.core.phases import COMPLETED, FAILED, PENDING
from gantline.core.phases import RUNNING as RUNS
from gantline.core.reasons import Reason
from gantline.engine import log as g
from gantline.engine.log import LogColumns
from gantline.policies.turns import TurnScratch, TurnTasks, choose_turns
from gantline.systems.gavel.imitation.tables import (
    ACTIVE,
    ADMIT,
    BEGAN,
    CLOSE,
    EXTENDABLE,
    EXTENDED,
    GPU_ROUNDS,
    LAST_END,
    LAST_RESET,
    LEFT,
    LENGTH,
    MOST,
    NEXT,
    NOW,
    ORDER,
    ROUNDS,
    RUNNING,
    SPACING,
    STALE,
    STEP,
    TASKS,
    TURNS,
    UNTIL,
    GavelDevices,
    GavelJobs,
    GavelPairs,
    GavelRules,
    Tasks,
)  # fmt: skip  # fmt: skip

# The end of a round of Gavel: steps and time are credited, finished jobs leave.

_FAILURES = 5  # in a row, after which the artifact drops a job
_FINISHED = int(Reason.FINISHED)


@kernel
def close_round(
    rules: GavelRules, clock: Floats, count: Ints, jobs: GavelJobs, tasks: Tasks, devices: GavelDevices, log: LogColumns
) -> None:
    """The clock goes to the end of the last turn; steps and time are credited, finished jobs leave."""
    end, ended = clock[NOW], False
    for task in range(count[TASKS]):
        if tasks.type[task] >= 0:
            end = max(end, tasks.finish[task])
    for task in range(count[TASKS]):
        j = tasks.type[task]
        if j < 0:
            continue
        if failed(rules, tasks, task):
            held_in_vain(jobs, tasks, task, log)
            ended |= drop_after_failures(count, jobs, tasks, task)
            continue
        finish = tasks.finish[task]
        credit = finish - (clock[LAST_END] if rules.artifact else clock[BEGAN])
        tasks.time[task, j] += credit
        devices.total[j] += credit
        devices.held[j] += tasks.need[task] * credit
        for side in range(2):
            job = tasks.first[task] if side == 0 else tasks.second[task]
            if job >= 0:
                devices.paid[j] += tasks.need[task] * credit
                ended |= credit_job(clock, jobs, job, tasks.steps[task, side], tasks.need[task], finish, log)
    clock[NOW], clock[LAST_END] = end, end
    if ended:
        count[STALE] = 1
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
            log.time[g.L_END, jobs.I[c.INTERVAL, job]] = tasks.finish[task]


@kernel
def drop_after_failures(count: Ints, jobs: GavelJobs, tasks: Tasks, task: int) -> bool:
    """Nothing is credited; a job that failed too often is given up."""
    count[STALE] = 1
    job = tasks.first[task]
    if tasks.second[task] >= 0:
        return False
    jobs.failures[job] += 1
    if jobs.failures[job] < _FAILURES:
        return False
    jobs.I[c.PHASE, job] = FAILED
    return True


@kernel
def credit_job(clock: Floats, jobs: GavelJobs, job: int, steps: float, gpus: int, finish: float, log: LogColumns) -> bool:
    """Steps and time of a turn; whether the job is done."""
    F, I = jobs.F, jobs.I
    jobs.done[job] += steps
    jobs.failures[job] = 0
    F[c.SERVICE, job] += finish - clock[BEGAN]
    F[c.GPUTIME, job] += gpus * (finish - clock[BEGAN])
    log.time[g.L_END, I[c.INTERVAL, job]] = finish
    if jobs.done[job] < jobs.steps[job]:
        return False
    F[c.FINISH, job] = finish
    log.entry[g.L_REASON, I[c.INTERVAL, job]] = _FINISHED
    I[c.INTERVAL, job], I[c.PHASE, job] = -1, COMPLETED
    return True


@kernel
def drop_ended(rules: GavelRules, count: Ints, jobs: GavelJobs, tasks: Tasks) -> None:
    """Tasks of jobs that have ended leave the list; the others keep their order."""
    kept = 0
    for task in range(count[TASKS]):
        one, two = tasks.first[task], tasks.second[task]
        one_left = jobs.I[c.PHASE, one] >= COMPLETED
        two_left = two >= 0 and jobs.I[c.PHASE, two] >= COMPLETED
        if one_left or two_left:
            if two < 0:
                count[ACTIVE] -= 1
                count[LEFT] -= int(rules.low <= one < rules.high)
            elif tasks.type[task] >= 0 and not (one_left and two_left):
                count[EXTENDABLE] += 1  # the survivor's lease could have been extended
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
    count[TASKS] = kept


# What Gavel's rounds leave in the log: an interval for as long as a job keeps its devices.

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
    arrival = jobs.F[c.ARRIVAL]
    while True:
        if count[STEP] == CLOSE:
            if count[RUNNING] > 0:
                close_round(rules, clock, count, jobs, tasks, devices, log)
            elif count[NEXT] < len(arrival):  # nothing runs: on to the next arrival
                clock[NOW] = max(clock[NOW], arrival[count[NEXT]])
            elif count[STALE] == 0:
                return STALLED
            else:
                clock[LAST_RESET] = 0.0
            if count[LEFT] == 0 or clock[NOW] >= clock[UNTIL]:
                return DONE
            count[STEP] = ADMIT
        if count[STEP] == ADMIT:
            while count[NEXT] < len(arrival) and arrival[count[NEXT]] <= clock[NOW]:
                if not admit_job(rules, clock, count, jobs, pairs, tasks):
                    return ROOM
            width = 2 * len(devices.taken) + 2
            if (
                log.written[g.INTERVALS] + width > log.entry.shape[1]
                or log.written[g.DEVICES] + width > len(log.device)
                or count[ORDER] >= len(orders)
            ):
                return ROOM
            count[STEP] = TURNS
            if count[STALE] == 1 and (clock[NOW] - clock[LAST_RESET] >= clock[SPACING] or clock[LAST_RESET] == 0.0):
                return ASK
        for j in range(len(devices.free)):
            devices.free[j] = devices.capacity[j]
        chosen = choose_turns(
            TurnTasks(
                tasks.share, tasks.time, tasks.deficit, tasks.speed, tasks.need, tasks.first, tasks.second, tasks.known, count[TASKS]
            ),
            devices.total,
            orders[count[ORDER]],
            devices.free,
            rules.strict,
            rules.artifact,
            TurnScratch(tasks.priority, tasks.heap, jobs.busy),
            tasks.turn,
            tasks.chosen,
        )
        if not rules.one_order:
            count[ORDER] += 1
        place_turns(count, tasks, devices, chosen)
        start_round(rules, clock, count, jobs, pairs, tasks, devices)
        log_round(clock, count, jobs, tasks, devices, log)
        count[STEP] = CLOSE


@kernel
def admit_job(rules: GavelRules, clock: Floats, count: Ints, jobs: GavelJobs, pairs: GavelPairs, tasks: Tasks) -> bool:
    """The next job becomes a task, and one more with every job it may share devices with. False: no room."""
    alone, job = count[TASKS], count[NEXT]
    if alone + count[ACTIVE] + 1 > len(tasks.first):
        return False
    need = jobs.I[c.GPUS, job]
    add_task(tasks, alone, job, -1, need, clock[LENGTH] / 2.0)
    for j in range(tasks.speed.shape[1]):
        tasks.speed[alone, j] = jobs.speed[job, j]
    add = alone + 1
    if rules.packs:
        for task in range(alone):
            other = tasks.first[task]
            if tasks.second[task] >= 0 or jobs.I[c.GPUS, other] != need:
                continue
            add_task(tasks, add, other, job, need, 0.0)
            believe(pairs, jobs, tasks, add)
            add += 1
    count[TASKS] = add
    count[NEXT] += 1
    count[ACTIVE] += 1
    count[MOST] = max(count[MOST], count[ACTIVE])
    count[STALE] = 1
    jobs.F[c.ADMITTED, job] = clock[NOW]
    jobs.I[c.PHASE, job] = PENDING
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
    """Where a pair may run, as far as is known; a member that cannot run alone cannot run in company."""
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
    for task in range(count[TASKS]):
        tasks.before[task] = tasks.type[task]
        tasks.type[task] = -1
        if tasks.before[task] >= 0:
            count[EXTENDABLE] += 1
    for at in range(chosen):
        size = max(size, tasks.need[tasks.chosen[at]])
    while size > 0:
        smaller = 0
        for at in range(chosen):
            task = tasks.chosen[at]
            if tasks.need[task] < size:
                smaller = max(smaller, tasks.need[task])
            elif tasks.need[task] == size and tasks.before[task] == tasks.turn[task] and keep_devices(tasks, devices, task, size):
                count[EXTENDED] += 1
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
    now = clock[NOW]
    clock[BEGAN] = now
    running = 0
    for task in range(count[TASKS]):
        j = tasks.type[task]
        if j < 0:
            continue
        running += 1
        count[GPU_ROUNDS] += tasks.need[task]
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
            for other in range(count[TASKS]):
                if tasks.second[other] >= 0:
                    believe(pairs, jobs, tasks, other)
    count[RUNNING] = running
    if running > 0:
        count[ROUNDS] += 1


@kernel
def give_steps(rules: GavelRules, clock: Floats, jobs: GavelJobs, tasks: Tasks, task: int, side: int, job: int, speed: float) -> float:
    """Whole steps for one round, no more than are left; the seconds they take."""
    steps = math.floor(speed * clock[LENGTH])
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
