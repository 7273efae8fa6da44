"""IRFsim's AlloX: one start per matching, at most fifty jobs in it, and machines booked for all jobs matched to them."""

from __future__ import annotations

from math import ceil

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import compiled, kernel
from gantline.systems.allox.imitation.solver import match_slots
from gantline.systems.allox.imitation.world import (
    ARRIVAL,
    CPU,
    GPU,
    LENGTH,
    MACHINE,
    NOW,
    OFFSET,
    QUEUE,
    REPORTED,
    RUNNING,
    RUNS,
    SAMPLE,
    SCORE,
    SCRATCH,
    World,
    first_job,
    fits,
    sort_by,
    start,
)

MOST_JOBS = 50


@compiled
def match_event(w: World, number: Ints, kind: Ints, alpha: float) -> int:
    """Match and start until nothing more can; -1, or the job that lacks memory, which the original would try for ever.

    ``number`` is what the hash table sees of each job, ``kind`` which machines are GPUs; a machine that is free has NaN in
    ``w.booked``, and samples stand on the lowest free ones of their kind.
    """
    samples = np.zeros(2, np.int64)
    for task in w.lists[RUNS, : w.counts[RUNNING]]:
        if w.codes[SAMPLE, task] >= 0:
            samples[w.codes[SAMPLE, task]] += 1
    users = w.queues.shape[1]
    active, count = np.empty(users, np.int64), 0
    for user in range(users):
        if first_job(w, user) >= 0:
            active[count] = user
            count += 1
    active = active[:count]
    usable = np.empty(kind.size, np.int64)
    tried = 0
    while True:
        machines = usable_machines(w.booked, kind, samples, usable)
        if machines == 0 or count == 0:
            return -1
        poorest_first(w.users[SCORE], active)
        chosen = min(count, ceil(alpha * count))
        found = -1
        if chosen != tried:  # else it is the matching that just failed
            found = start_one(w, active[:chosen], number, kind, usable[:machines])
            if found < -1:
                return -2 - found
        if found >= 0:
            tried = 0
            continue
        if alpha > 1:
            return -1
        tried = chosen
        alpha *= 2


@kernel
def usable_machines(booked: Floats, kind: Ints, samples: Ints, usable: Ints) -> int:
    """The free machines on which something may start, by number; how many there are."""
    count = passed_cpu = passed_gpu = 0
    for m in range(kind.size):
        if not np.isnan(booked[m]):
            continue
        if kind[m] == GPU and passed_gpu < samples[GPU]:
            passed_gpu += 1
        elif kind[m] == CPU and passed_cpu < samples[CPU]:
            passed_cpu += 1
        else:
            usable[count] = m
            count += 1
    return count


@kernel
def poorest_first(score: Floats, active: Ints) -> None:
    """Order users by their scores, in place: equal ones stay as the last sort of the event left them, at first by name."""
    for i in range(1, active.size):
        user = active[i]
        at = i
        while at > 0 and score[active[at - 1]] > score[user]:
            active[at] = active[at - 1]
            at -= 1
        active[at] = user


@kernel
def choose_jobs(w: World, users: Ints, number: Ints, tasks: Ints) -> int:
    """The shortest jobs on either device in turns up to the size limit, in the order of a hash table of their numbers; how many."""
    by_gpu, by_cpu = w.lists[SCRATCH], w.lists[SCRATCH + 1]
    waiting = 0
    for user in users:
        for task in w.lists[QUEUE, w.queues[OFFSET, user] : w.queues[OFFSET, user] + w.queues[LENGTH, user]]:
            if w.codes[SAMPLE, task] < 0:
                by_gpu[waiting] = by_cpu[waiting] = task
                waiting += 1
    sort_by(by_gpu[:waiting], w.tasks[REPORTED + GPU])
    sort_by(by_cpu[:waiting], w.tasks[REPORTED + CPU])
    count = 0
    for i in range(waiting):
        for task in (by_gpu[i], by_cpu[i]):
            known = False
            for other in tasks[:count]:
                known = known or other == task
            if not known:
                tasks[count] = task
                count += 1
        if count >= MOST_JOBS:
            break
    size = 16
    while count > 0.75 * size:
        size *= 2
    for i in range(1, count):
        task = tasks[i]
        at = i
        while at > 0 and number[tasks[at - 1]] % size > number[task] % size:
            tasks[at] = tasks[at - 1]
            at -= 1
        tasks[at] = task
    return count


@compiled
def start_one(w: World, users: Ints, number: Ints, kind: Ints, usable: Ints) -> int:
    """Solve, and start the head of the list of the highest-numbered usable machine; the job, -1 if none, -2 - job if it lacks memory."""
    tasks = np.empty(MOST_JOBS + 2, np.int64)
    jobs, machines, now = choose_jobs(w, users, number, tasks), kind.size, w.pool[NOW]
    if jobs == 0:
        return -1
    tasks = tasks[:jobs]
    avail = np.empty(machines)
    for m in range(machines):
        avail[m] = now if np.isnan(w.booked[m]) else max(w.booked[m], now)
    arrival, time = np.empty(jobs), np.empty((2, jobs))
    for j in range(jobs):
        arrival[j] = w.tasks[ARRIVAL, tasks[j]]
        time[CPU, j], time[GPU, j] = w.tasks[REPORTED + CPU, tasks[j]], w.tasks[REPORTED + GPU, tasks[j]]
    slot_of = match_slots(avail, kind, arrival, time)
    first_to_last = np.argsort(-slot_of, kind="mergesort")
    for m in usable[::-1]:
        head, until = -1, now
        for j in first_to_last:
            if slot_of[j] % machines == m:
                head = tasks[j] if head < 0 else head
                until += time[kind[m], j]
        if head >= 0:
            if not fits(w, head, kind[m]):
                return -2 - head
            start(w, head, kind[m], head)
            w.codes[MACHINE, head], w.booked[m] = m, until
            return int(head)
    return -1
