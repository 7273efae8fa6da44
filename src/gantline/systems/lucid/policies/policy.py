"""`lucid`: jobs by estimated GPU time, two of them on the same devices where measurements say that they hardly disturb each other."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from gantline.core.columns import Option
from gantline.core.errors import RefusedError, UsageError
from gantline.core.plan import Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.models.pair_model import SCORE_NAMES, PairModel
from gantline.systems.lucid.policies.grant_columns import GrantColumns
from gantline.systems.lucid.policies.profiler import ProfilerShare
from gantline.systems.lucid.policies.seats import FreeSeats
from gantline.systems.lucid.policies.submissions import BIN, SubmissionCounts

REPAIRS = ("guest", "loan", "profile", "second")


class Host(NamedTuple):
    """A job that runs alone on devices of one node."""

    position: int
    devices: tuple[int, ...]


@dataclass(frozen=True)
class Lucid(Policy):
    """Least estimated GPU time first; small jobs are profiled first, and two may share devices. No job is stopped for another.

    The default is what the paper means: a job is profiled before it joins the queue, both jobs of a pair go at full speed when they are
    alone again, borrowed nodes come back once, and speeds of pairs that were not measured are estimated (`performance/pair_table.py`).
    """

    name: ClassVar[str] = "lucid"
    names_devices: ClassVar[bool] = True
    paper: ClassVar[str] = (
        "Hu et al.: Lucid, A Non-intrusive, Scalable and Interpretable Scheduler for Deep Learning Training Jobs, ASPLOS 2023"
    )
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})
    ties: ClassVar[str] = "equal GPU time: the earlier arrival first, then the order of the trace; hosts: the one that started first"

    profile: float = field(
        default=200.0, metadata=about("seconds for which a job runs to be profiled; 0: none does", low=0.0, finite=True, unit="seconds")
    )
    profiler_nodes: int = field(
        default=1, metadata=about("nodes that profile, the last of the cluster; none where it has fewer than four", low=0)
    )
    widest: int = field(default=8, metadata=about("GPUs of the largest job that is profiled", low=1))
    most_score: int = field(default=2, metadata=about("what the sharing scores (0, 1, 2) of two jobs may sum up to", low=0, high=4))
    reach: float = field(
        default=2.0, metadata=about("a job joins one of at least its own estimated GPU time divided by this", above=0.0, finite=True)
    )
    quiet: float = field(default=2.0, metadata=about("jobs expected in ten minutes, up to which none share devices", low=0.0, finite=True))

    repair: tuple[str, ...] = field(default=(), metadata={"help": f"regime lucid: slips that are repaired: {', '.join(REPAIRS)}"})

    def __post_init__(self) -> None:
        super().__post_init__()
        for word in self.repair:
            if word not in REPAIRS:
                raise UsageError(f"no slip is called '{word}'", where="policy 'lucid'", fix=f"repair {', '.join(REPAIRS)}")

    def for_regime(self, regime: str) -> Policy:
        if self.repair and regime != "lucid":
            raise RefusedError("only regime lucid has slips to repair", where="policy 'lucid'", fix="leave 'repair' out")
        return self

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs = snapshot.jobs
        memory = snapshot.memory or {}
        submissions = SubmissionCounts.seen_in(snapshot, memory.get("submissions", {}))
        expected_jobs, expected_gpus = submissions.expected(snapshot.now)
        seats, profiler = FreeSeats(snapshot), ProfilerShare.now(snapshot, self.profiler_nodes, memory.get("borrowed", -1))
        fresh = np.isnan(jobs.first_start) & (jobs.gpus <= self.widest) & ~jobs.running & (self.profile > 0.0) & bool(profiler.own)
        fresh &= profiler.holds(seats, snapshot.options, jobs.option_first)
        profiler = profiler.resized(seats, int(fresh.sum()), expected_gpus <= 5.0 * self.widest)
        granted = GrantColumns()
        granted.keep(snapshot, np.flatnonzero(jobs.running).tolist())
        pairs = snapshot.performance if isinstance(snapshot.performance, PairModel) else None
        queue = _Queue(snapshot, seats, profiler, pairs if expected_jobs > self.quiet else None, self)
        waiting = np.flatnonzero(~jobs.running & ~fresh)
        queue.start(waiting[np.argsort((jobs.estimate * jobs.gpus)[waiting], kind="stable")].tolist(), granted)
        if not queue.blocked_by_wide:
            newcomers = np.flatnonzero(fresh)
            self._try(snapshot, seats, profiler, newcomers[np.argsort(jobs.gpus[newcomers], kind="stable")].tolist(), granted)
        until = (math.floor(snapshot.now / BIN) + 1.0) * BIN if len(granted) < len(jobs) else math.inf
        return Plan.assign(
            granted.assignments(), valid_until=until, memory={"submissions": submissions.remembered(), "borrowed": profiler.borrowed}
        )

    def _try(self, snapshot: Snapshot, seats: FreeSeats, profiler: ProfilerShare, order: list[int], granted: GrantColumns) -> None:
        """Trials of newcomers on the profiler's nodes, fewest GPUs first, until one does not fit."""
        for position in order:
            option = snapshot.jobs.options(position)[0]
            devices = seats.take(option, profiler.nodes)
            if devices is None:
                break
            granted.add(position, 0, devices, purpose="trial", limit=self.profile)

    def summary_of(self, model: object, seed: int) -> dict[str, object]:
        """The tree that scores configurations which are in no measured pair."""
        return {"sharing_tree": model.tree.lines(SCORE_NAMES)} if isinstance(model, PairModel) else {}


