"""The loop of `--regime sia`: reads the trace, runs Sia, a baseline or a recorded table in the clock of Sia's simulator
(docs/policies/sia.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from gantline.core.cluster import Cluster
from gantline.core.errors import UsageError, near
from gantline.core.policy import Policy
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.registry import profiles_of, profiles_summary
from gantline.engine.policy_failures import Incident
from gantline.models.goodput.measured import Application, Profiles
from gantline.policies.node_classes import NodeClass, node_classes
from gantline.policies.recorded import Recorded
from gantline.systems.gavel.policies.finish_policies import FinishTimeFairness
from gantline.systems.gavel.policies.sum_policies import MaxSumThroughputPerf
from gantline.systems.pollux.policies import Pollux
from gantline.systems.shockwave.policies import Shockwave
from gantline.systems.sia.imitation.deciding import Assumptions, SiaScheduler
from gantline.systems.sia.imitation.jobs import Fitter, Kind, MeasuredType, SiaJob, SiaRequest, charges_of
from gantline.systems.sia.imitation.pollux_unaware import PolluxScheduler
from gantline.systems.sia.imitation.rounds import RoundScheduler, SiaRounds, write_result
from gantline.systems.sia.imitation.schedulers import GavelScheduler, RecordedScheduler, ShockwaveScheduler, ThemisScheduler
from gantline.systems.sia.policies.policy import FITS, Sia
from gantline.systems.sia.policies.program import Configurations
from gantline.traces.trace import Trace

# A trace, measured profiles and a cluster as Sia's simulator sees them: jobs of four kinds, and where each may run.


#: Batches that the artifact gives an application whatever the workload says, unless all jobs are tuned.
PINNED_BATCH: Mapping[str, int] = {"ncf": 32768}

_COLUMNS = ("app", "model", "kind", "type", "stages", "reserved", "batch_size", "weight")


def read_jobs(
    trace: Trace,
    profiles: Profiles,
    classes: tuple[NodeClass, ...],
    fitter: Fitter,
    assumed: float,
    *,
    tuned: bool = False,
    unaware: bool = False,
) -> list[SiaJob]:
    """The jobs in the order of the trace; one that can run nowhere is refused. Tuned jobs all keep the GPUs and the batch of the trace."""
    frame = trace.frame
    cells = {name: frame[name].to_list() if name in frame.columns else [None] * len(frame) for name in _COLUMNS}
    seen: dict[tuple[str, str, str], dict[str, MeasuredType]] = {}
    jobs = []
    base = zip(frame["job"].to_list(), frame["arrival"].to_list(), frame["gpus"].to_list(), strict=True)
    for row, (name, arrival, gpus) in enumerate(base):
        cell = {key: values[row] for key, values in cells.items()}
        if tuned and cell["kind"] != "hybrid":
            cell["kind"] = "rigid"
        application = _application(profiles, cell, trace, row)
        if not tuned and application.name in PINNED_BATCH:
            cell["batch_size"] = PINNED_BATCH[application.name]
        asked = _request(row, name, arrival, gpus, application.name, cell)
        key = application.name, asked.kind, cell["stages"] or ""
        if key not in seen:
            seen[key] = _types(application, classes, asked.kind == "hybrid", _stages(key[2]))
        job = SiaJob(asked, application, seen[key], charges_of(application.name, assumed), fitter, unaware=unaware)
        _check(job, classes, trace, row)
        jobs.append(job)
    return jobs


def _application(profiles: Profiles, cell: dict[str, Any], trace: Trace, row: int) -> Application:
    """The application by the column ``app`` or, where there is no profile of that name, ``model``."""
    names = [name for name in (cell["app"], cell["model"]) if name]
    for name in names:
        if name in profiles.applications:
            return profiles[name]
    if not names:
        raise trace.fault(row, "app", "does not say which application it is", "name a folder of --profiles in the column app")
    return profiles[names[0]]  # the error names what is missing


def _request(row: int, name: str, arrival: float, gpus: int, application: str, cell: dict[str, Any]) -> SiaRequest:
    reserved = cell["reserved"] or ""
    kept = (reserved.partition(":")[0], int(reserved.partition(":")[2])) if reserved else None
    kind = cast(Kind, cell["kind"] or "adaptive")
    batch, weight = float(cell["batch_size"] or 0), float(cell["weight"] or 1.0)
    return SiaRequest(row, name, arrival, application, kind, int(gpus), batch, weight, cell["type"] or "", kept)


def _stages(text: str) -> dict[str, int]:
    return {part.partition(":")[0]: int(part.partition(":")[2]) for part in text.split("|") if part}


def _types(application: Application, classes: tuple[NodeClass, ...], hybrid: bool, stages: dict[str, int]) -> dict[str, MeasuredType]:
    """The GPU types of the cluster on which it was measured."""
    kinds = dict.fromkeys(one.type for one in classes)
    return {kind: MeasuredType(application, kind, hybrid=hybrid, stages=stages.get(kind, 0)) for kind in kinds if application.runs_on(kind)}


def _check(job: SiaJob, classes: tuple[NodeClass, ...], trace: Trace, row: int) -> None:
    """Refuse a job that no configuration of the cluster suits."""
    asked, have = job.asked, [one for one in classes if one.type in job.types]
    if not have:
        kinds = ", ".join(dict.fromkeys(one.type for one in classes))
        raise trace.fault(row, "app", f"is '{asked.application}', which has no profile on {kinds}", "add one, or use another --cluster")
    if asked.only:
        have = [one for one in have if one.type == asked.only]
        if not have:
            raise trace.fault(row, "type", f"asks for '{asked.only}', which the cluster or its profile does not have", "leave type empty")
    if asked.kind == "rigid" and all(one.gpus < asked.gpus for one in have):
        raise trace.fault(row, "gpus", f"asks for {asked.gpus} GPUs, more than any type has", "use a larger --cluster")
    units = [job.types[one.type].unit for one in have]
    if all(one.gpus < unit for one, unit in zip(have, units, strict=True)):
        raise trace.fault(row, "app", f"needs {min(units)} GPUs of a type for one replica", "use a larger --cluster")
    fits = [job.types[one.type].local_least <= job.training.most for one in have]
    if not any(fits):
        raise trace.fault(
            row, "app", "has no batch that fits: the least per GPU is above the largest validated in all", "check its profiles"
        )
    if asked.reserved is not None:
        kind, gpus = asked.reserved
        if not any(one.type == kind and one.gpus >= gpus for one in have):
            raise trace.fault(row, "reserved", f"reserves {gpus} GPUs of '{kind}', which it cannot have", "reserve less, or another type")


def classes_of(cluster: Cluster) -> tuple[NodeClass, ...]:
    """The classes of the cluster's nodes with GPUs."""
    found = node_classes(cluster)
    if not found:
        raise UsageError("has no GPUs", where=f"cluster '{cluster}'", fix="write for example rtx:3x8,dgx-ext:2x8")
    return found


