"""`lucid`: jobs by estimated GPU time, two of them on the same devices where measurements say that they hardly disturb each other; and
`qssf`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import RefusedError, UsageError
from gantline.core.options import Option
from gantline.core.plan import Assignment, Misfit, Mode, Plan
from gantline.core.policy import OrderPolicy, Policy, parameter
from gantline.core.snapshot import Snapshot
from gantline.models.sharing.pair_model import SCORE_NAMES, PairModel
from gantline.systems.lucid.policies.profiler import BIN, FreeByNode, ProfilerShare, SubmissionCounts

REPAIRS = ("guest", "loan", "profile", "second")


class Host(NamedTuple):
    """A job that runs alone on devices of one node."""

    position: int
    devices: tuple[int, ...]


@dataclass(frozen=True)
class Lucid(Policy):
    """Least estimated GPU time first; small jobs are profiled first, and two may share devices. No job is stopped for another.

    The default is what the paper means: a job is profiled before it joins the queue, both jobs of a pair go at full speed when they are
    alone again, borrowed nodes come back once, and speeds of pairs that were not measured are estimated (`models/sharing/pair_table.py`).
    """

    name = "lucid"
    names_devices = True
    paper = "Hu et al.: Lucid, A Non-intrusive, Scalable and Interpretable Scheduler for Deep Learning Training Jobs, ASPLOS 2023"
    needs = frozenset({"remaining"})
    ties = "equal GPU time: the earlier arrival first, then the order of the trace; hosts: the one that started first"

    profile: float = parameter(200.0, "seconds for which a job runs to be profiled; 0: none does", low=0.0, finite=True, unit="seconds")
    profiler_nodes: int = parameter(1, "nodes that profile, the last of the cluster; none where it has fewer than four", low=0)
    widest: int = parameter(8, "GPUs of the largest job that is profiled", low=1)
    most_score: int = parameter(2, "what the sharing scores (0, 1, 2) of two jobs may sum up to", low=0, high=4)
    reach: float = parameter(2.0, "a job joins one of at least its own estimated GPU time divided by this", above=0.0, finite=True)
    quiet: float = parameter(2.0, "jobs expected in ten minutes, up to which none share devices", low=0.0, finite=True)

    repair: tuple[str, ...] = parameter((), f"regime lucid: slips that are repaired: {', '.join(REPAIRS)}")

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
        free_devices, profiler = FreeByNode(snapshot), ProfilerShare.now(snapshot, self.profiler_nodes, memory.get("borrowed", -1))
        fresh = np.isnan(jobs.first_start) & (jobs.gpus <= self.widest) & ~jobs.running & (self.profile > 0.0) & bool(profiler.own)
        fresh &= profiler.holds(free_devices, snapshot.options, jobs.option_first)
        profiler = profiler.resized(free_devices, int(fresh.sum()), expected_gpus <= 5.0 * self.widest)
        granted = [_kept(snapshot, position) for position in np.flatnonzero(jobs.running).tolist()]
        pairs = snapshot.performance if isinstance(snapshot.performance, PairModel) else None
        queue = _Queue(snapshot, free_devices, profiler, pairs if expected_jobs > self.quiet else None, self)
        waiting = np.flatnonzero(~jobs.running & ~fresh)
        queue.start(waiting[np.argsort((jobs.estimate * jobs.gpus)[waiting], kind="stable")].tolist(), granted)
        if not queue.blocked_by_wide:
            newcomers = np.flatnonzero(fresh)
            self._try(snapshot, free_devices, profiler, newcomers[np.argsort(jobs.gpus[newcomers], kind="stable")].tolist(), granted)
        until = (math.floor(snapshot.now / BIN) + 1.0) * BIN if len(granted) < len(jobs) else math.inf
        return Plan.assign(granted, valid_until=until, memory={"submissions": submissions.remembered(), "borrowed": profiler.borrowed})

    def _try(
        self, snapshot: Snapshot, free_devices: FreeByNode, profiler: ProfilerShare, order: list[int], granted: list[Assignment]
    ) -> None:
        """Trials of newcomers on the profiler's nodes, fewest GPUs first, until one does not fit."""
        for position in order:
            option = snapshot.jobs.options(position)[0]
            devices = free_devices.take(option, profiler.nodes)
            if devices is None:
                break
            granted.append(Assignment(position, option=0, devices=devices, purpose="trial", limit=self.profile))

    def summary_of(self, model: object, seed: int) -> dict[str, object]:
        """The tree that scores configurations which are in no measured pair."""
        return {"sharing_tree": model.tree.lines(SCORE_NAMES)} if isinstance(model, PairModel) else {}


