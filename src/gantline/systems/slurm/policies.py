"""`slurm`: the order of Slurm's multifactor plugin, and the gaps filled as its backfill plugin does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import kernel
from gantline.core.plan import Assignments, Plan, Reservation
from gantline.core.policy import Policy, parameter
from gantline.core.snapshot import Snapshot

# When each node has how much free: the calendar that Slurm's backfill keeps, as arrays for a kernel.
#
# A node's line is a list of instants with what is free from each of them on: devices, CPUs and memory. A job is
# promised the earliest instant at which as many nodes as it spans have room for its whole time limit; the nodes are
# then booked for it. Among nodes with room the first in the order of the cluster are taken, as Slurm does where all
# have one weight.


GPUS, CPUS, MEMORY = range(3)
AMOUNTS = 3
_SLACK = 1e-9
FULL = -1  # a line has no room for another instant: come again with longer lines


class NodeCalendar(NamedTuple):
    """Lines of all nodes; `length` says how much of each is in use."""

    at: Floats  # (node, place)
    free: Floats  # (node, place, amount)
    length: Ints
    type: Ints
    open: Bools  # whether new gangs may start there


class WaitingVariants(NamedTuple):
    """The ways in which the waiting jobs may run; those of job k are `first[k]` to `first[k + 1]`."""

    first: Ints
    type: Ints
    option: Ints  # its number among the ways of its job
    need: Floats  # (way, amount), on each node
    span: Ints
    seconds: Floats
    queue: Ints  # of each job


class NodeBookings(NamedTuple):
    """What becomes of each waiting job: its start, its way, and the nodes from `first[k]` to `first[k + 1]` in `node`."""

    start: Floats
    variant: Ints
    first: Ints
    node: Ints


class CalendarRoom(NamedTuple):
    """Room to work in."""

    instant: Floats
    node: Ints
    blocked: Bools  # by queue


def empty_calendar(now: float, free: Floats, kinds: Ints, is_open: Bools, places: int) -> NodeCalendar:
    """Lines on which nothing ends or begins."""
    nodes = len(kinds)
    at, amounts = np.full((nodes, places), np.inf), np.zeros((nodes, places, AMOUNTS))
    at[:, 0], amounts[:, 0] = now, free
    return NodeCalendar(at, amounts, np.ones(nodes, dtype=np.int64), kinds.astype(np.int64), is_open)


@kernel
def split(calendar: NodeCalendar, node: int, instant: float) -> int:
    """The place at which that instant stands on a node's line; it is put there where it is not."""
    used = calendar.length[node]
    place = 0
    while place < used and calendar.at[node, place] < instant:
        place += 1
    if place < used and calendar.at[node, place] == instant:
        return place
    if used == calendar.at.shape[1]:
        return FULL
    for k in range(used, place, -1):
        calendar.at[node, k] = calendar.at[node, k - 1]
        for amount in range(AMOUNTS):
            calendar.free[node, k, amount] = calendar.free[node, k - 1, amount]
    calendar.at[node, place] = instant
    for amount in range(AMOUNTS):
        calendar.free[node, place, amount] = calendar.free[node, place - 1, amount]
    calendar.length[node] = used + 1
    return place


@kernel
def book(calendar: NodeCalendar, node: int, start: float, end: float, need: Floats) -> int:
    """Take amounts out of a node's line from start to end (to the end of the line where that is infinite)."""
    first = split(calendar, node, start)
    if first == FULL:
        return FULL
    last = calendar.length[node]
    if end < np.inf:
        last = split(calendar, node, end)
        if last == FULL:
            return FULL
    for place in range(first, last):
        for amount in range(AMOUNTS):
            calendar.free[node, place, amount] -= need[amount]
    return 0


@kernel
def fits(calendar: NodeCalendar, node: int, start: float, seconds: float, need: Floats) -> bool:
    """Whether a node has that much free from start on, for so long."""
    used = calendar.length[node]
    for place in range(used):
        if calendar.at[node, place] >= start + seconds:
            break
        if place + 1 < used and calendar.at[node, place + 1] <= start:
            continue
        for amount in range(AMOUNTS):
            if calendar.free[node, place, amount] < need[amount] - _SLACK:
                return False
    return True


