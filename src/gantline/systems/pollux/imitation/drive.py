"""The loop of `--regime pollux`: Tiresias, Optimus and Pollux in the clock of Pollux' simulator (docs/policies/pollux.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError, TraceError, UsageError
from gantline.core.tables import Tables
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.profiles import profiles_of, profiles_summary
from gantline.engine.lost_turns import Incident
from gantline.models.goodput.measured import Profiles
from gantline.systems.optimus.policies.policy import Optimus
from gantline.systems.pollux.imitation import clock as k
from gantline.systems.pollux.imitation.clock import PINNED, Applications
from gantline.systems.pollux.imitation.deciders import LIMIT, Beliefs, OptimusInPollux, PolluxInItsSimulator, TiresiasInPollux
from gantline.systems.pollux.imitation.loop import Decider, Loop, belief_errors, write_result
from gantline.systems.pollux.policies import Pollux
from gantline.systems.tiresias.policies import Tiresias
from gantline.traces.trace import Trace

# A trace, a cluster and profiles as Pollux' simulator sees them.


_ROWS = 32  # of speeds per job, to begin with


@dataclass(frozen=True)
class Asked:
    """What jobs ask for, and what their application allows."""

    applications: Applications
    app: Ints
    devices: Ints
    batch: Floats
    pinned: Floats  # total batch of jobs that always get one device; 0: not pinned


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


def read_asked(trace: Trace, profiles: Profiles, kind: str, sizes: Ints) -> Asked:
    """Applications, devices and batches of the jobs; a mistake names its line."""
    frame = trace.frame
    for column in ("app", "batch_size"):
        if column not in frame.columns or frame[column].null_count():
            row = int(frame[column].is_null().arg_true()[0]) if column in frame.columns else 0
            raise _fault(trace, row, column, "does not say its application and its batch", "import the workload again")
    names = frame["app"].to_list()
    for row, name in enumerate(names):
        if name not in profiles.applications:
            raise _fault(trace, row, "app", f"no profile of '{name}'", f"the profiles have {', '.join(sorted(profiles.applications))}")
    applications = Applications(profiles, names, kind, int(sizes.max()))
    app = np.array([applications.names.index(name) for name in names], dtype=np.int64)
    devices = frame["gpus"].to_numpy().astype(np.int64)
    batch = frame["batch_size"].cast(float).to_numpy().astype(np.float64)
    for row in range(len(names)):
        limits = applications.limits[app[row]]
        if limits.local_least > limits.most:
            what = f"no batch that fits: the least per device is {limits.local_least:g}, the largest in all {limits.most:g}"
            raise _fault(trace, row, "app", what, "check its profiles")
        if not batch[row] > 0.0:
            raise _fault(trace, row, "batch_size", f"a batch of {batch[row]:g}", "give the examples of a step")
        if devices[row] > limits.most:
            raise _fault(trace, row, "gpus", f"{devices[row]} devices for at most {limits.most:g} examples", "ask for fewer")
    return Asked(applications, app, devices, batch, np.array([PINNED.get(name, 0.0) for name in names]))


def make_jobs(tables: Tables, asked: Asked, learns: bool) -> k.PolluxJobs:
    """All jobs before anything happened. Those that adapt have no wanted batch, unless their application is pinned to one."""
    count = len(asked.app)
    F, I = np.zeros((k.F_COLUMNS, count)), np.zeros((k.I_COLUMNS, count), dtype=np.int64)
    F[k.SUBMIT] = tables.F[c.ARRIVAL]
    F[k.FINISH] = np.nan
    F[k.VARIANCE] = 1.0
    F[k.WANTED] = asked.pinned if learns else asked.batch
    I[k.APP], I[k.RESTARTS] = asked.app, -1
    return k.PolluxJobs(F, I, np.zeros((count, 7)), np.zeros((count, _ROWS if learns else 1, 5)), learns, np.zeros(3))


def _fault(trace: Trace, row: int, field: str, what: str, fix: str) -> TraceError:
    return TraceError(f"job '{trace.frame['job'][row]}': {what}", file=trace.source, line=row + 2, field=field, fix=fix)


# The loop of `--regime pollux`: Tiresias, Optimus and Pollux in the clock of Pollux' simulator (docs/policies/pollux.md).

_WHERE = "--regime pollux"


def drive(simulation: Simulation, trace: Trace) -> dict[str, Any]:
    """Run the trace to its end and leave the result in the simulation's tables and log; the summary holds the errors of beliefs."""
    policy, state = simulation.engine.policy, simulation.state
    if not state.regime.round > 0:
        raise UsageError("intervals take no time", where="--round", fix="use 60")
    profiles = profiles_of(simulation, trace, _WHERE)
    kind, sizes = node_sizes(state.tables.cluster)
    asked = read_asked(trace, profiles, kind, sizes)
    learns = isinstance(policy, Pollux)
    loop = Loop(make_jobs(state.tables, asked, learns), asked.applications, state.regime.round, on_interval=simulation.on_progress)
    loop.interference = getattr(policy, "interference", 0.0)
    loop.artifact_fit = isinstance(policy, Pollux) and policy.fit == "artifact"
    loop.run(_decider(simulation, asked, sizes, loop))
    if loop.stalled:
        what = "jobs are there, but none progressed for 200 intervals and none is to arrive: given up"
        simulation.engine.incidents.append(Incident(loop.now, loop.decisions, what))
    write_result(simulation, loop)
    fields: dict[str, Any] = {"unmeasured_shapes": asked.applications.unmeasured, "free_stops": False}  # a restart takes its seconds
    if learns:
        fields |= {"estimates": "fitted", "fits": loop.fits} | belief_errors(loop)
    return fields | profiles_summary(simulation)


