"""The loop of `--regime lucid`: each virtual cluster by itself, after a phase of profiling that all of them share; and its result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError, TraceError, listed
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import HeldInterval, write_intervals, write_jobs
from gantline.systems.lucid.imitation.baselines import QuotaWalk, run_in_order
from gantline.systems.lucid.imitation.jobs import GPUS, LucidJob, LucidNodes, LucidOutcome, VirtualCluster, jobs_of
from gantline.systems.lucid.imitation.pairing import PairingJob, PairingPhase, Repairs
from gantline.systems.lucid.imitation.profiling import NodeLender, NodeLoan, ProfilerNodes, SharingSwitch, SubmissionForecast
from gantline.systems.lucid.policies.policy import Lucid
from gantline.systems.lucid.traces import LucidProfiles
from gantline.traces.trace import Trace

_PROFILERS = ("vc8Gr", "vcefl")
"""Virtual clusters that give a node each to the profiler, for the whole run."""
_LENDER = "vcYVn"
_FEW_JOBS = 2.0  # expected in ten minutes: sharing is off
_NEGATIVE = 1000.0  # seconds, in place of a negative prediction

Devices = dict[str, list[list[int]]]
"""Virtual cluster -> the devices of each of its nodes."""


def drive(simulation: Simulation, trace: Trace) -> dict[str, object]:
    """Run the trace by the rules of Lucid's simulator."""
    jobs, devices = jobs_of(trace), _devices(simulation.state.tables.cluster)
    known = [job for job in jobs if job.vc in devices]
    outcomes = [LucidOutcome() for _ in jobs]
    policy = simulation.engine.policy.name
    loans: Sequence[NodeLoan] = ()
    progress = _Progress(outcomes, simulation.on_progress)
    if policy == "lucid":
        assert isinstance(simulation.engine.policy, Lucid)
        repairs = simulation.engine.policy.repair
        passes, loans = _run_lucid(_asked(trace, known, _profiles(simulation)), devices, progress, _profiles(simulation), repairs)
    else:
        predicted = _predicted(_profiles(simulation), "lgb", known) if policy == "qssf" else {}
        passes = _run_baseline(policy, known, devices, progress, predicted)
    write_result(simulation, jobs, outcomes, {job.row for job in known})
    simulation.engine.decisions = passes
    found = _queueing(outcomes)
    if policy == "lucid":
        found["loans"] = [list(loan) for loan in loans]
    return found | ({"unknown_vc": len(jobs) - len(known)} if len(known) < len(jobs) else {})


class _Progress:
    """What has become of jobs, reported whenever a virtual cluster is through."""

    def __init__(self, outcomes: Sequence[LucidOutcome], report: Callable[[float, int, int], None] | None) -> None:
        self.outcomes, self._report = outcomes, report
        self._time, self._came, self._open = 0, 0, 0

    def clusters(self, jobs: Sequence[LucidJob], devices: Devices) -> Iterator[VirtualCluster]:
        """The virtual clusters with their jobs, one after the other."""
        own: dict[str, list[LucidJob]] = {name: [] for name in devices}
        for job in jobs:
            own[job.vc].append(job)
        for name, each in devices.items():
            yield VirtualCluster(name, LucidNodes(each), own[name])
            ends = [self.outcomes[job.row].end for job in own[name]]
            self._time, self._came = max([self._time, *ends]), self._came + len(ends)
            self._open += sum(end < 0 for end in ends)
            if self._report is not None:
                self._report(self._time, self._came, self._open)


def _queueing(outcomes: Sequence[LucidOutcome]) -> dict[str, object]:
    """Mean and P99.9 of the time in queues as the original counts it, over jobs that have started."""
    waits = sorted(one.waited for one in outcomes if one.start >= 0)
    if not waits:
        return {}
    return {"average_queueing": sum(waits) / len(waits), "p999_queueing": waits[int(0.999 * len(waits))]}