def _kept(snapshot: Snapshot, position: int) -> Assignment:
    """What a job has, asked for again."""
    grant = snapshot.jobs.grant(position)
    if grant is None:
        return Assignment(position, option=int(snapshot.jobs.option[position]))
    held = grant.assignment
    return Assignment(position, option=held.option, devices=held.devices, mode=held.mode, purpose=held.purpose, limit=held.limit)


class _Queue:
    """The walk over jobs that wait, in order."""

    def __init__(
        self, snapshot: Snapshot, free_devices: FreeByNode, profiler: ProfilerShare, pairs: PairModel | None, rules: Lucid
    ) -> None:
        self.jobs, self.free_devices, self.pairs, self.rules = snapshot.jobs, free_devices, pairs, rules
        self.node, self.type, self.options = snapshot.cluster.device_node, snapshot.cluster.node_type, snapshot.options
        models = [snapshot.models[code] for code in self.jobs.model.tolist()]
        self.names = [pairs.configuration(job, model) for job, model in zip(self.jobs.ids, models)] if pairs and pairs.of_job else models
        self.everywhere = range(snapshot.cluster.nodes)
        self.main = [node for node in self.everywhere if node not in profiler.nodes]
        self.room = int(free_devices.node_gpus[self.main].sum())
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

    def start(self, order: list[int], granted: list[Assignment]) -> None:
        """Start what can be started. While jobs share, those that cannot are passed by; otherwise the first of them ends the walk."""
        in_vain: set[tuple[Option, ...]] = set()
        for position in order:
            host = self._host_of(position)
            if host is not None:
                granted.append(Assignment(position, option=0, devices=host.devices, mode=Mode.SPACE))
                continue
            alike = tuple(self.jobs.options(position))
            if alike in in_vain or not self._start_alone(position, granted):
                in_vain.add(alike)
                if self.pairs is None:
                    break

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

    def _start_alone(self, position: int, granted: list[Assignment]) -> bool:
        """Give it devices of its own, by the first of its options for which there is room; on one node others may join it."""
        for variant, option in enumerate(self.jobs.options(position)):
            if option.gpus == 0:
                granted.append(Assignment(position, option=variant))
                return True
            wide = option.gpus > self.room
            devices = self.free_devices.take(option, self.everywhere if wide else self.main)
            if devices is None:
                self.blocked_by_wide |= wide
                continue
            one_node = len({int(self.node[device]) for device in devices}) == 1
            granted.append(Assignment(position, option=variant, devices=devices, mode=Mode.SPACE if one_node else Mode.EXCLUSIVE))
            if one_node and self.pairs is not None:
                self.hosts.setdefault(len(devices), []).append(Host(position, devices))
            return True
        return False


# Quasi-Shortest-Service-First (Helios, SC 2021, section 4.2): the job with the least predicted GPU time first; running jobs stay.


@dataclass(frozen=True)
class QuasiShortestServiceFirst(OrderPolicy):
    """Least predicted GPU time first; running jobs stay, and no job passes one that does not fit (QSSF)."""

    name = "qssf"
    paper = "Hu et al.: Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU Datacenters (SC 2021)"
    needs = frozenset({"remaining"})
    preempt = False
    misfit = Misfit.STOP

    def key(self, snapshot: Snapshot) -> Floats:
        return snapshot.jobs.estimate * snapshot.jobs.gpus

    def valid_until(self, snapshot: Snapshot) -> float:
        return math.inf
