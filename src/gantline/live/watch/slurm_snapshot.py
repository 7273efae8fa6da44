"""A snapshot of a Slurm cluster, with Slurm's own order as the policy in force.

Nodes that differ in what may run on them (partition, and features that some job asks for) become types of their own, so that a job's
options say where it may go. What the snapshot cannot hold is counted in notes.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gantline.core.arrays import Floats
from gantline.lab.questions.newcomers import tell_how_others_come
from gantline.live.watch.slurm_state import SlurmJob, SlurmNode, SlurmState
from gantline.live.watch.watched import ClusterLook, Document, left_out_notes
from gantline.models.uncertainty import FEWEST
from gantline.traces.importers.slurm import seconds_of

WAITS = ("PENDING", "REQUEUED")
_READY = ("Resources", "Priority", "None", "", "BeginTime", "ReqNodeNotAvail", "Nodes_required_for_job_are_DOWN")
_YEAR = 365 * 86_400.0  # what Slurm's backfill takes for a job without a limit
_PLAIN_FEATURE = re.compile(r"^[\w.\-]+(?:[&,][\w.\-]+)*$|^[\w.\-]+(?:\|[\w.\-]+)*$")


def watched(state: SlurmState, earlier: Mapping[str, SlurmJob] | None = None) -> ClusterLook:
    """The snapshot, the policy in force, and what jobs of the past have shown; `earlier` are those of earlier looks, by id."""
    return _Builder(state, SlurmPast(state, earlier or {})).build()


@dataclass
class _Builder:
    state: SlurmState
    past: SlurmPast

    def __post_init__(self) -> None:
        state, features = self.state, {job.feature for job in self.state.jobs if job.feature}
        words = {word for text in features for word in re.split(r"[&,|]", text)}
        self.kinds = _type_names(state.nodes, words)
        self.left_out: Counter[str] = Counter()
        self.types: dict[tuple[object, ...], list[str]] = {}
        self.free: dict[str, list[int]] = {}
        self.zero = min([state.now, *(job.submitted for job in state.jobs if job.submitted)])
        place = 0
        for node in state.nodes:
            self.free[node.name] = list(range(place, place + node.gpus))
            place += node.gpus

    def build(self) -> ClusterLook:
        state, now = self.state, self.state.now - self.zero
        runs = [job for job in state.jobs if job.state in RUNS]
        waits = sorted((job for job in state.jobs if job.state in WAITS), key=_age)
        entries = [entry for job in runs if (entry := self._running(job)) is not None]
        entries += [entry for job in waits if (entry := self._waiting(job)) is not None]
        snapshot: Document = {
            "kind": "snapshot", "version": 1, "now": now, "cluster": {"nodes": [self._node(node) for node in state.nodes]}, "jobs": entries,
            "down": [node.name for node in state.nodes if node.is_down],
            "cordoned": sorted(device for node in state.nodes if node.is_closed and not node.is_down for device in self._devices(node)),
            "windows": self._windows(), "unestimated": [job.id for job in (*runs, *waits) if self._limit(job) == _YEAR],
        }  # fmt: skip
        names = {entry["id"] for entry in entries}
        snapshot["unestimated"] = [name for name in snapshot["unestimated"] if name in names]
        return ClusterLook(
            "slurm",
            self.state.now,
            self.zero,
            snapshot,
            "slurm",
            self._settings(),
            self.past.shares,
            tuple(self._notes()),
            self._queue(waits, names),
            self.past.run_times,
            self._coming(),
        )

    # --- the cluster ----------------------------------------------------------------------------------------------------
    def _node(self, node: SlurmNode) -> Document:
        found = {"name": node.name, "type": self.kinds[node.name], "gpus": node.gpus, "cpus": node.cpus}
        return {**found, "memory": node.memory} if self.state.counts_memory else found

    def _devices(self, node: SlurmNode) -> range:
        first = 0
        for one in self.state.nodes:
            if one.name == node.name:
                return range(first, first + one.gpus)
            first += one.gpus
        return range(0)

    def _windows(self) -> list[Document]:
        known, now = {node.name for node in self.state.nodes}, self.state.now
        return [
            {"name": one.name, "start": one.start - self.zero, "end": one.end - self.zero, "places": hosts, "users": list(one.users)}
            for one in self.state.reservations
            if one.end > max(now, one.start) and (hosts := [host for host in one.hosts if host in known])
        ]

    # --- jobs -----------------------------------------------------------------------------------------------------------
    def _limit(self, job: SlurmJob) -> float:
        bounds = [job.limit, *(self.state.partitions[name].longest for name in job.partitions if name in self.state.partitions)]
        return next((bound for bound in bounds if bound), _YEAR)

    def _entry(self, job: SlurmJob, types: Sequence[str]) -> Document:
        share = job.gpus or 1
        amounts = {"cpus": job.cpus / share} | ({"memory": job.memory / share} if self.state.counts_memory else {})
        options = [{"type": kind, "gpus": job.gpus, "rate": 1.0, "nodes": job.nodes if job.gpus else 0, **amounts} for kind in types]
        tiers = [self.state.partitions[name].tier for name in job.partitions if name in self.state.partitions]
        return {
            "id": job.id, "gpus": job.gpus, "user": job.user, "queue": job.partitions[0],
            "arrival": min(job.eligible, self.state.now) - self.zero, "priority": self._standing(job), "estimate": self._limit(job),
            "options": options, "metrics": {"partition_tier": max(tiers, default=1.0)},
        }  # fmt: skip

    def _running(self, job: SlurmJob) -> Document | None:
        hosts = [host for host in job.hosts if host in self.free]
        if not hosts or job.started is None:
            return self._leave_out("run where Slurm does not say")
        if not job.gpus and len(hosts) > 1:
            return self._leave_out("run on the CPUs of several nodes")
        each, more = divmod(job.gpus, len(hosts))
        devices: list[int] = []
        for place, host in enumerate(hosts):
            wanted = each + (place < more)
            if len(self.free[host]) < wanted:
                return self._leave_out("hold GPUs that the snapshot has given to others (shared ones, or MPS)")
            devices += self.free[host][:wanted]
            self.free[host] = self.free[host][wanted:]
        spent = max(self.state.now - job.started, 0.0)
        entry = self._entry(job, list(dict.fromkeys(self.kinds[host] for host in hosts))[:1])
        entry["options"][0]["nodes"] = len(hosts) if job.gpus else 0
        where: Document = {"devices": devices} if devices else {"node": hosts[0]}
        return {**entry, **where, "service": spent, "estimate": max(entry["estimate"], spent + 1.0)}

    def _waiting(self, job: SlurmJob) -> Document | None:
        if job.reason not in _READY:
            return self._leave_out(f"wait for something else than room ({job.reason})")
        if not job.gpus and job.nodes > 1:
            return self._leave_out("ask for the CPUs of several nodes")
        if job.narrowed:
            return self._leave_out("ask for particular nodes or a reservation")
        if job.feature and not _PLAIN_FEATURE.match(job.feature):
            return self._leave_out("ask for features in a way that is not read")
        types = self._types_of(job)
        return self._entry(job, types) if types else self._leave_out("fit no node of their partition")

    def _types_of(self, job: SlurmJob) -> list[str]:
        """The types of node on which a job may run."""
        asked = (job.partitions, job.gpus, job.nodes, job.type, job.cpus, job.feature)
        if asked not in self.types:  # few jobs ask differently
            admits = self._admits(job)
            self.types[asked] = list(dict.fromkeys(self.kinds[node.name] for node in self.state.nodes if admits(node)))
        return self.types[asked]

    def _queue(self, waits: Sequence[SlurmJob], known: set[str]) -> tuple[str, ...]:
        """Those that wait in Slurm's order: tier, priority, the older first."""
        tiers = {name: one.tier for name, one in self.state.partitions.items()}

        def rank(job: SlurmJob) -> tuple[float, float]:
            return -max((tiers.get(name, 1.0) for name in job.partitions), default=1.0), -job.priority

        return tuple(job.id for job in sorted(waits, key=rank) if job.id in known)

    def _admits(self, job: SlurmJob) -> Callable[[SlurmNode], bool]:
        open_ones = {name for name in job.partitions if name in self.state.partitions and self.state.partitions[name].is_up}
        each = -(-job.gpus // job.nodes)
        some = set(job.feature.split("|")) if "|" in job.feature else set()
        every = set(re.split(r"[&,]", job.feature)) if job.feature and not some else set()

        def admits(node: SlurmNode) -> bool:
            fits = node.gpus >= each and (not job.type or job.type == node.type) and node.cpus * job.nodes >= job.cpus
            return (
                fits
                and not open_ones.isdisjoint(node.partitions)
                and every <= node.features
                and (not some or not some.isdisjoint(node.features))
            )

        return admits

    def _leave_out(self, why: str) -> Document | None:
        """Nothing, and one more for that reason."""
        self.left_out[why] += 1
        return None

    # --- Slurm's settings -----------------------------------------------------------------------------------------------
    def _settings(self) -> Document:
        config, parameters = self.state.config, self.state.parameters
        found: Document = {
            "age_weight": self._age_weight,
            "max_age": self._max_age,
            "fill": config.get("SchedulerType", "") != "sched/builtin",
        }
        if parameters.get("bf_max_job_test", "").isdigit():
            found["depth"] = max(int(parameters["bf_max_job_test"]), 1)
        if parameters.get("bf_window", "").isdigit():
            found["window"] = max(int(parameters["bf_window"]), 1) * 60.0
        return found

    @cached_property
    def _age_weight(self) -> float:
        weight = self.state.config.get("PriorityWeightAge", "")
        return float(weight) if weight.isdigit() and self.state.config.get("PriorityType", "") == "priority/multifactor" else 0.0

    @cached_property
    def _max_age(self) -> float:
        return seconds_of(self.state.config.get("PriorityMaxAge", "") or "7-0") or 604_800.0

    def _standing(self, job: SlurmJob) -> float:
        """Its priority without what its age adds, up to its start; Slurm cuts priorities to whole numbers."""
        until = self.state.now if job.started is None or job.state in WAITS else job.started
        age = max(min((until - job.eligible) / self._max_age, 1.0), 0.0)
        return job.priority - math.floor(self._age_weight * age)

    # --- what is known of the past --------------------------------------------------------------------------------------
    def _coming(self) -> tuple[Document, ...]:
        """The latest arrivals, of which those that may still come are drawn; none, where they are too few for that."""
        found = []
        for job in self.past.arrivals():
            if (types := self._types_of(job)) and not job.narrowed:
                entry = self._entry(job, types)
                del entry["id"]
                found.append({**entry, "arrival": job.submitted - self.zero})
        return tuple(found) if tell_how_others_come([entry["arrival"] for entry in found]) else ()

    def _notes(self) -> list[str]:
        found = left_out_notes(self.left_out)
        config = self.state.config
        if config.get("PreemptType", "preempt/none") != "preempt/none":
            found.append(f"preemption ({config['PreemptType']}) is not followed: no job that runs is stopped for another")
        if any(
            float(config.get(f"PriorityWeight{name}", "") or 0)
            for name in ("FairShare", "Assoc")
            if config.get(f"PriorityWeight{name}", "").isdigit()
        ):
            found.append("fair-share parts of priorities stay as they are now")
        if any(node.weight != self.state.nodes[0].weight for node in self.state.nodes):
            found.append("weights of nodes are not followed: the first with room are taken")
        return found


def _type_names(nodes: Sequence[SlurmNode], words: set[str]) -> dict[str, str]:
    """The type of each node: that of its GPUs, with its partitions and features where nodes of one type differ in them."""
    classes: Mapping[str, set[tuple[tuple[str, ...], tuple[str, ...]]]] = defaultdict(set)
    marks = {node.name: (node.partitions, tuple(sorted(node.features & words))) for node in nodes}
    for node in nodes:
        classes[node.type].add(marks[node.name])
    found = {}
    for node in nodes:
        partitions, features = marks[node.name]
        differs = len(classes[node.type]) > 1
        found[node.name] = ".".join((node.type, *partitions, *features)) if differs else node.type
    return found


def _age(job: SlurmJob) -> tuple[float, list[int]]:
    """Jobs of one second come in the order of their numbers."""
    return job.eligible, [int(number) for number in re.findall(r"\d+", job.id)]


# What Slurm shows of jobs that have come and gone: squeue for a while after their end, sacct for a week, and earlier
# looks.
#
# From them follow how much of their limits jobs use, and how others will come.

RUNS = ("RUNNING", "COMPLETING", "CONFIGURING", "STAGE_OUT")
_ENDED = ("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED", "NODE_FAIL")
_SUBMISSIONS = 200  # the latest of which the next ones are drawn; an array is one
_MOST = 2000  # jobs in them


@dataclass(frozen=True)
class SlurmPast:
    """The jobs of a look, of accounting and of earlier looks, by id."""

    state: SlurmState
    earlier: Mapping[str, SlurmJob] = field(default_factory=dict)

    @cached_property
    def jobs(self) -> Iterable[SlurmJob]:
        """Each as it was last seen."""
        listed = {job.id: job for job in self.state.jobs}
        return ({**self.earlier, **{job.id: job for job in self.state.past}} | listed).values()

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """The shares of their limits that jobs use, each as likely as the others."""
        running = [
            (self.state.now - job.started) / job.limit
            for job in self.state.jobs
            if job.state in RUNS and job.started and job.limit and self.state.now > job.started
        ]
        return shares_of_limits(self._ended, running)

    @property
    def run_times(self) -> str:
        """What is known of run times, in words."""
        known = len(self._ended)
        if known >= FEWEST:
            return f"run times are known of {known} ended jobs"
        if known:
            return f"run times are known of {known} ended jobs only: {FEWEST} of any length up to the limit are counted with them"
        return "run times are known of no ended job: any up to the limit is as likely"

    @cached_property
    def _ended(self) -> list[float]:
        return [
            (job.ended - job.started) / job.limit
            for job in self.jobs
            if job.state in _ENDED and job.started is not None and job.ended and job.limit and job.ended > job.started
        ]

    def arrivals(self) -> list[SlurmJob]:
        """The jobs that were submitted last, in order."""
        known = sorted((job for job in self.jobs if job.submitted), key=lambda job: job.submitted)[-_MOST:]
        instants = sorted({job.submitted for job in known})[-_SUBMISSIONS:]
        return [job for job in known if job.submitted >= instants[0]]


# How much of their time limits jobs use, from those that have ended and those that still run.
#
# A running job says that its share is larger than what it has used so far. Without it only short jobs would count
# where accounting is young: the long ones have not ended. The product-limit estimate takes both (Kaplan and Meier,
# "Nonparametric Estimation from Incomplete Observations", JASA 1958); what it leaves beyond the last end is spread
# evenly up to the limit, where Slurm ends every job.

_PLACES = 256  # shares that stand for an estimate, at least


def shares_of_limits(ended: Sequence[float], running: Sequence[float]) -> tuple[float, ...]:
    """Shares that are equally likely, in rising order: as seen, and as of a few jobs more of which any share is as likely."""
    imagined = (np.arange(FEWEST) + 1) / FEWEST  # few ended jobs do not show how long jobs can be
    known: Floats = np.sort(np.append(np.minimum(np.asarray(ended, dtype=np.float64), 1.0), imagined))
    open_ones: Floats = np.sort(np.minimum(np.asarray(running, dtype=np.float64), 1.0))
    if not len(open_ones):
        return tuple(np.round(known, 6).tolist())
    at, ends = np.unique(known, return_counts=True)
    at_risk = len(known) - np.searchsorted(known, at) + len(open_ones) - np.searchsorted(open_ones, at)
    passed: Floats = np.cumprod(1.0 - ends / at_risk, dtype=np.float64)  # the share of jobs that use more than `at`
    return tuple(np.round(_evenly(at, passed, max(_PLACES, len(known))), 6).tolist())


def _evenly(at: Floats, passed: Floats, count: int) -> Floats:
    """The estimate as so many shares of equal weight."""
    left = 1.0 - (np.arange(count) + 0.5) / count  # by how many jobs each is passed
    place = np.searchsorted(-passed, -left)
    beyond = place == len(at)
    found = at[np.minimum(place, len(at) - 1)]
    rest = float(passed[-1])
    found[beyond] = 1.0 - (1.0 - at[-1]) * left[beyond] / rest if rest > 0 else at[-1]
    return found