# The loop of `--regime sia`: Sia, or a recorded table of decisions, in the clock of Sia's simulator (docs/policies/sia.md).

_WHERE = "--regime sia"


def drive(simulation: Simulation, trace: Trace) -> dict[str, Any]:
    """Run the trace to its end and leave the result in the simulation's tables and log; the summary holds the errors of beliefs."""
    policy, state = simulation.engine.policy, simulation.state
    if not state.regime.round > 0:
        raise UsageError("rounds take no time", where="--round", fix="use 60")
    profiles = profiles_of(simulation, trace, _WHERE)
    fitter = Fitter(getattr(policy, "fit", "artifact"))
    if fitter.method not in FITS:
        raise UsageError(f"parameter 'fit' is '{fitter.method}'", where=f"policy '{policy.name}'", fix=near(fitter.method, FITS))
    classes = classes_of(state.tables.cluster)
    tuned = isinstance(policy, (MaxSumThroughputPerf, FinishTimeFairness, Shockwave))
    unaware = isinstance(policy, Pollux)
    jobs = read_jobs(trace, profiles, classes, fitter, getattr(policy, "restart", 30.0), tuned=tuned, unaware=unaware)
    rounds = SiaRounds(
        jobs,
        classes,
        _scheduler(policy, jobs, classes, state.seed, state.regime.round),
        interval=state.regime.round,
        sticky=getattr(policy, "placement", "sticky") == "sticky",
        until=simulation.until,
        on_progress=simulation.on_progress,
    )
    rounds.run()
    if rounds.stalled:
        incident = Incident(rounds.now, rounds.decisions, "jobs wait, but none was given anything for long: given up")
        simulation.engine.incidents.append(incident)
    write_result(simulation, rounds)
    there = np.array(rounds.contention or [0])
    summary = {
        "contention_mean": float(there.mean()),
        "contention_max": int(there.max()),
        "estimates": "fitted",
        "fit": fitter.method,
        "placement": "sticky" if rounds.sticky else "fast",
        "free_stops": False,  # restarts are charged by the network
    }
    return summary | fitter.summary() | profiles_summary(simulation)


def _scheduler(policy: Policy, jobs: list[SiaJob], classes: tuple[NodeClass, ...], seed: int, length: float) -> RoundScheduler:
    if isinstance(policy, Recorded):
        return RecordedScheduler(policy.table, jobs, classes)
    if isinstance(policy, Pollux):
        return PolluxScheduler(classes, policy, seed)
    if isinstance(policy, MaxSumThroughputPerf):
        return GavelScheduler(classes)
    if isinstance(policy, FinishTimeFairness):
        return ThemisScheduler(classes)
    if isinstance(policy, Shockwave):
        return ShockwaveScheduler(classes, policy, length)
    if isinstance(policy, Sia):
        sizes = [job.asked.gpus for job in jobs if job.asked.kind == "rigid"]
        sizes += [job.asked.reserved[1] for job in jobs if job.asked.reserved is not None]
        columns = Configurations.of(classes, sizes)
        return SiaScheduler(columns, policy.p, policy.lambda_n, Assumptions(policy.projection, policy.share_limit, policy.batch_cap))
    raise TypeError(f"no scheduler for policy '{policy.name}'")  # the scope names those that have one
