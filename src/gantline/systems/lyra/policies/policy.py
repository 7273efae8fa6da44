"""`lyra`: shortest jobs first at their base size, extra workers by a knapsack, on own servers and on servers that are on loan."""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.errors import UsageError
from gantline.core.fields import seconds
from gantline.core.plan import Assignments, Plan
from gantline.core.policy import Policy, parameter
from gantline.core.rng import stream
from gantline.core.snapshot import Snapshot
from gantline.policies.elastic.pools import Pool, pools
from gantline.systems.ffdl.policies import fill_choices
from gantline.systems.lyra.policies.placement import place_jobs

# How many servers the inference cluster can spare: a schedule that was given, or the load of a day and a night.
#
# The number is the inference cluster's own decision (Lyra, EuroSys 2023, section 2); the scheduler receives it, and has
# to keep to it. The generated load is a cosine between `low` and `high` over a day, with its peak at `peak` and noise
# that is new every few minutes; what is needed is rounded up to whole servers.


_DAY = 86_400.0


@dataclass(frozen=True)
class DayAndNight:
    """Parts of the inference cluster that its own load needs."""

    low: float = 0.35
    high: float = 0.95
    peak: float = 0.5 * _DAY
    noise: float = 0.05
    step: float = 300.0
    seed: int = 0

    def load(self, now: float) -> float:
        """The part that is needed in the few minutes around now."""
        number = math.floor(now / self.step + 1e-9)
        wave = 0.5 + 0.5 * math.cos(2.0 * math.pi * (number * self.step - self.peak) / _DAY)
        drawn = self.noise * float(stream(self.seed, number, "inference load").standard_normal()) if self.noise > 0.0 else 0.0
        return min(max(self.low + (self.high - self.low) * wave + drawn, 0.0), 1.0)

    def spare(self, now: float, servers: int) -> int:
        """Servers that can be lent now."""
        return servers - math.ceil(self.load(now) * servers - 1e-9)

    def next_change(self, now: float, servers: int) -> float:
        """When the number changes next, within a day."""
        have, number = self.spare(now, servers), math.floor(now / self.step + 1e-9)
        for ahead in range(1, math.ceil(_DAY / self.step) + 1):
            then = (number + ahead) * self.step
            if self.spare(then, servers) != have:
                return then
        return now + _DAY


@dataclass(frozen=True)
class Schedule:
    """So many servers from each time on."""

    times: tuple[float, ...]
    servers: tuple[int, ...]

    @staticmethod
    def parse(text: str) -> Schedule:
        """From ``0:4,2h:0,20h:8``."""
        pairs = []
        for part in text.split(","):
            time, _, count = part.rpartition(":")
            if not count.strip().isdigit() or not time:
                raise UsageError(f"'{part}' is no loan", where="policy 'lyra': loans", fix="TIME:SERVERS joined by commas, as in 0:4,2h:0")
            pairs.append((seconds(time, "policy 'lyra': loans"), int(count)))
        if pairs != sorted(pairs) or len({time for time, _ in pairs}) < len(pairs):
            raise UsageError(f"'{text}' is not in order of time", where="policy 'lyra': loans", fix="later times behind earlier ones")
        return Schedule(tuple(time for time, _ in pairs), tuple(count for _, count in pairs))

    def spare(self, now: float, servers: int) -> int:
        """Servers that can be lent now; none before the first time."""
        at = bisect.bisect_right(self.times, now)
        return min(self.servers[at - 1], servers) if at else 0

    def next_change(self, now: float, servers: int) -> float:
        """When another number begins."""
        at = bisect.bisect_right(self.times, now)
        return self.times[at] if at < len(self.times) else math.inf


# Which servers go back, so that the fewest jobs are stopped (Lyra, EuroSys 2023, section 4).
#
# A job that can do without its workers on a server is scaled in there, and costs nothing. One that cannot is stopped as
# a whole; it counts on each of its servers by one over their number, because once it is stopped its other servers are
# free of it.

DevicesByServer = Mapping[int, Mapping[int, int]]  # job -> server -> devices