@kernel
def earliest(calendar: NodeCalendar, kind: int, need: Floats, span: int, seconds: float, found: Ints, instants: Floats) -> float:
    """The first instant at which so many nodes of a type have room; the nodes are written to `found`. Infinity: never."""
    count = 0
    nodes = calendar.type.size
    for node in range(nodes):  # room begins only where a line changes
        if calendar.type[node] != kind or not calendar.open[node]:
            continue
        for place in range(calendar.length[node]):
            enough = True
            for amount in range(AMOUNTS):
                enough = enough and calendar.free[node, place, amount] >= need[amount] - _SLACK
            if not enough or not fits(calendar, node, calendar.at[node, place], seconds, need):
                continue
            instants[count] = calendar.at[node, place]
            count += 1
            if span == 1:
                break  # its earliest
    while True:
        best = -1
        for k in range(count):
            if best < 0 or instants[k] < instants[best]:
                best = k
        if best < 0 or instants[best] == np.inf:
            return np.inf
        start = float(instants[best])
        have = 0
        for node in range(nodes):
            if have < span and calendar.type[node] == kind and calendar.open[node] and fits(calendar, node, start, seconds, need):
                found[have] = node
                have += 1
        if have == span:
            return start
        for k in range(count):
            if instants[k] == start:
                instants[k] = np.inf


@kernel
def plan_starts(
    now: float, calendar: NodeCalendar, variants: WaitingVariants, fills: bool, window: float, booked: NodeBookings, scratch: CalendarRoom
) -> int:
    """Book the jobs in the order given; without filling, none passes a job of its own queue which must wait."""
    booked.first[0] = 0
    for job in range(booked.start.size):
        booked.start[job], booked.variant[job] = np.inf, -1
        put = booked.first[job]
        booked.first[job + 1] = put
        if not fills and scratch.blocked[variants.queue[job]]:
            continue
        for variant in range(variants.first[job], variants.first[job + 1]):
            span = variants.span[variant]
            start = earliest(
                calendar, variants.type[variant], variants.need[variant], span, variants.seconds[variant], scratch.node, scratch.instant
            )
            if start < booked.start[job]:
                booked.start[job], booked.variant[job] = start, variant
                for k in range(span):
                    booked.node[put + k] = scratch.node[k]
                booked.first[job + 1] = put + span
        if booked.start[job] > now:
            scratch.blocked[variants.queue[job]] = True
        if booked.start[job] > now + window:
            booked.first[job + 1] = put
            continue
        variant = booked.variant[job]
        for k in range(put, booked.first[job + 1]):
            done = book(calendar, booked.node[k], booked.start[job], booked.start[job] + variants.seconds[variant], variants.need[variant])
            if done == FULL:
                return FULL
    return 0


# `slurm`: the order of Slurm's multifactor plugin, and the gaps filled as its backfill plugin does.
#
# A job's priority is what its queue, size and account are worth, which `job.priority` carries, and what its age adds. Jobs of a
# partition with a higher tier come first. Backfill promises every job that it looks at the earliest instant at which all the nodes it
# asks for have room until its time limit, and lets a job start if no promise moves.

TIER = "partition_tier"
"""The metric that holds the tier of a job's partition."""
_INSTANT = 1e-6  # seconds that a gang takes at least