def _run_baseline(policy: str, jobs: Sequence[LucidJob], devices: Devices, progress: _Progress, predicted: Mapping[int, float]) -> int:
    passes, outcomes = 0, progress.outcomes
    for cluster in progress.clusters(jobs, devices):
        if policy in ("srtf", "tiresias"):
            passes += QuotaWalk(cluster, outcomes, by_service=policy == "tiresias").run()
        elif policy == "qssf":
            passes += run_in_order(cluster, outcomes, key=lambda job: predicted[job.row] * job.gpus, newcomers=lambda job: job.gpus)
        else:
            passes += run_in_order(cluster, outcomes, key=lambda job: job.duration if policy == "sjf" else job.submit)
    return passes


def _run_lucid(
    asked: Mapping[int, PairingJob], devices: Devices, progress: _Progress, profiles: LucidProfiles, repairs: Repairs
) -> tuple[int, Sequence[NodeLoan]]:
    """Profile first, then the main phase of each virtual cluster; how many passes there were, and what was lent."""
    missing = [name for name in (*_PROFILERS, _LENDER) if name not in devices]
    if missing:
        fix = f"name clusters {listed((*_PROFILERS, _LENDER))} in --cluster, or use the default regime"
        raise RefusedError(f"no virtual cluster '{missing[0]}', of which Lucid's profiler has a node", where="--regime lucid", fix=fix)
    jobs, outcomes = [one.job for one in asked.values()], progress.outcomes
    lent = devices[_LENDER][-1]
    profiler = ProfilerNodes([devices[name][-1] for name in _PROFILERS], lent, SubmissionForecast(profiles.expected("pred_gpu_num")))
    passes = profiler.run(jobs, outcomes)
    left = {name: each[:-1] if name in _PROFILERS else each for name, each in devices.items()}
    sharing = SharingSwitch(SubmissionForecast(profiles.expected("pred_gpu_job")), _FEW_JOBS)
    for cluster in progress.clusters(jobs, left):
        lender = NodeLender(profiler.loans, lent, only_lent="loan" in repairs) if cluster.name == _LENDER else None
        inside = [_entering(asked[job.row], outcomes[job.row], repairs) for job in cluster.jobs if not outcomes[job.row].done_in_profiling]
        passes += PairingPhase(cluster, inside, outcomes, profiles, sharing, lender, repairs).run()
    return passes, profiler.loans


def _entering(one: PairingJob, found: LucidOutcome, repairs: Repairs) -> PairingJob:
    """A job of the main phase; where that is repaired, it enters once its profile is known."""
    return one._replace(enters=found.profile_end) if "profile" in repairs and found.profiled else one


def _asked(trace: Trace, jobs: Sequence[LucidJob], profiles: LucidProfiles) -> dict[int, PairingJob]:
    """Priority and configuration of every job."""
    frame, predicted = trace.frame, _predicted(profiles, "ebm", jobs)
    keys = frame["model"].to_list() if "model" in frame.columns else [""] * frame.height
    memory = frame["gmem"].to_list() if "gmem" in frame.columns else [None] * frame.height
    found = {}
    for job in jobs:
        config = profiles.configurations.get(keys[job.row])
        if config is None:
            raise trace.fault(job.row, "model", f"trains '{keys[job.row]}', which is not measured", "add it to single_data.csv")
        own = memory[job.row]
        if own is not None:
            config = config._replace(memory=float(own))
        expected = predicted[job.row]
        found[job.row] = PairingJob(job, (_NEGATIVE if expected < 0 else expected) * job.gpus, config, job.submit)
    return found


def _predicted(profiles: LucidProfiles, model: str, jobs: Sequence[LucidJob]) -> Mapping[int, float]:
    """The predicted duration of every job, by row."""
    known = profiles.predicted(model)
    for job in jobs:
        if job.name not in known:
            fix = "add a row job_id,priority, or use the default regime, which learns from jobs that have ended"
            raise TraceError(f"no prediction for job '{job.name}'", file=str(profiles.duration_file(model)), fix=fix)
    return {job.row: known[job.name] for job in jobs}