def _decider(simulation: Simulation, asked: Asked, sizes: Ints, loop: Loop) -> Decider:
    policy, capacity = simulation.engine.policy, sizes.tolist()
    if isinstance(policy, Tiresias):
        if len(policy.limits) > 1:
            raise RefusedError("its Tiresias has two queues", where=_WHERE, fix="set limits=57600, or nothing")
        return TiresiasInPollux(asked.devices, capacity, policy.limits[0] if policy.limits else LIMIT)
    if isinstance(policy, Optimus):
        return _optimus(asked, capacity, loop)
    if isinstance(policy, Pollux):
        beliefs = Beliefs(len(asked.app), int(sizes.sum()), int(sizes.max()))
        courses = asked.applications.courses

        def speedups(rows: Ints, most: Ints, fair: int) -> Floats:
            return beliefs.speedups(loop.jobs, courses, rows, most, fair)

        limits = asked.applications.limits
        fits = np.array([limits[app].most // limits[app].local_least for app in asked.app], dtype=np.int64)
        limit = np.where(asked.pinned > 0.0, 1, np.maximum(fits, 1))
        return PolluxInItsSimulator(
            lambda: loop.jobs,
            speedups,
            limit,
            sizes,
            policy.p,
            policy.restart,
            policy.avoid,
            policy.size,
            policy.generations,
            simulation.state.seed,
        )
    raise TypeError(f"no loop for policy '{policy.name}'")  # the scope names those that have one


def _optimus(asked: Asked, capacity: list[int], loop: Loop) -> OptimusInPollux:
    """Its oracle: step times and steps to come, once per application and batch."""
    kinds = list(zip(asked.app.tolist(), asked.batch.tolist()))
    times, left = {}, {}
    for app, batch in dict.fromkeys(kinds):
        limits = asked.applications.limits[app]
        most = max(int(batch // limits.local_least), 1)
        times[app, batch] = asked.applications.predicted(app, batch, min(most, sum(capacity))).tolist()
        left[app, batch] = asked.applications.remaining(app, batch).tolist()
    alone = {job for job, batch in enumerate(asked.pinned.tolist()) if batch > 0.0}
    epoch = loop.jobs.I[k.EPOCH]
    return OptimusInPollux(
        capacity,
        lambda job: times[kinds[job]][:2] if job in alone else times[kinds[job]],
        lambda job: left[kinds[job]][epoch[job]],
    )