@dataclass(frozen=True)
class SlurmOrder(Policy):
    """Highest priority first, age included; later jobs fill gaps as far as time limits promise that none in front is delayed."""

    name = "slurm"
    paper = "Yoo, Jette, Grondona: SLURM (JSSPP 2003); multifactor priority and backfill as its manual describes them"
    needs = frozenset({"remaining"})

    age_weight: float = parameter(0.0, "what full age adds to a priority (PriorityWeightAge)", low=0.0, finite=True)
    max_age: float = parameter(604_800.0, "seconds after which a job has full age (PriorityMaxAge)", above=0.0, unit="seconds")
    fill: bool = parameter(True, "whether gaps are filled (sched/backfill); else strict order within each queue")
    depth: int = parameter(500, "how many waiting jobs are looked at (bf_max_job_test)", low=1)
    window: float = parameter(86_400.0, "seconds ahead for which promises are made (bf_window)", above=0.0, unit="seconds")

    def only_starts(self) -> bool:
        return True

    def decide(self, snapshot: Snapshot) -> Plan:
        waiting = np.flatnonzero(~snapshot.jobs.running)
        line = waiting[np.lexsort((waiting, *self._key(snapshot, waiting)))]
        order = line[: self.depth]
        variants = _variants(snapshot, order)
        booked = self._book(snapshot, variants, len(order))
        runs, starts = np.flatnonzero(snapshot.jobs.running), np.flatnonzero(booked.start <= snapshot.now)
        option = [*snapshot.jobs.option[runs].tolist(), *(int(variants.option[booked.variant[k]]) for k in starts)]
        nodes = [()] * len(runs) + [tuple(booked.node[booked.first[k] : booked.first[k + 1]].tolist()) for k in starts]
        given = Assignments([*runs.tolist(), *order[starts].tolist()], option=option, nodes=nodes)
        until = self._stands_until(snapshot, line, order[starts])
        return Plan.assign(given, valid_until=until, reservations=_promises(snapshot, order, variants, booked))

    def _stands_until(self, snapshot: Snapshot, line: Ints, starting: Ints) -> float:
        """When age may first let a job pass the one in front of it, although nothing happens; infinity: nothing idle could serve it.

        Both gain a point in equal times until the one in front has full age, so that the next point of the one behind tells.
        """
        gpus = snapshot.jobs.gpus
        idle = int(snapshot.cluster.node_free.sum()) - int(gpus[starting].sum())
        if self.age_weight == 0.0 or len(line) < 2 or idle < gpus[line].min():
            return math.inf
        now, arrival, priority = snapshot.now, snapshot.jobs.arrival[line], snapshot.jobs.priority[line]
        points, tier = (-column for column in self._key(snapshot, line))
        step, full = self.max_age / self.age_weight, arrival + self.max_age
        gains = np.maximum(arrival + (points + 1.0 - priority) * step, now) + _INSTANT  # past the last digit of the division
        behind = (gains[1:] <= full[1:] + _INSTANT) & (tier[1:] == tier[:-1])
        needed = np.where(gains[:-1] <= gains[1:], points[:-1] + 1.0, points[:-1]) + (line[1:] > line[:-1])
        passes = (points[1:] + 1.0 >= needed) | (gains[1:] > full[:-1])
        until = np.where(passes, gains[1:], np.maximum(full[:-1], now) + _INSTANT)
        return float(np.min(until, where=behind, initial=math.inf))

    def _key(self, snapshot: Snapshot, waiting: Ints) -> tuple[Floats, Floats]:
        """Priority, cut to a whole number as in Slurm, then tier, each with the highest first: the last one counts most."""
        jobs = snapshot.jobs
        age = np.minimum((snapshot.now - jobs.arrival[waiting]) / self.max_age, 1.0)
        return -np.floor(jobs.priority[waiting] + self.age_weight * age), -np.nan_to_num(jobs.metric(TIER)[waiting])

    def _book(self, snapshot: Snapshot, variants: WaitingVariants, count: int) -> NodeBookings:
        """The starts of the first jobs; lines that prove too short are made twice as long."""
        places = 8
        while True:
            calendar = _calendar(snapshot, places)
            if calendar is not None:
                nodes = len(calendar.type)
                whole = [np.zeros(size, dtype=np.int64) for size in (count, count + 1, int(variants.span.sum()) + nodes, nodes)]
                booked = NodeBookings(np.zeros(count), *whole[:3])
                scratch = CalendarRoom(np.zeros(nodes * places + 1), whole[3], np.zeros(len(snapshot.queues) + 1, dtype=np.bool_))
                if plan_starts(snapshot.now, calendar, variants, self.fill, self.window, booked, scratch) != FULL:
                    return booked
            places *= 2