def _profiles(simulation: Simulation) -> LucidProfiles:
    if not isinstance(simulation.profiles, LucidProfiles):
        raise RefusedError("needs measurements and predictions", where="--regime lucid", fix="give --profiles DIR with Lucid's files")
    return simulation.profiles


def _devices(cluster: Cluster) -> Devices:
    """The devices of each virtual cluster, which are the pools of the cluster."""
    found: Devices = {}
    for number, node in enumerate(cluster.nodes):
        if node.gpus != GPUS or not node.pool:
            fix = "give --cluster VC_CONFIG.csv (name,nodes), or a YAML file with pools of nodes that have 8 GPUs"
            what = f"node '{node.name}' has {node.gpus} GPUs" if node.gpus != GPUS else f"node '{node.name}' is of no pool"
            raise RefusedError(f"{what}; Lucid's simulator has virtual clusters of nodes with 8", where="--cluster", fix=fix)
        first = int(cluster.first_device[number])
        found.setdefault(node.pool, []).append(list(range(first, first + GPUS)))
    return found


# What Lucid's simulator found out, in the tables and the log of a run, and a row per job as the original reports it.


def write_result(simulation: Simulation, jobs: Sequence[LucidJob], outcomes: Sequence[LucidOutcome], known: Collection[int]) -> None:
    """Fill in starts, ends, service and intervals; jobs of virtual clusters that the cluster does not have were never let in."""
    start, end = (np.array([getattr(one, name) for one in outcomes], dtype=np.float64) for name in ("start", "end"))
    let_in = np.isin(np.arange(len(jobs)), list(known))
    write_jobs(
        simulation, service=[sum(spell.end - spell.begin for spell in one.spells) for one in outcomes],
        first_start=np.where(start >= 0, start, np.nan), finish=np.where(end >= 0, end, np.nan),
        restarts=[one.preemptions for one in outcomes],
        unfinished=np.where(let_in, int(Phase.PENDING), int(Phase.REJECTED)),
    )  # fmt: skip
    simulation.state.now = float(end.max(initial=0.0))
    intervals = [
        HeldInterval(job.row, *spell, Reason.FINISHED if spell.end == one.end else Reason.PREEMPTED)
        for job, one in zip(jobs, outcomes)
        for spell in one.spells
    ]
    write_intervals(simulation, sorted(intervals, key=lambda interval: interval.begin))
    simulation.pieces = _frame(jobs, outcomes)


def _frame(jobs: Sequence[LucidJob], outcomes: Sequence[LucidOutcome]) -> pl.DataFrame:
    """A row per job. `queueing` is the original's: a wait for the profiler counts beside the wait in the main phase."""
    return pl.DataFrame(
        {
            "job": [job.name for job in jobs],
            "queue": [job.vc for job in jobs],
            "gpus": [job.gpus for job in jobs],
            "arrival": [job.submit for job in jobs],
            "duration": [job.duration for job in jobs],
            "first_start": [_time(one.start) for one in outcomes],
            "finish": [_time(one.end) for one in outcomes],
            "jct": [_time(one.end) and one.end - job.submit for job, one in zip(jobs, outcomes)],
            "queueing": [one.waited for one in outcomes],
            "preemptions": [one.preemptions for one in outcomes],
            "profiled": [one.profiled for one in outcomes],
            "profiling_wait": [one.profiling_wait for one in outcomes],
            "done_in_profiling": [one.done_in_profiling for one in outcomes],
            "nodes": [one.nodes for one in outcomes],
            "partners": [" ".join(dict.fromkeys(change.partner for change in one.changes if change.partner)) for one in outcomes],
            "rate_changes": [";".join(f"{at}:{rate:g}:{partner}" for at, rate, partner in one.changes) for one in outcomes],
        },
        schema_overrides={"first_start": pl.Int64, "finish": pl.Int64, "jct": pl.Int64},
    )


def _time(second: int) -> int | None:
    return second if second >= 0 else None