def cheapest(placed: DevicesByServer, least: Mapping[int, int], servers: Sequence[int], count: int) -> list[int]:
    """Servers by what they cost now, one after the other: the cheapest, then the one with the fewest devices in use, then the first."""
    left = {job: dict(held) for job, held in placed.items()}
    chosen: list[int] = []
    while len(chosen) < min(count, len(servers)):
        cost, used = dict.fromkeys(servers, 0.0), dict.fromkeys(servers, 0)
        for job, held in left.items():
            total = sum(held.values())
            for server, devices in held.items():
                if server in cost:
                    used[server] += devices
                    cost[server] += 0.0 if total - devices >= least[job] else 1.0 / len(held)
        rest = [server for server in servers if server not in chosen]
        best = min(rest, key=lambda server: (round(cost[server], 9), used[server], server))
        chosen.append(best)
        for job in [job for job, held in left.items() if best in held]:
            stays = {server: devices for server, devices in left[job].items() if server != best}
            left[job] = stays if sum(stays.values()) >= least[job] else {}
    return chosen


def fewest_jobs(placed: DevicesByServer, servers: Sequence[int], count: int) -> list[int]:
    """Servers with the fewest jobs on them."""
    jobs = {server: sum(server in held for held in placed.values()) for server in servers}
    return sorted(servers, key=lambda server: (jobs[server], server))[:count]


def at_random(servers: Sequence[int], count: int, draw: np.random.Generator) -> list[int]:
    """Any servers."""
    return [servers[place] for place in draw.permutation(len(servers))[:count].tolist()]


# Extra workers for elastic jobs: a multiple-choice knapsack whose values are the time that they save (Lyra, EuroSys 2023, section 5).


def best_extras(first: Ints, extra: Ints, worth: Floats, capacity: int) -> Ints:
    """How many extra workers each job gets: `extra` of them are worth `worth` to the job whose entries they are; no job has to have any.

    The entries of job j are first[j] to first[j + 1], by rising numbers. A dynamic program; at equal values later jobs get less.
    """
    jobs = len(first) - 1
    if capacity <= 0 or not len(extra):
        return np.zeros(jobs, dtype=np.int64)
    owner = np.repeat(np.arange(jobs), np.diff(first))
    start = np.zeros(len(extra), dtype=bool)
    start[first[:-1][np.diff(first) > 0]] = True
    gain = worth - np.where(start, 0.0, np.roll(worth, 1))
    single = extra == np.where(start, 1, np.roll(extra, 1) + 1)
    falling = start | (gain - np.roll(gain, 1) <= 1e-9)
    if single.all() and falling.all():
        return _best_steps(owner, gain, jobs, capacity)
    use = (worth > 0.0) & (extra <= capacity)
    count = np.bincount(owner[use], minlength=jobs) + 1  # and none at all
    begin = np.concatenate([[0], np.cumsum(count)])
    numbers, values = np.zeros(begin[-1], dtype=np.int64), np.zeros(begin[-1])
    places = np.flatnonzero(~np.isin(np.arange(begin[-1]), begin[:-1]))
    numbers[places], values[places] = extra[use], worth[use]
    choice = np.zeros((jobs, capacity + 1), dtype=np.int16)
    fill_choices(begin, numbers, values, np.arange(jobs), capacity, choice)
    extras, left = np.zeros(jobs, dtype=np.int64), capacity
    for job in range(jobs - 1, -1, -1):
        extras[job] = numbers[begin[job] + int(choice[job, left])]
        left -= int(extras[job])
    return extras


def _best_steps(owner: Ints, gain: Floats, jobs: int, capacity: int) -> Ints:
    """Where each further worker adds no more than the one before, the best steps of all are the answer, and much quicker to find."""
    best = np.argsort(-gain, kind="stable")[:capacity]
    return np.bincount(owner[best[gain[best] > 0.0]], minlength=jobs).astype(np.int64)


# `lyra`: shortest jobs first at their base size, extra workers by a knapsack, on own servers and on servers that are on loan.

