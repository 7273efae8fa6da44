"""The loop of `--regime pollux`: Tiresias, Optimus and Pollux in the clock of Pollux' simulator (docs/policies/pollux.md)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError, TraceError, UsageError
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.registry import profiles_of, profiles_summary
from gantline.engine.policy_failures import Incident
from gantline.models.goodput.measured import Profiles
from gantline.systems.optimus.policies.policy import Optimus
from gantline.systems.pollux.imitation.deciders import LIMIT, OptimusInPollux, PolluxInItsSimulator, TiresiasInPollux
from gantline.systems.pollux.imitation.jobs import PolluxApplication, PolluxJob
from gantline.systems.pollux.imitation.loop import Decider, Loop, belief_errors, write_result
from gantline.systems.pollux.policies import Pollux
from gantline.systems.tiresias.policies import Tiresias
from gantline.traces.trace import Trace

_WHERE = "--regime pollux"


def node_sizes(cluster: Cluster) -> tuple[str, Ints]:
    """The device type and the devices of each node; Pollux knows one type."""
    sizes = np.array([node.gpus for node in cluster.nodes], dtype=np.int64)
    kinds = {node.type for node in cluster.nodes if node.gpus}
    if len(kinds) != 1 or not sizes.all():
        raise UsageError(
            "Pollux' clusters have devices of one type on every node",
            where=f"cluster '{cluster}'",
            fix="write for example aws:16x4, or use --regime sia for several types",
        )
    return kinds.pop(), sizes


def read_jobs(trace: Trace, profiles: Profiles, kind: str, sizes: Ints, learns: bool) -> list[PolluxJob]:
    """The jobs before anything happened; a mistake names its line."""
    frame = trace.frame
    for column in ("app", "batch_size"):
        if column not in frame.columns or frame[column].null_count():
            row = int(frame[column].is_null().arg_true()[0]) if column in frame.columns else 0
            raise _fault(trace, row, column, "does not say its application and its batch", "import the workload again")
    names = frame["app"].to_list()
    for row, name in enumerate(names):
        if name not in profiles.applications:
            raise _fault(trace, row, "app", f"no profile of '{name}'", f"the profiles have {', '.join(sorted(profiles.applications))}")
    known = {name: PolluxApplication(profiles[name], kind, int(sizes.max())) for name in dict.fromkeys(names)}
    jobs = []
    columns = zip(names, *(frame[name].cast(float).to_list() for name in ("arrival", "gpus", "batch_size")))
    for row, (name, arrival, devices, batch) in enumerate(columns):
        limits = known[name].limits
        if limits.local_least > limits.most:
            what = f"no batch that fits: the least per device is {limits.local_least:g}, the largest in all {limits.most:g}"
            raise _fault(trace, row, "app", what, "check its profiles")
        if not batch > 0.0:
            raise _fault(trace, row, "batch_size", f"a batch of {batch:g}", "give the examples of a step")
        if devices > limits.most:
            raise _fault(trace, row, "gpus", f"{int(devices)} devices for at most {limits.most:g} examples", "ask for fewer")
        jobs.append(PolluxJob(row, arrival, known[name], int(devices), batch, learns))
    return jobs


def _fault(trace: Trace, row: int, field: str, what: str, fix: str) -> TraceError:
    return TraceError(f"job '{trace.frame['job'][row]}': {what}", file=trace.source, line=row + 2, field=field, fix=fix)


def drive(simulation: Simulation, trace: Trace) -> dict[str, Any]:
    """Run the trace to its end and leave the result in the simulation's tables and log; the summary holds the errors of beliefs."""
    policy, state = simulation.engine.policy, simulation.state
    if not state.regime.round > 0:
        raise UsageError("intervals take no time", where="--round", fix="use 60")
    profiles = profiles_of(simulation, trace, _WHERE)
    kind, sizes = node_sizes(state.tables.cluster)
    jobs = read_jobs(trace, profiles, kind, sizes, isinstance(policy, Pollux))
    loop = Loop(jobs, state.regime.round, getattr(policy, "interference", 0.0), on_interval=simulation.on_progress)
    loop.artifact_fit = isinstance(policy, Pollux) and policy.fit == "artifact"
    loop.run(_decider(simulation, jobs, sizes))
    if loop.stalled:
        what = "jobs are there, but none progressed for 200 intervals and none is to arrive: given up"
        simulation.engine.incidents.append(Incident(loop.now, loop.decisions, what))
    write_result(simulation, loop)
    fields: dict[str, Any] = {"unmeasured_shapes": len(loop.unmeasured), "free_stops": False}  # a restart takes its seconds
    if isinstance(policy, Pollux):
        fields |= {"estimates": "fitted", "fits": len(loop.fitted)} | belief_errors(loop)
    return fields | profiles_summary(simulation)


def _decider(simulation: Simulation, jobs: list[PolluxJob], sizes: Ints) -> Decider:
    policy, capacity = simulation.engine.policy, sizes.tolist()
    if isinstance(policy, Tiresias):
        if len(policy.limits) > 1:
            raise RefusedError("its Tiresias has two queues", where=_WHERE, fix="set limits=57600, or nothing")
        return TiresiasInPollux([job.asked for job in jobs], capacity, policy.limits[0] if policy.limits else LIMIT)
    if isinstance(policy, Optimus):
        return _optimus(jobs, capacity)
    if isinstance(policy, Pollux):
        return PolluxInItsSimulator(jobs, sizes, policy, simulation.state.seed)
    raise TypeError(f"no loop for policy '{policy.name}'")  # the scope names those that have one


def _optimus(jobs: list[PolluxJob], capacity: list[int]) -> OptimusInPollux:
    """Its oracle: step times and steps to come, once per application and batch."""
    times, left = {}, {}
    for job in jobs:
        known, application = (job.application.name, job.batch), job.application
        if known not in times:
            most = min(max(int(job.batch // application.limits.local_least), 1), sum(capacity))
            times[known] = application.predicted(job.batch, most).tolist()
            left[known] = application.remaining(job.batch).tolist()
    kind = [(job.application.name, job.batch) for job in jobs]
    return OptimusInPollux(
        capacity,
        lambda job: times[kind[job]][:2] if jobs[job].pinned else times[kind[job]],
        lambda job: left[kind[job]][jobs[job].epoch],
    )
