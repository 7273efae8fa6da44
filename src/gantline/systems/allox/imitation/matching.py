"""IRFsim's AlloX: one start per matching, at most fifty jobs in it, and machines booked for all jobs matched to them.

The solver's choice among equally good matchings moves AlloX' mean by several per cent. The original writes a square matrix: rows are
slots (position 1 of every machine, then position 2, ...), columns are jobs and zero columns that stand for empty slots. Column minima
are subtracted; each row in turn takes its first free zero; then every row left over, in order, grows an alternating tree that always
takes the column of least slack (lowest number if equal, parents changed only for a strictly smaller slack). Plain double arithmetic in
the same order, because smaller differences than one could round away flip ties.

Here the same choices are made without the square. Zero columns all have the same slack at every moment, so they enter a tree in order
of their numbers and before any label moves; a row that still stands on the zero column it began with says something new about jobs
only if it is the first such row of its machine, for deeper ones cost more. That leaves a few dozen columns to look at where the
original looks at two thousand.
"""

from __future__ import annotations

from math import ceil, inf
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.errors import RefusedError
from gantline.core.jit import compiled, kernel
from gantline.systems.allox.imitation.irfsim import CPU, GPU, IRFsim, IrfsimTask, User

MOST_JOBS = 50


def allox(sim: IRFsim, alpha: float, names: list[str]) -> None:
    """Match and start until nothing more can; fewer users, those with the lowest scores, are let in with a small alpha."""
    active = [user for user in sim.users if user.first_job is not None]
    tried = 0
    while active and (usable := usable_machines(sim)):
        active.sort(key=attrgetter("score"))  # in place: equal users stay as the last matching of this event found them
        chosen = min(len(active), ceil(alpha * len(active)))
        if chosen != tried and start_one(sim, active[:chosen], usable, names):  # else it is the matching that just failed
            tried = 0
        elif alpha > 1:
            return
        else:
            tried = chosen
            alpha *= 2


def usable_machines(sim: IRFsim) -> list[int]:
    """The free machines on which something may start, by number; samples stand on the lowest free ones of their kind."""
    held = [0, 0]
    for task in sim.running:
        if task.sample >= 0:
            held[task.sample] += 1
    usable = []
    for machine, kind in enumerate(sim.kinds):
        if sim.booked[machine] > -inf:
            continue
        if held[kind] > 0:
            held[kind] -= 1
        else:
            usable.append(machine)
    return usable


def choose_jobs(users: list[User]) -> list[IrfsimTask]:
    """The shortest on either device, taken in turns up to the size limit, in the order of a hash table of their numbers."""
    waiting = [job for user in users for job in user.jobs]
    chosen: dict[IrfsimTask, None] = {}
    by_gpu, by_cpu = sorted(waiting, key=lambda job: job.reported[GPU]), sorted(waiting, key=lambda job: job.reported[CPU])
    for on_gpu, on_cpu in zip(by_gpu, by_cpu):
        chosen[on_gpu] = chosen[on_cpu] = None
        if len(chosen) >= MOST_JOBS:
            break
    size = 16
    while len(chosen) > 0.75 * size:
        size *= 2
    return sorted(chosen, key=lambda job: job.number % size)


def start_one(sim: IRFsim, users: list[User], usable: list[int], names: list[str]) -> bool:
    """Solve, and start the head of the list of the highest-numbered usable machine, if one has a list."""
    jobs, machines = choose_jobs(users), len(sim.kinds)
    if not jobs:
        return False
    time = np.array([job.reported for job in jobs]).T.copy()
    free_at, arrival = np.maximum(sim.booked, sim.now), np.array([job.arrival for job in jobs])
    slot_of = match_slots(free_at, np.array(sim.kinds), arrival, time)
    first_to_last = np.argsort(-slot_of, kind="stable")
    machine_of = slot_of[first_to_last] % machines
    for machine in reversed(usable):
        matched = [jobs[j] for j in first_to_last[machine_of == machine].tolist()]
        if not matched:
            continue
        head, kind = matched[0], sim.kinds[machine]
        if not sim.fits(head, kind):
            raise RefusedError(
                f"job '{names[head.row]}' lacks memory, and the original would try it for ever",
                where="--regime irfsim",
                fix="give the cluster more memory, or use another --regime",
            )
        sim.start(head, kind)
        head.machine, sim.booked[machine] = machine, sim.now
        for job in matched:
            sim.booked[machine] += job.reported[kind]
        return True
    return False


class SlotCosts(NamedTuple):
    """What a slot costs a job, and the least that each job costs anywhere."""

    avail: Floats
    kind: Ints
    arrival: Floats
    time: Floats
    least: Floats


class TreeColumns(NamedTuple):
    """Columns of jobs while a tree grows: labels, which are in the tree, how far the others are, and from which slot."""

    label: Floats
    done: Bools
    slack: Floats
    nearest: Ints


