"""`slurm`: the order of Slurm's multifactor plugin, and the gaps filled as its backfill plugin does.

A job's priority is what its queue, size and account are worth, which `job.priority` carries, and what its age adds. Jobs of a
partition with a higher tier come first. Backfill promises every job that it looks at the earliest instant at which all the nodes it
asks for have room until its time limit, and lets a job start if no promise moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.plan import Assignments, Plan, Reservation
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.systems.slurm.policies.calendar import (
    AMOUNTS,
    CPUS,
    FULL,
    GPUS,
    MEMORY,
    CalendarRoom,
    NodeBookings,
    NodeCalendar,
    WaitingWays,
    book,
    empty_calendar,
    plan_starts,
)

TIER = "partition_tier"
"""The metric that holds the tier of a job's partition."""
_INSTANT = 1e-6  # seconds that a gang takes at least


@dataclass(frozen=True)
class SlurmOrder(Policy):
    """Highest priority first, age included; later jobs fill gaps as far as time limits promise that none in front is delayed."""

    name: ClassVar[str] = "slurm"
    paper: ClassVar[str] = "Yoo, Jette, Grondona: SLURM (JSSPP 2003); multifactor priority and backfill as its manual describes them"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    age_weight: float = field(default=0.0, metadata=about("what full age adds to a priority (PriorityWeightAge)", low=0.0, finite=True))
    max_age: float = field(
        default=604_800.0, metadata=about("seconds after which a job has full age (PriorityMaxAge)", above=0.0, unit="seconds")
    )
    fill: bool = field(default=True, metadata={"help": "whether gaps are filled (sched/backfill); else strict order within each queue"})
    depth: int = field(default=500, metadata=about("how many waiting jobs are looked at (bf_max_job_test)", low=1))
    window: float = field(
        default=86_400.0, metadata=about("seconds ahead for which promises are made (bf_window)", above=0.0, unit="seconds")
    )

    def only_starts(self) -> bool:
        return True

    def decide(self, snapshot: Snapshot) -> Plan:
        waiting = np.flatnonzero(~snapshot.jobs.running)
        line = waiting[np.lexsort((waiting, *self._key(snapshot, waiting)))]
        order = line[: self.depth]
        ways = _ways(snapshot, order)
        booked = self._book(snapshot, ways, len(order))
        runs, starts = np.flatnonzero(snapshot.jobs.running), np.flatnonzero(booked.start <= snapshot.now)
        option = [*snapshot.jobs.option[runs].tolist(), *(int(ways.option[booked.way[k]]) for k in starts)]
        nodes = [()] * len(runs) + [tuple(booked.node[booked.first[k] : booked.first[k + 1]].tolist()) for k in starts]
        given = Assignments([*runs.tolist(), *order[starts].tolist()], option=option, nodes=nodes)
        until = self._stands_until(snapshot, line, order[starts])
        return Plan.assign(given, valid_until=until, reservations=_promises(snapshot, order, ways, booked))

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

    def _book(self, snapshot: Snapshot, ways: WaitingWays, count: int) -> NodeBookings:
        """The starts of the first jobs; lines that prove too short are made twice as long."""
        places = 8
        while True:
            calendar = _calendar(snapshot, places)
            if calendar is not None:
                nodes = len(calendar.type)
                whole = [np.zeros(size, dtype=np.int64) for size in (count, count + 1, int(ways.span.sum()) + nodes, nodes)]
                booked = NodeBookings(np.zeros(count), *whole[:3])
                scratch = CalendarRoom(np.zeros(nodes * places + 1), whole[3], np.zeros(len(snapshot.queues) + 1, dtype=np.bool_))
                if plan_starts(snapshot.now, calendar, ways, self.fill, self.window, booked, scratch) != FULL:
                    return booked
            places *= 2


def _ways(snapshot: Snapshot, order: Ints) -> WaitingWays:
    """How each of these jobs may run, node by node; a job that does not say how many nodes it wants takes the fewest."""
    jobs, cluster = snapshot.jobs, snapshot.cluster
    largest = [max(int(cluster.node_gpus[cluster.node_type == kind].max(initial=0)), 1) for kind in range(len(cluster.types))]
    first, kinds, options, needs, spans, lengths = [0], [], [], [], [], []
    remaining = np.maximum(jobs.remaining, _INSTANT)
    for job in order.tolist():
        for place, way in enumerate(jobs.options(job)):
            if way.rate <= 0:
                continue
            span = max(way.nodes, math.ceil(way.gpus / largest[way.type]), 1)
            each = math.ceil(way.gpus / span)
            kinds.append(way.type)
            options.append(place)
            spans.append(span)
            needs.append((each, way.cpus * (each or 1), way.memory * (each or 1)))
            lengths.append(remaining[job] / way.rate)
        first.append(len(kinds))
    starts, kind, option, span_of = (np.array(column, dtype=np.int64) for column in (first, kinds, options, spans))
    queue = jobs.queue[order].astype(np.int64)
    return WaitingWays(
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


def _promises(snapshot: Snapshot, order: Ints, ways: WaitingWays, booked: NodeBookings) -> tuple[Reservation, ...]:
    """The starts to come."""
    found = []
    for k in np.flatnonzero((booked.start > snapshot.now) & (np.diff(booked.first) > 0)).tolist():
        way, nodes = int(booked.way[k]), booked.node[booked.first[k] : booked.first[k + 1]]
        start, gpus = float(booked.start[k]), int(ways.need[way, GPUS]) * len(nodes)
        end = start + float(ways.seconds[way])
        found.append(Reservation(start, end, gpus, type=int(ways.type[way]), job=int(order[k]), nodes=tuple(nodes.tolist())))
    return tuple(found)
