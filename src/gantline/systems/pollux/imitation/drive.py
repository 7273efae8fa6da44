"""The loop of `--regime pollux`: Tiresias, Optimus and Pollux in the clock of Pollux' simulator (docs/policies/pollux.md)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import RefusedError, UsageError
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.profiles import profiles_of, profiles_summary
from gantline.engine.lost_turns import Incident
from gantline.systems.optimus.policies.policy import Optimus
from gantline.systems.pollux.imitation.clock import Column
from gantline.systems.pollux.imitation.loop import Decider, Loop
from gantline.systems.pollux.imitation.optimus import OptimusInPollux
from gantline.systems.pollux.imitation.pollux import PolluxInItsSimulator
from gantline.systems.pollux.imitation.reading import Asked, make_jobs, node_sizes, read_asked
from gantline.systems.pollux.imitation.result import belief_errors, write_result
from gantline.systems.pollux.imitation.speedups import Beliefs
from gantline.systems.pollux.imitation.tiresias import LIMIT, TiresiasInPollux
from gantline.systems.pollux.policies.policy import Pollux
from gantline.systems.tiresias.policies.tiresias import Tiresias
from gantline.traces.trace import Trace

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
    epoch = loop.jobs.I[Column.EPOCH]
    return OptimusInPollux(
        capacity,
        lambda job: times[kinds[job]][:2] if job in alone else times[kinds[job]],
        lambda job: left[kinds[job]][epoch[job]],
    )