_RECLAIM = ("cheapest", "fewest", "random")
PlacedJob = list[Any]  # position of the job, device type, devices: a plain value that can be remembered


@dataclass(frozen=True)
class Lyra(Policy):
    """Jobs start shortest first at their base size; what is left goes to extra workers that save most time.

    Servers of the `lender` are used while they are on loan; those that are called back are chosen so that few jobs are stopped.
    """

    name = "lyra"
    names_devices = True
    paper = "Li, Xu, Zhu, Liu, Guo, Chen: Lyra: Elastic Scheduling for Deep Learning Clusters (EuroSys 2023)"
    needs = frozenset({"remaining"})

    lender: str = parameter("inference", "pool or rack of the servers that may be on loan")
    loans: str = parameter("daily", "'daily': by the load of a day; '0:4,2h:0': so many from then on; 'none'")
    low: float = parameter(0.35, "part of the lender's servers that it needs at night", low=0.0, high=1.0, unit="a part")
    high: float = parameter(0.95, "part that it needs at its peak", low=0.0, high=1.0, unit="a part")
    peak: float = parameter(43_200.0, "when its peak is, in seconds after the start of the day")
    noise: float = parameter(0.05, "deviation of its load, new every five minutes", low=0.0)
    load_seed: int = parameter(0, "seed of that noise")
    elastic: bool = parameter(True, "whether jobs get extra workers")
    reclaim: str = parameter("cheapest", "servers that go back: 'cheapest' (Lyra), 'fewest' jobs, or 'random'", one_of=_RECLAIM)
    resize_cost: float = parameter(0.0, "seconds that a change of size costs, taken off its worth", low=0.0, unit="seconds")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise UsageError(f"low is {self.low:g}, high {self.high:g}", where="policy 'lyra'", fix="give a low that is not above high")
        if self.loans not in ("daily", "none"):
            Schedule.parse(self.loans)

    @property
    def _lent(self) -> DayAndNight | Schedule:
        if self.loans == "daily":
            return DayAndNight(self.low, self.high, self.peak, self.noise, seed=self.load_seed)
        return Schedule((), ()) if self.loans == "none" else Schedule.parse(self.loans)

    def decide(self, snapshot: Snapshot) -> Plan:
        nodes, up = snapshot.cluster.description.nodes, snapshot.cluster.node_up
        theirs = [n for n, node in enumerate(nodes) if self.lender in (node.pool, node.rack) and node.gpus > 0]
        spare = self._lent.spare(snapshot.now, len(theirs))
        until = self._lent.next_change(snapshot.now, len(theirs)) if theirs else math.inf
        memory: dict[str, Any] = snapshot.memory or {}
        lent = [n for n in memory.get("lent", []) if up[n]]
        if len(lent) > spare:
            away = self._away(snapshot, lent, len(lent) - spare)
            lent = [n for n in lent if n not in away]
        lent = sorted([*lent, *[n for n in theirs if up[n] and n not in lent][: spare - len(lent)]])
        usable = {n for n in range(len(nodes)) if up[n] and (n not in theirs or n in lent)}
        found = list(pools(snapshot))
        cause = [snapshot.jobs.rows.tolist(), sorted(usable), [[pool.kind, pool.capacity, *pool.jobs.tolist()] for pool in found]]
        placed = memory["seats"] if memory.get("cause") == cause else [one for pool in found for one in self._pool(pool, usable, lent)]
        on_cpus = np.flatnonzero(snapshot.jobs.gpus == 0).tolist()
        rows = Assignments(
            [*(one[0] for one in placed), *on_cpus],
            type=[*(one[1] for one in placed), *[-1] * len(on_cpus)],
            devices=[*(tuple(one[2]) for one in placed), *[()] * len(on_cpus)],
        )
        return Plan.assign(rows, valid_until=until, memory={"lent": lent, "cause": cause, "seats": placed})

    def _away(self, snapshot: Snapshot, lent: list[int], count: int) -> list[int]:
        """Servers that go back."""
        placed = _held(snapshot)
        if self.reclaim == "cheapest":
            return cheapest(placed, dict(enumerate(snapshot.jobs.min_gpus.tolist())), lent, count)
        return fewest_jobs(placed, lent, count) if self.reclaim == "fewest" else at_random(lent, count, snapshot.rng("reclaim"))

    def _pool(self, pool: Pool, usable: set[int], lent: list[int]) -> list[PlacedJob]:
        """Sizes, then devices, for the jobs of one device type."""
        snapshot, curves, cluster = pool.snapshot, pool.curves, pool.snapshot.cluster
        up, loaned = np.zeros(len(cluster.node_type), dtype=np.bool_), np.zeros(len(cluster.node_type), dtype=np.bool_)
        up[list(usable)], loaned[lent] = True, True
        inside = (up & (cluster.node_type == pool.kind))[cluster.device_node]
        holds = snapshot.jobs.held > 0
        elsewhere = holds.copy()
        elsewhere[pool.jobs] = False
        others = [d for job in np.flatnonzero(elsewhere).tolist() for d in snapshot.jobs.devices(job)]
        open_ = inside.copy()
        open_[others] = False
        capacity, within = int(open_.sum()), inside.tolist()
        held = [[d for d in snapshot.jobs.devices(job) if within[d]] if holds[job] else [] for job in pool.jobs.tolist()]
        base = np.where(curves.count > 0, curves.least, 0)
        runs = np.array([len(devices) >= size > 0 for devices, size in zip(held, base.tolist())], dtype=bool)
        free = capacity - int(base[runs].sum())
        first = np.minimum(curves.first[:-1], max(len(curves.rate) - 1, 0))
        alone = pool.of(snapshot.jobs.remaining) / curves.rate[first] if len(curves.rate) else np.full(len(pool), np.inf)
        for place in np.argsort(alone, kind="stable").tolist():  # shortest first; a job that does not fit is skipped
            if not runs[place] and 0 < base[place] <= free:
                runs[place] = True
                free -= int(base[place])
        extras = np.zeros(len(pool), dtype=np.int64)
        if self.elastic and free > 0:
            first, extra, worth = self._values(pool, runs, alone, np.array([len(devices) for devices in held], dtype=np.int64))
            extras = best_extras(first, extra, worth, free)
        size = np.where(runs, base + extras, 0)
        return _listed(pool, held, place_jobs(cluster.device_node, loaned, open_, held, base, size))

    def _values(self, pool: Pool, runs: Bools, alone: Floats, held: Ints) -> tuple[Ints, Ints, Floats]:
        """Extra workers that jobs may have, and the seconds they save over the base size; what changes a job's size costs."""
        curves = pool.curves
        owner = np.repeat(np.arange(len(pool)), curves.count)
        base = curves.first[:-1][owner]
        grown = runs[owner] & (np.arange(len(owner)) > base)
        owner, base, size, rate = owner[grown], base[grown], curves.size[grown], curves.rate[grown]
        cost = np.where((held[owner] > 0) & (size != held[owner]), self.resize_cost, 0.0)
        first = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(pool)))])
        return first, size - curves.size[base], alone[owner] * (1.0 - curves.rate[base] / rate) - cost


def _listed(pool: Pool, held: list[list[int]], placed: list[list[int]]) -> list[PlacedJob]:
    """The plan lists jobs that shrink first, then those that start, then those that grow."""
    change = [(0 if len(old) > len(new) else 1 if not old else 2) for old, new in zip(held, placed)]
    order = sorted((place for place in range(len(pool)) if placed[place]), key=lambda place: (change[place], place))
    return [[int(pool.jobs[place]), pool.kind, placed[place]] for place in order]


def _held(snapshot: Snapshot) -> dict[int, Counter[int]]:
    """Devices per server of each job that holds some."""
    node = snapshot.cluster.device_node.tolist()
    return {job: Counter(node[d] for d in snapshot.jobs.devices(job)) for job in np.flatnonzero(snapshot.jobs.held > 0).tolist()}
