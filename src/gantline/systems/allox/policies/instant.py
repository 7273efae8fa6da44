"""One instant as AlloX and its baselines see it, and their answer as a plan.

A *kind* is a device type used with devices (``2 x type``) or for its cores alone (``2 x type + 1``), so that an option on a
GPU node that asks for no GPU is another kind of machine. A *resource* is a type's devices, its cores or its memory: three
per type, in that order, since cores of a GPU node are of no use to a job that asks for a CPU node.

A *machine* of the matching is a device. For jobs that run on cores alone it is what the largest such job asks for: a whole
node where nodes are as large as jobs (AlloX' setting), several machines per node otherwise. Totals may suffice where no single node
does, so what is chosen is placed on nodes before it is planned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Device, Job, Node, Option
from gantline.core.errors import UsageError
from gantline.core.host_resources import SLACK, take_beside
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.options import OptionTable
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.core.plan import Assignments, Plan
from gantline.core.snapshot import Snapshot
from gantline.models.sampling import Sampler
from gantline.policies.placement.fit import NodeCounts, choose_first_free, supply_for
from gantline.systems.allox.policies.baselines import Pool, Ways, Worth, firsts
from gantline.systems.allox.policies.decision import Machines, Waiting

#: How often a decision is made again because one of its jobs finds no node; after that such jobs are left out.
_TRIES = 32
#: Estimates that ran out still leave something to do.
_LEAST = 1e-6


def needs_of(table: OptionTable, options: Ints, types: int) -> tuple[Ints, Floats]:
    """The kind of each option, and what it takes of each resource."""
    type_, gpus, each = table.I[Option.TYPE, options], table.I[Option.GPUS, options], np.arange(len(options))
    need = np.zeros((len(options), 3 * types))
    need[each, type_] = gpus
    need[each, types + type_] = table.F[Option.CPUS, options] * np.maximum(gpus, 1)
    need[each, 2 * types + type_] = table.F[Option.MEMORY, options] * np.maximum(gpus, 1)
    return 2 * type_ + (gpus == 0), need


def first_without_place(OF: Floats, OI: Ints, NF: Floats, NI: Ints, options: Ints) -> int:
    """The first of the options, in order, that finds no node with room once the earlier ones are seated; -1: all do.

    What they take is written into the node tables.
    """
    return _place_in_order(OF, OI, NF, NI, options, np.empty(NI.shape[1] + 1, np.int64), np.empty(NI.shape[1] + 1, np.int64))


@kernel
def _place_in_order(OF: Floats, OI: Ints, NF: Floats, NI: Ints, options: Ints, nodes: Ints, counts: Ints) -> int:
    """The same with room for the nodes of one option, and one more."""
    counts_here = NodeCounts(nodes, counts)
    for i in range(options.size):
        o = options[i]
        supply = supply_for(NF, NI, OF, OI, o, False)
        used = choose_first_free(supply, OI[Option.GPUS, o], OI[Option.NODES, o], counts_here)
        if used == 0:
            return i
        for k in range(used):
            NI[Node.FREE, nodes[k]] -= counts[k]
            take_beside(OF, NF, o, nodes[k], max(counts[k], 1))
    return -1


# --- profiling ------------------------------------------------------------------------------------------------------------
# AlloX (EuroSys 2020, section 5) estimates times by two short runs per device, which occupy devices like any other run. They
# come first, in order of arrival, one at a time for each job; a kind of device on which one finds no room is closed to the others
# behind it. A job is matched when all of its are made. What they show is in the estimates (`--estimates sampled:S`); what they do is
# not lost.

PURPOSE = "profile"


def check_profile(profile: bool, preemptive: bool) -> None:
    """Short runs are not preempted, so a preemptive policy cannot make them."""
    if profile and preemptive:
        raise UsageError("short runs would be preempted", where="profile", fix="use a policy that does not preempt, or leave out profile")


class Samples:
    """The short runs of one instant: the jobs that make one now, begin one, and still have to.

    ``made`` says how many each row (as text) has begun; `made` afterwards is what to remember.
    """

    def __init__(self, snapshot: Snapshot, made: Mapping[str, int], sampler: Sampler) -> None:
        self.NF, self.NI, _ = snapshot.cluster.matrices()
        self.types = len(snapshot.cluster.types)
        jobs = snapshot.jobs
        self.limits: dict[int, float] = {}  # of the runs under way, by position
        self.waiting: list[int] = []  # positions that are not to be matched yet
        self.begins: list[tuple[int, int, float]] = []  # position, option and seconds of the runs that begin now
        self.made: dict[str, int] = {}
        self.taken: Floats = np.zeros(3 * self.types)
        self.machines: list[tuple[int, float]] = []  # kind and end of every machine that they take
        closed: set[int] = set()
        for position, row in enumerate(jobs.rows.tolist()):
            begun, first = made.get(str(row), 0), int(jobs.option_first[position])
            grant = jobs.grant(position)
            if grant is not None and grant.assignment.purpose == PURPOSE:
                self.limits[position] = grant.assignment.limit
            elif jobs.phase[position] == PENDING and begun < len(sampler.shares) * int(jobs.option_count[position]):
                self.waiting.append(position)
                way, number = divmod(begun, len(sampler.shares))
                begun += self._begin(snapshot, position, first + way, sampler, sampler.shares[number], closed)
            if begun:
                self.made[str(row)] = begun

    @classmethod
    def after(cls, snapshot: Snapshot) -> Samples:
        """Those of this instant, with what the memory of the last one says under ``samples``."""
        return cls(snapshot, (snapshot.memory or {}).get("samples", {}), Sampler())

    def _begin(self, snapshot: Snapshot, position: int, option: int, sampler: Sampler, share: float, closed: set[int]) -> int:
        """Begin a run if there is room; how many began."""
        jobs, OF, OI = snapshot.jobs, snapshot.options.F, snapshot.options.I
        kinds, needs = needs_of(snapshot.options, np.array([option]), self.types)
        kind, need = int(kinds[0]), needs[0]
        if kind in closed or first_without_place(OF, OI, self.NF, self.NI, np.array([option])) >= 0:
            closed.add(kind)
            return 0
        speed = float(jobs.metric(f"speed.{snapshot.cluster.types[kind // 2]}")[position])
        rate = float(OF[Option.RATE, option]) * (1.0 if np.isnan(speed) else speed)
        seconds = max(sampler.shortest, share * float(jobs.estimate[position]) / rate)
        self.begins.append((position, option - int(jobs.option_first[position]), seconds))
        self.taken += need
        self.machines += [(kind, snapshot.now + seconds)] * max(1, int(need[kind // 2]))
        return 1


@cache
def _worth_and_tier(types: int) -> tuple[Worth, Ints]:
    """Cores of all nodes stand in for each other, and so does memory; devices of different types do not, and are tried before cores."""
    group = np.concatenate((np.arange(types), np.repeat((types, 2 * types), types)))
    return Worth(group, np.ones(3 * types)), np.tile(np.array([0, 1], dtype=np.int64), types)


class Instant:
    """The jobs that stay as they are, those that compete, and what these could have.

    With ``everyone`` jobs that run compete too (preemption) unless their grant is locked, and what they hold counts as free. `ways` are
    the options of those that compete, in order of arrival.
    """

    def __init__(self, snapshot: Snapshot, weights: Mapping[str, float], everyone: bool = False, samples: Samples | None = None) -> None:
        self.snapshot, self.everyone, self.samples = snapshot, everyone, samples
        jobs, self.options = snapshot.jobs, snapshot.options
        self.F, self.I = jobs.matrices()
        self.nodes = NF, NI, _ = snapshot.cluster.matrices()
        self.NF, self.NI = (NF, NI) if samples is None else (samples.NF, samples.NI)
        self.types = len(snapshot.cluster.types)
        competes = jobs.phase == PENDING
        if everyone:
            competes |= ~jobs.locked & ((jobs.phase == STARTING) | (jobs.phase == RUNNING))
        self.staying, self.competing = (~competes).nonzero()[0], competes.nonzero()[0]
        if samples is not None:
            self.competing = self.competing[~np.isin(self.competing, samples.waiting)]
        if everyone:
            self.NF, self.NI = self._vacated(self.competing)
        self._correct = np.ones((self.types, len(jobs)))  # how much faster than listed a job is believed to be on a type
        for code, name in enumerate(snapshot.cluster.types):
            if f"speed.{name}" in jobs.metrics:
                measured = jobs.metric(f"speed.{name}")
                np.copyto(self._correct[code], measured, where=~np.isnan(measured))

        self.worth, self.tier = _worth_and_tier(self.types)
        self._holding = self.staying[self.I[Job.OPTION, self.staying] >= 0]
        # all options of all jobs, and at the end those in use
        count = self.I[Job.OPTION_COUNT]
        job = np.repeat(np.arange(len(jobs)), count)
        option = np.arange(len(job)) + (self.I[Job.OPTION_FIRST] - (np.cumsum(count) - count))[job]
        job, option = np.concatenate((job, self._holding)), np.concatenate((option, self.I[Job.OPTION, self._holding]))
        kind, need = needs_of(self.options, option, self.types)
        rate, listed = self._rate(option, job), len(job) - len(self._holding)
        self._listed = job, option, need, rate
        self._held_kind, self._held_need, self._held_rate = kind[listed:], need[listed:], rate[listed:]
        self._left = np.maximum(jobs.remaining, _LEAST)
        self.pool = self._pool(weights)
        self.arrival = jobs.arrival[self.competing]
        self.ways, self.option = self._ways(job, option, kind, need, rate)

    # --- what there is --------------------------------------------------------------------------------------------------
    def _vacated(self, leaving: Ints) -> tuple[Floats, Ints]:
        """Copies of the node tables as they would be had these jobs nothing."""
        OF, NF, NI, D = self.options.F, self.nodes[0].copy(), self.nodes[1].copy(), self.nodes[2]
        for job in leaving[self.I[Job.OPTION, leaving] >= 0].tolist():
            option = self.I[Job.OPTION, job]
            if self.I[Job.NODE, job] >= 0:
                take_beside(OF, NF, option, self.I[Job.NODE, job], -1)
            for device in self.snapshot.jobs.devices(job):
                node = D[Device.NODE, device]
                NI[Node.FREE, node] += NI[Node.UP, node] * (1 - D[Device.CLOSED, device])
                take_beside(OF, NF, option, node, -1)
        return NF, NI

    def _pool(self, weights: Mapping[str, float]) -> Pool:
        """What there is, what is free, and what the staying jobs of each user hold; users weigh the most that one of their jobs says."""
        jobs, users, up = self.snapshot.jobs, self.snapshot.users, self.NI[Node.UP] == 1
        there = (self.NI[Node.FREE], self.NF[Node.CPUS], self.NF[Node.MEMORY])
        free = np.concatenate([np.bincount(self.NI[Node.TYPE, up], weights=amount[up], minlength=self.types) for amount in there])
        used = np.zeros((len(users), 3 * self.types))
        np.add.at(used, jobs.user[self._holding], self._held_need)
        capacity = np.add.reduce(np.vstack((free, self._held_need)))
        if self.samples is not None:
            capacity += self.samples.taken
        weight = np.zeros(len(users))
        np.maximum.at(weight, jobs.user, jobs.weight)
        weight[weight <= 0.0] = 1.0
        for code, user in enumerate(users):
            weight[code] = weights.get(user, weight[code])
        return Pool(capacity, free, used, weight)

    # --- what the jobs could have ---------------------------------------------------------------------------------------
    def _rate(self, options: Ints, jobs: Ints) -> Floats:
        """The speed of options as these jobs are believed to run."""
        rate: Floats = self.options.F[Option.RATE, options] * self._correct[self.options.I[Option.TYPE, options], jobs]
        return rate

    def _ways(self, job: Ints, option: Ints, kind: Ints, need: Floats, rate: Floats) -> tuple[Ways, Ints]:
        """How the competing jobs could run, and which of their options that is; what the cluster could never give is left out."""
        place = np.full(len(self.snapshot.jobs), -1, dtype=np.int64)
        place[self.competing] = np.arange(len(self.competing))
        possible = (place[job] >= 0) & (rate > 0.0) & np.all(need <= self.pool.capacity + SLACK, axis=1)
        job, option = job[possible], option[possible]
        time = self._left[job] / rate[possible]
        ways = Ways(self.snapshot.jobs.user[self.competing], place[job], kind[possible], time, need[possible])
        return ways, option - self.I[Job.OPTION_FIRST, job]

    # --- the columns of the matching ------------------------------------------------------------------------------------
    def matching(self, ways: Ways) -> tuple[Waiting, Machines, Floats, Ints]:
        """Waiting jobs and machines by kinds, the users' scores, and the way behind each (job, kind)."""
        jobs, kinds = len(ways.owner), 2 * self.types
        way, width = np.full((jobs, kinds), -1, dtype=np.int64), np.ones((jobs, kinds), dtype=np.int64)
        seconds, gain, further = np.full((jobs, kinds), np.inf), np.zeros((jobs, kinds)), np.zeros((jobs, kinds, kinds))
        devices = self._devices(ways.kind, ways.need)
        order = np.lexsort((ways.time * devices, ways.kind, ways.job))  # of one kind the smallest area stands for all
        best = order[firsts(ways.job[order] * kinds + ways.kind[order])]
        job, kind = ways.job[best], ways.kind[best]
        way[job, kind], seconds[job, kind], width[job, kind] = best, ways.time[best], devices[best]
        further[job, kind] = ways.need[best, self.types :]
        fastest = best[ways.only(best).fastest(self.tier)]
        share = np.zeros(jobs)
        share[ways.job[fastest]] = self.worth.dominant_share(ways.need[fastest], self.pool.capacity) * ways.time[fastest]
        gain[job, kind] = share[job] / ways.time[best]
        waiting = Waiting(self.snapshot.jobs.rows[self.competing], ways.owner, self.arrival, seconds, gain, further, width)
        return waiting, self._machines(ways.kind, ways.need), self._scores(), way

    def _devices(self, kind: Ints, need: Floats) -> Ints:
        """How many machines each takes."""
        return np.maximum(1, need[np.arange(len(kind)), kind // 2].astype(np.int64))

    def _machines(self, way_kind: Ints, way_need: Floats) -> Machines:
        """Per machine its kind, when it should be free, and whether it is; idle ones no more than the jobs could fill."""
        types, now = self.types, self.snapshot.now
        unit, wanted, taken = np.zeros(2 * types), np.zeros(2 * types, dtype=np.int64), self._devices(self._held_kind, self._held_need)
        np.add.at(wanted, way_kind, self._devices(way_kind, way_need))
        for kinds, need in ((way_kind, way_need), (self._held_kind, self._held_need)):
            np.maximum.at(unit, kinds, need[np.arange(len(kinds)), types + kinds // 2])
        up = self.NI[Node.UP] == 1
        type_, cores = self.NI[Node.TYPE, up], 2 * self.NI[Node.TYPE, up] + 1
        per = unit[cores]
        fitting = np.where(per > 0.0, (self.NF[Node.CPUS, up] + SLACK) / np.where(per > 0.0, per, 1.0), wanted[cores])
        idle = np.zeros(2 * types, dtype=np.int64)
        np.add.at(idle, 2 * type_, self.NI[Node.FREE, up])
        np.add.at(idle, cores, fitting.astype(np.int64))
        idle = np.minimum(idle, wanted)
        ends = np.maximum(now, self.F[Job.SINCE, self._holding]) + self._left[self._holding] / self._held_rate
        sampled = [] if self.samples is None else self.samples.machines
        kind = np.concatenate((np.repeat(np.arange(2 * types), idle), np.repeat(self._held_kind, taken), [kind for kind, _ in sampled]))
        release = np.concatenate((np.full(idle.sum(), now), np.repeat(ends, taken), [end for _, end in sampled]))
        return Machines(kind.astype(np.int64), release, np.arange(len(kind)) < idle.sum(), self.pool.free[types:])

    def _scores(self) -> Floats:
        """What the running jobs of each user add up to: each the dominant share of its fastest way, as much less as it runs slower."""
        job, option, need, rate = self._listed
        order = np.lexsort((option != self.I[Job.OPTION, job], self.options.I[Option.GPUS, option] == 0, -rate, job))
        best = order[firsts(job[order])]  # of equally fast ways that with devices
        holds = np.zeros(len(self.I[Job.OPTION]), dtype=np.bool_)
        holds[self._holding] = True
        best = best[holds[job[best]]]
        fast, score = rate[best], np.zeros(len(self.pool.weight))
        share = self.worth.dominant_share(need[best], self.pool.capacity)
        runs = fast > 0.0
        np.add.at(score, self.snapshot.jobs.user[self._holding[runs]], share[runs] * self._held_rate[runs] / fast[runs])
        return score

    # --- the answer -----------------------------------------------------------------------------------------------------
    def place(self, choose: Callable[[Ways], Ints]) -> Ints:
        """The ways that start, in order, such that each finds room on nodes; `choose` is asked again without one that does not."""
        kept = np.arange(len(self.ways.job))
        for _ in range(_TRIES):
            chosen = kept[choose(self.ways if len(kept) == len(self.ways.job) else self.ways.only(kept))]
            bad = self._without_place(chosen)
            if bad < 0:
                return chosen
            kept = kept[kept != chosen[bad]]
        while bad >= 0:
            chosen = np.delete(chosen, bad)
            bad = self._without_place(chosen)
        return chosen

    def _without_place(self, chosen: Ints) -> int:
        """The first of the chosen ways that finds no node, beside jobs that run already in the way chosen for them; -1: all do."""
        if not len(chosen):
            return -1
        places = self.competing[self.ways.job[chosen]]
        option = self.I[Job.OPTION_FIRST, places] + self.option[chosen]
        moving = self.I[Job.OPTION, places] != option
        NF, NI = self.NF.copy(), self.NI.copy()
        if self.everyone:
            NF, NI = self._vacated(self.competing[~np.isin(self.competing, places[~moving])])
        bad = first_without_place(self.options.F, self.options.I, NF, NI, option[moving])
        return bad if bad < 0 else int(np.flatnonzero(moving)[bad])

    def plan(self, chosen: Ints, **rest: Any) -> Plan:
        """Jobs that stay keep what they have, short runs begin, and the chosen ways start."""
        samples = self.samples
        begins = np.array([] if samples is None else samples.begins).reshape(-1, 3)  # position, option and seconds of a run that begins
        job = np.concatenate((self.staying, begins[:, 0].astype(np.int64), self.competing[self.ways.job[chosen]]))
        keeps = (self.I[Job.OPTION] - self.I[Job.OPTION_FIRST])[self.staying]
        option = np.concatenate((keeps, begins[:, 1].astype(np.int64), self.option[chosen]))
        if samples is None or not (samples.limits or samples.begins):
            return Plan.assign(Assignments(job, option=option), **rest)
        limits = [samples.limits.get(position, np.inf) for position in self.staying.tolist()]
        limit = np.concatenate((limits, begins[:, 2], np.full(len(chosen), np.inf)))
        purpose = tuple("train" if np.isinf(seconds) else PURPOSE for seconds in limit.tolist())
        return Plan.assign(Assignments(job, option=option, limit=limit, purpose=purpose), **rest)
