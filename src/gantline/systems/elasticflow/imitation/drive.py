"""The loop of `--regime elasticflow`: reads jobs, runs ElasticFlow or one of its baselines, writes the result
(docs/design/elasticflow.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from gantline.core.columns import Job, Option
from gantline.core.errors import RefusedError, UsageError
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.core.tables import Tables
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import DeviceCalendar, HeldInterval, write_intervals, write_jobs
from gantline.systems.elasticflow.imitation.gandiva import CLASSES, GandivaRun
from gantline.systems.elasticflow.imitation.rigid import RigidJobs, ThemisRun, TiresiasRun
from gantline.systems.elasticflow.imitation.rounds import ElasticFlowClock, ElasticFlowJobs, ElasticFlowOutcome
from gantline.systems.elasticflow.policies.settings import DeadlinePolicy
from gantline.traces.trace import Trace

_RIGID: dict[str, Callable[..., TiresiasRun | GandivaRun | ThemisRun]] = {
    "tiresias": TiresiasRun,
    "gandiva": GandivaRun,
    "themis": ThemisRun,
}
_WHERE = "--regime elasticflow"
_LEVELS = 16  # up to 32,768 GPUs for one job


def drive(simulation: Simulation, trace: Trace) -> dict[str, Any]:
    """Run the trace to its end by the artifact's rules and leave the result in the simulation's tables and log."""
    state, policy = simulation.state, simulation.engine.policy
    if not isinstance(policy, DeadlinePolicy):
        return _drive_rigid(simulation, trace)
    _refuse_what_it_has_not(simulation)
    cluster, chosen = state.tables.cluster, policy.settled()
    _refuse_other_overhead(policy, chosen)
    jobs = read_jobs(state.tables, trace, chosen.scale_limit == "knee")
    clock = ElasticFlowClock(jobs, chosen, cluster.gpus, max(node.gpus for node in cluster.nodes), state.regime.round)
    clock.on_round = simulation.on_progress
    clock.run()
    simulation.engine.decisions = clock.rounds
    return write_result(simulation, clock.outcome(), chosen.judge == "exact")


def _drive_rigid(simulation: Simulation, trace: Trace) -> dict[str, Any]:
    """Run one of the baselines that give jobs what they ask for and ignore deadlines."""
    state, policy = simulation.state, simulation.engine.policy
    name, limits = policy.name, tuple(getattr(policy, "limits", ()))
    _refuse_what_it_has_not(simulation)
    cluster = state.tables.cluster
    jobs = read_rigid_jobs(state.tables, trace)
    _refuse_what_never_runs(name, state.tables, jobs, max(node.gpus for node in cluster.nodes))
    size = cluster.gpus, max(node.gpus for node in cluster.nodes), state.regime.round
    run = TiresiasRun(jobs, *size, limits) if name == "tiresias" else _RIGID[name](jobs, *size)
    run.on_round = simulation.on_progress
    run.run()
    simulation.engine.decisions = run.rounds
    return write_result(simulation, run.outcome(), False)


def read_rigid_jobs(tables: Tables, trace: Trace) -> RigidJobs:
    """Sizes and durations as they were asked for; speeds at that size, for Themis."""
    known = read_jobs(tables, trace, False)
    size = tables.I[Job.GPUS].copy()
    duration = trace.frame["duration"].cast(pl.Float64).to_numpy().astype(np.float64)
    level = np.minimum(np.log2(size).astype(np.int64), _LEVELS - 1)
    found = known.speed[np.arange(len(size)), level]
    speed = np.where((2**level == size) & (found > 0.0), found, known.iterations / np.maximum(duration, 1e-9))
    return RigidJobs(known.arrival, known.deadline, size, duration, known.iterations, speed)


def _refuse_what_never_runs(name: str, tables: Tables, jobs: RigidJobs, per_node: int) -> None:
    """Refuse jobs that cannot start: Gandiva and Themis would go on for ever; Tiresias ends with them unfinished."""
    size = jobs.gpus
    never = np.zeros(len(size), dtype=bool)
    if name == "gandiva":
        never = ~np.isin(size, CLASSES) | (-(-size // per_node) * per_node > tables.cluster.gpus)
    elif name == "themis":
        never = size > tables.cluster.gpus
    if never.any():
        row = int(np.argmax(never))
        why = f"job '{tables.ids[row]}' asks for {int(size[row])} GPUs, and the original's {name} would wait for ever"
        raise RefusedError(why, where=_WHERE, fix="use a larger cluster, or leave such jobs out")


def read_jobs(tables: Tables, trace: Trace, knee: bool) -> ElasticFlowJobs:
    """Iterations, speeds and limits: exactly those of an imported trace, else from the options."""
    F, rows = tables.F, tables.F.shape[1]
    speed = np.zeros((rows, _LEVELS))
    exact = {"throughputs", "work"} <= set(trace.frame.columns)
    if exact:
        work = trace.frame["work"].to_numpy().astype(np.float64)
        for row, cell in enumerate(trace.frame["throughputs"].cast(pl.String).to_list()):
            for part in cell.split("|"):
                size, _, value = part.partition("=")
                speed[row, int(size).bit_length() - 1] = float(value)
    else:
        work = F[Job.WORK].copy()
        owner = np.repeat(np.arange(rows), tables.I[Job.OPTION_COUNT])
        for row, size, rate in zip(owner.tolist(), tables.options.I[Option.GPUS].tolist(), tables.options.F[Option.RATE].tolist()):
            if size > 0 and size & (size - 1) == 0:
                speed[row, size.bit_length() - 1] = rate
    able = speed > 0.0
    if not able.any(axis=1).all():
        row = int(np.argmin(able.any(axis=1)))
        raise UsageError(f"job '{tables.ids[row]}' has no size that is a power of two", where=_WHERE, fix="it knows 1, 2, 4, ... GPUs only")
    top = _LEVELS - 1 - np.argmax(able[:, ::-1], axis=1)
    if knee:
        top = np.argmax(speed, axis=1)
        if "scale_limit" in trace.frame.columns:
            limit = trace.frame["scale_limit"].cast(pl.Int64).to_numpy()
            fits = able & (2 ** np.arange(_LEVELS) <= limit[:, None])
            top = np.where(fits.any(axis=1), _LEVELS - 1 - np.argmax(fits[:, ::-1], axis=1), top)
    deadline = np.where(np.isnan(F[Job.DEADLINE]), np.inf, F[Job.DEADLINE])
    return ElasticFlowJobs(F[Job.ARRIVAL].copy(), deadline, work, speed, top.astype(np.int64))


def _refuse_other_overhead(policy: DeadlinePolicy, chosen: DeadlinePolicy) -> None:
    """Its seconds are its own, and without admission its EDF charges none."""
    if policy.overhead not in ("auto", "artifact", "none"):
        raise RefusedError("has seconds of its own for a change of size", where=f"{_WHERE}, overhead", fix="use auto, artifact or none")
    if policy.overhead == "artifact" and not chosen.elastic and chosen.admission == "off":
        raise RefusedError("its edf charges nothing without admission", where=f"{_WHERE}, overhead", fix="set admission=single, or none")


def _refuse_what_it_has_not(simulation: Simulation) -> None:
    state = simulation.state
    if not state.regime.round > 0:
        raise RefusedError("needs the length of a slot", where=_WHERE, fix="--round 240, as the artifact has it")
    if len({node.type for node in state.tables.cluster.nodes}) > 1:
        raise RefusedError("knows one device type only", where=_WHERE, fix="a cluster such as a100:16x8")


# Writes the result of the imitation into the tables and the log of a run.


def write_result(simulation: Simulation, found: ElasticFlowOutcome, exact: bool) -> dict[str, Any]:
    """Starts, ends, verdicts and intervals; `finish` is the end as the artifact records it, GPUs are held until the round that sees it."""
    t, n = simulation.state.tables, len(found.start)
    table = np.array(found.spans, dtype=np.float64).reshape(-1, 5)
    job, start, end, gpus = table[:, 0].astype(np.int64), table[:, 1], table[:, 2], table[:, 4]
    done, again = ~np.isnan(found.ended), np.zeros(n, dtype=np.int64)
    order = np.lexsort((start, job))
    gap = (job[order][1:] == job[order][:-1]) & (start[order][1:] > end[order][:-1])
    np.add.at(again, job[order][1:][gap], 1)
    write_jobs(
        simulation, service=np.bincount(job, weights=end - start, minlength=n), first_start=found.start, restarts=again,
        finish=np.where(done, found.end, np.nan), gpu_time=np.bincount(job, weights=(end - start) * gpus, minlength=n),
        unfinished=np.where(found.rejected, int(Phase.REJECTED), int(Phase.PENDING)),
    )  # fmt: skip
    simulation.state.now = float(end.max(initial=0.0))
    _write_log(simulation, found)
    judged = found.exact if exact and found.exact is not None else found.end
    met = done & (judged <= found.deadline)
    t.verdicts["met"] = np.where(np.isinf(found.deadline), np.nan, met.astype(np.float64))
    if found.exact is not None:
        t.verdicts["exact_end"] = np.where(done, found.exact, np.nan)
    due = np.isfinite(found.deadline)
    accepted = int((met & due).sum())
    declined = int(found.rejected.sum() + (done & due & ~met).sum())
    ratio = accepted / (accepted + declined) if accepted + declined else None
    fields: dict[str, Any] = {"admitted": int(n - found.rejected.sum()), "rejected": int(found.rejected.sum()), "rounds": found.rounds}
    fields |= {"deadlines_met": accepted, "deadlines_declined": declined, "late_admitted": int((done & due & ~met).sum())}
    return fields | {"deadline_ratio": ratio}


def _write_log(simulation: Simulation, found: ElasticFlowOutcome) -> None:
    """Each span with its ranks as devices; baselines only count GPUs, and get the lowest that are free."""
    t = simulation.state.tables
    calendar, intervals = DeviceCalendar(t.D.shape[1]), []
    for row, begin, end, first, gpus in sorted(found.spans, key=lambda span: (span.start, span.job)):
        option = int(t.I[Job.OPTION_FIRST, row])
        option += int(np.argmax(t.options.I[Option.GPUS, option : option + int(t.I[Job.OPTION_COUNT, row])] == gpus))
        devices = range(first, first + gpus) if first >= 0 else calendar.take(gpus, begin, end)
        reason = Reason.FINISHED if end == found.ended[row] else Reason.RESIZED
        intervals.append(HeldInterval(row, begin, end, devices, reason, option))
    write_intervals(simulation, intervals)