def _variants(snapshot: Snapshot, order: Ints) -> WaitingVariants:
    """How each of these jobs may run, node by node; a job that does not say how many nodes it wants takes the fewest."""
    jobs, cluster = snapshot.jobs, snapshot.cluster
    largest = [max(int(cluster.node_gpus[cluster.node_type == kind].max(initial=0)), 1) for kind in range(len(cluster.types))]
    first, kinds, options, needs, spans, lengths = [0], [], [], [], [], []
    remaining = np.maximum(jobs.remaining, _INSTANT)
    for job in order.tolist():
        for place, variant in enumerate(jobs.options(job)):
            if variant.rate <= 0:
                continue
            span = max(variant.nodes, math.ceil(variant.gpus / largest[variant.type]), 1)
            each = math.ceil(variant.gpus / span)
            kinds.append(variant.type)
            options.append(place)
            spans.append(span)
            needs.append((each, variant.cpus * (each or 1), variant.memory * (each or 1)))
            lengths.append(remaining[job] / variant.rate)
        first.append(len(kinds))
    starts, kind, option, span_of = (np.array(column, dtype=np.int64) for column in (first, kinds, options, spans))
    queue = jobs.queue[order].astype(np.int64)
    return WaitingVariants(
        starts, kind, option, np.array(needs, dtype=np.float64).reshape(-1, AMOUNTS), span_of, np.array(lengths, dtype=np.float64), queue
    )


def _calendar(snapshot: Snapshot, places: int) -> NodeCalendar | None:
    """What is free now and given back when running jobs reach their limits; None: the lines are too short."""
    jobs, cluster = snapshot.jobs, snapshot.cluster
    opened = np.zeros(cluster.nodes)
    np.add.at(opened, cluster.device_node[cluster.device_open], 1.0)
    is_open = cluster.node_up & ((opened > 0) | (cluster.node_gpus == 0))
    free = np.zeros((cluster.nodes, AMOUNTS))
    free[:, GPUS], free[:, CPUS], free[:, MEMORY] = cluster.node_free, cluster.node_cpus_free, cluster.node_memory_free
    calendar = empty_calendar(snapshot.now, free, cluster.node_type, is_open, places)
    ends = snapshot.now + np.maximum(jobs.remaining, _INSTANT) / np.where(jobs.rate > 0, jobs.rate, 1.0)
    for job in np.flatnonzero(jobs.running).tolist():
        option = jobs.options(job)[max(int(jobs.option[job]), 0)]
        nodes, counts = _held(snapshot, job)
        for node, count in zip(nodes, counts):
            given = -np.array((count, option.cpus * (count or 1), option.memory * (count or 1)), dtype=np.float64)
            if book(calendar, node, float(ends[job]), math.inf, given) == FULL:
                return None
    return calendar if _keep_windows(snapshot, calendar) else None


def _keep_windows(snapshot: Snapshot, calendar: NodeCalendar) -> bool:
    """Close the nodes that are reserved in advance while their windows last; False: the lines are too short."""
    if not snapshot.windows:
        return True
    everything, number = np.full(AMOUNTS, np.inf), {node.name: k for k, node in enumerate(snapshot.cluster.description.nodes)}
    for window in snapshot.windows:
        start = max(window.start, snapshot.now)
        for node in {number[place.partition(":")[0]] for place in window.places} if window.end > start else ():
            if book(calendar, node, start, window.end, everything) == FULL:
                return False
    return True


def _held(snapshot: Snapshot, job: int) -> tuple[list[int], list[int]]:
    """The nodes on which a job runs, and how many devices it has on each."""
    nodes, counts = np.unique(snapshot.cluster.device_node[list(snapshot.jobs.devices(job))], return_counts=True)
    return nodes.tolist(), counts.tolist()


def _promises(snapshot: Snapshot, order: Ints, variants: WaitingVariants, booked: NodeBookings) -> tuple[Reservation, ...]:
    """The starts to come."""
    found = []
    for k in np.flatnonzero((booked.start > snapshot.now) & (np.diff(booked.first) > 0)).tolist():
        variant, nodes = int(booked.variant[k]), booked.node[booked.first[k] : booked.first[k + 1]]
        start, gpus = float(booked.start[k]), int(variants.need[variant, GPUS]) * len(nodes)
        end = start + float(variants.seconds[variant])
        found.append(Reservation(start, end, gpus, type=int(variants.type[variant]), job=int(order[k]), nodes=tuple(nodes.tolist())))
    return tuple(found)