@compiled
def match_slots(avail: Floats, kind: Ints, arrival: Floats, time: Floats) -> Ints:
    """The slot of every job, ``(position - 1) x machines + machine``.

    ``avail[m]`` is when machine m is free, ``time[kind, j]`` what job j takes on a machine of that kind.
    """
    machines, jobs = avail.size, arrival.size
    slots = machines * jobs
    least = np.full(jobs, np.inf)
    for j in range(jobs):
        for m in range(machines):
            least[j] = min(least[j], (avail[m] - arrival[j]) + time[kind[m], j])
    slot_of, column_of = np.full(jobs, -1, np.int64), np.full(slots, -1, np.int64)
    on_empty = np.full(slots - jobs, -1, np.int64)  # the slot on each zero column
    as_begun = np.zeros(slots, np.bool_)  # still on the zero column it took first
    label, job_label = np.zeros(slots), np.zeros(jobs)
    roots = np.empty(jobs, np.int64)
    taken = left = 0
    for slot in range(slots):
        if slot < machines:
            for j in range(jobs):
                if slot_of[j] < 0 and ((avail[slot] - arrival[j]) + time[kind[slot], j]) - least[j] == 0.0:
                    slot_of[j], column_of[slot] = slot, j
                    break
        if column_of[slot] >= 0:
            continue
        if taken < on_empty.size:
            on_empty[taken], column_of[slot], as_begun[slot] = slot, jobs + taken, True
            taken += 1
        else:
            roots[left] = slot
            left += 1
    empty_label = 0.0
    first = np.full(machines, -1, np.int64)  # per machine the first position that is as begun
    order, looked_at = np.empty(on_empty.size, np.int64), 0  # zero columns that matter, by number
    for m in range(machines):
        looked_at = look_further(m, first, as_begun, column_of, jobs, order, looked_at)
    parent, nearest, slack, done = np.empty(jobs, np.int64), np.empty(jobs, np.int64), np.empty(jobs), np.empty(jobs, np.bool_)
    empty_parent, tree = np.empty(on_empty.size, np.int64), np.empty(slots, np.int64)
    costs, columns = SlotCosts(avail, kind, arrival, time, least), TreeColumns(job_label, done, slack, nearest)
    for root in roots[:left]:
        done[:] = False
        size, at = 1, 0
        tree[0] = root
        empty_slack, empty_nearest = 0.0 - label[root] - empty_label, root
        slack[:], nearest[:] = np.inf, root
        best = come_near(root, label[root], costs, columns)
        while True:
            on_zero = at < looked_at and (best < 0 or empty_slack < slack[best])
            step = empty_slack if on_zero else slack[best]
            if step > 0:
                for i in range(size):
                    label[tree[i]] += step
                for j in range(jobs):
                    if done[j]:
                        job_label[j] -= step
                    else:
                        slack[j] -= step
                if at < looked_at:
                    empty_slack -= step
                else:
                    empty_label -= step
            if on_zero:
                column = order[at]
                at += 1
                empty_parent[column] = empty_nearest
                slot = on_empty[column]
            else:
                done[best], parent[best] = True, nearest[best]
                slot = slot_of[best]
                if slot < 0:
                    break
            mine = -empty_label
            if not as_begun[slot]:
                mine = label[slot]
                tree[size] = slot
                size += 1
            if not on_zero or slot // machines <= first[slot % machines]:  # deeper ones cost more than one that is looked at too
                best = come_near(slot, mine, costs, columns)
            if at < looked_at and 0.0 - mine - empty_label < empty_slack:
                empty_slack, empty_nearest = 0.0 - mine - empty_label, slot
        column = best
        while column >= 0:  # turn the path over
            slot = parent[column] if column < jobs else empty_parent[column - jobs]
            if as_begun[slot]:
                as_begun[slot], label[slot] = False, -empty_label
                looked_at = look_further(slot % machines, first, as_begun, column_of, jobs, order, looked_at)
            following = column_of[slot]
            column_of[slot] = column
            if column < jobs:
                slot_of[column] = slot
            else:
                on_empty[column - jobs] = slot
            column = following
    return slot_of


@kernel
def come_near(slot: int, label: float, costs: SlotCosts, columns: TreeColumns) -> int:
    """A slot enters the tree: jobs that it is nearer to than others are hang on it; the job with the least slack, -1 if all are in."""
    avail, kind, arrival, time, least = costs
    job_label, done, slack, nearest = columns
    machine, position, best, smallest = slot % avail.size, slot // avail.size + 1, -1, np.inf
    ready, seconds = avail[machine], time[kind[machine]]
    for j in range(slack.size):
        if done[j]:
            continue
        reach = ((ready - arrival[j]) + position * seconds[j]) - least[j] - label - job_label[j]
        if reach < slack[j]:
            slack[j], nearest[j] = reach, slot
        if slack[j] < smallest:
            best, smallest = j, slack[j]
    return best


@kernel
def look_further(m: int, first: Ints, as_begun: Bools, column_of: Ints, jobs: int, order: Ints, count: int) -> int:
    """The next slot of a machine that is as begun, and its zero column among those that matter; how many these are now.

    A column that matters once goes on to: whatever slot is put on it has been moved.
    """
    machines = first.size
    first[m] += 1
    while first[m] < jobs and not as_begun[first[m] * machines + m]:
        first[m] += 1
    if first[m] == jobs:
        return count
    column, at = column_of[first[m] * machines + m] - jobs, count
    while at > 0 and order[at - 1] > column:
        order[at] = order[at - 1]
        at -= 1
    order[at] = column
    return count + 1