class _Queue:
    """The walk over jobs that wait, in order."""

    def __init__(self, snapshot: Snapshot, seats: FreeSeats, profiler: ProfilerShare, pairs: PairModel | None, rules: Lucid) -> None:
        self.jobs, self.seats, self.pairs, self.rules = snapshot.jobs, seats, pairs, rules
        self.node, self.type, self.options = snapshot.cluster.device_node, snapshot.cluster.node_type, snapshot.options
        models = [snapshot.models[code] for code in self.jobs.model.tolist()]
        self.names = [pairs.configuration(job, model) for job, model in zip(self.jobs.ids, models)] if pairs and pairs.of_job else models
        self.everywhere = range(snapshot.cluster.nodes)
        self.main = [node for node in self.everywhere if node not in profiler.nodes]
        self.room = int(seats.node_gpus[self.main].sum())
        self.gpu_time = self.jobs.estimate * self.jobs.gpus
        self.memory = np.nan_to_num(self.jobs.metric("device_memory"))
        capacity = np.array(snapshot.cluster.device_memory)[snapshot.cluster.node_type]
        self.capacity = np.where(capacity > 0.0, capacity, math.inf)  # per node; infinity: not stated
        self.blocked_by_wide = False
        self.scores = [2] * len(self.jobs)
        self.hosts: dict[int, list[Host]] = {}
        if pairs is not None:
            self.scores = [pairs.sharing_score(name) for name in self.names]
            for host in self._hosts_now():
                self.hosts.setdefault(len(host.devices), []).append(host)

    def _hosts_now(self) -> list[Host]:
        """Jobs that run alone on devices which others may share, the one that started first at the head."""
        jobs, holders = self.jobs, dict[tuple[int, ...], list[int]]()
        for position in np.flatnonzero(jobs.running).tolist():
            grant = jobs.grant(position)
            if grant is not None and grant.assignment.mode == Mode.SPACE:
                holders.setdefault(grant.assignment.devices, []).append(position)
        alone = [Host(each[0], devices) for devices, each in holders.items() if len(each) == 1]
        return sorted(alone, key=lambda host: (jobs.last_start[host.position], jobs.rows[host.position]))

    def start(self, order: list[int], granted: GrantColumns) -> None:
        """Start what can be started. While jobs share, those that cannot are passed by; otherwise the first of them ends the walk."""
        in_vain: set[tuple[object, ...]] = set()
        demands = self._demands()
        for position in order:
            host = self._host_of(position)
            if host is not None:
                granted.add(position, 0, host.devices, Mode.SPACE)
                continue
            alike = demands[position]
            if alike in in_vain or not self._start_alone(position, granted):
                in_vain.add(alike)
                if self.pairs is None:
                    break

    def _demands(self) -> list[tuple[object, ...]]:
        """What tells whether two jobs need the same; jobs with several options are like no other."""
        first, single = self.jobs.option_first, self.jobs.option_count == 1
        kinds, gpus = (self.options.I[row][first].tolist() for row in (Option.TYPE, Option.GPUS))
        cpus, memory = (self.options.F[row][first].tolist() for row in (Option.CPUS, Option.MEMORY))
        own = np.where(single, -1, np.arange(len(self.jobs))).tolist()
        return list(zip(own, kinds, gpus, cpus, memory))

    def _host_of(self, position: int) -> Host | None:
        """The first job that this one may join; it is alone no longer."""
        hosts = self.hosts.get(int(self.jobs.gpus[position]), [])
        for place, host in enumerate(hosts):
            if self.scores[position] + self.scores[host.position] > self.rules.most_score:
                continue
            if self.memory[position] + self.memory[host.position] > self.capacity[self.node[host.devices[0]]]:
                continue
            if self.gpu_time[position] <= self.rules.reach * self.gpu_time[host.position] and not self._apart(position, host):
                return hosts.pop(place)
        return None

    def _apart(self, position: int, host: Host) -> bool:
        """Whether the two are known to make no progress together."""
        assert self.pairs is not None  # else there are no hosts
        kind = int(self.type[self.node[host.devices[0]]])
        return self.pairs.kept(self.names[position], self.names[host.position], kind, len(host.devices)) == 0.0

    def _start_alone(self, position: int, granted: GrantColumns) -> bool:
        """Give it devices of its own, by the first of its options for which there is room; on one node others may join it."""
        for way, option in enumerate(self.jobs.options(position)):
            if option.gpus == 0:
                granted.add(position, way, ())
                return True
            wide = option.gpus > self.room
            devices = self.seats.take(option, self.everywhere if wide else self.main)
            if devices is None:
                self.blocked_by_wide |= wide
                continue
            one_node = len({int(self.node[device]) for device in devices}) == 1
            granted.add(position, way, devices, Mode.SPACE if one_node else Mode.EXCLUSIVE)
            if one_node and self.pairs is not None:
                self.hosts.setdefault(len(devices), []).append(Host(position, devices))
            return True
        return False
