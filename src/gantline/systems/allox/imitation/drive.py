"""The loop of `--regime irfsim`: AlloX and its baselines as IRFsim runs them, job by job (docs/design/irfsim.md)."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.errors import RefusedError
from gantline.core.policy import Policy
from gantline.engine.drivers.simulation import Simulation
from gantline.models.estimate_chain import Estimates
from gantline.systems.allox.imitation import matched, methods, world
from gantline.systems.allox.imitation.plus import run_plus
from gantline.systems.allox.imitation.reading import IrfsimJobs, IrfsimPool, build_world, has_errors, read_jobs, with_more_log
from gantline.systems.allox.imitation.result import write_result
from gantline.systems.allox.imitation.sort import scratch
from gantline.systems.allox.policies.fillings import AlloXPlus
from gantline.systems.allox.policies.policy import AlloX
from gantline.systems.allox.policies.users import read_weights
from gantline.traces.trace import Trace

_NEVER, _REPORTS = 1 << 62, 100  # events until the next report where none is wanted; reports of a run, about
_METHODS = {
    "drf-fifo": methods.DRF_FIFO,
    "drf": methods.DRF,
    "drf-ext": methods.DRF_EXTENDED,
    "es": methods.EQUAL_SHARE,
    "allox.sjf": methods.SJF,
    "allox.srpt": methods.SRPT,
}


def drive(simulation: Simulation, trace: Trace) -> None:
    """Run the trace to its end by IRFsim's rules and leave the result in the simulation's tables and log."""
    policy, state = simulation.engine.policy, simulation.state
    pool = IrfsimPool.of(state.tables.cluster)
    jobs = read_jobs(trace, pool)
    users, owner = _by_name(state.tables.users, state.tables.I[Job.USER])
    profiling = state.regime.name == "irfsim" and policy.name != "drf-fifo"
    now = build_world(jobs, owner, state.tables.F[Job.ARRIVAL].copy(), len(users), pool, profiling)
    if isinstance(policy, AlloX):
        kind = np.where(np.arange(len(now.booked)) < pool.gpus, world.GPU, world.CPU)
        lacking = -1
        while lacking < 0 and now.pool[world.NOW] < np.inf:
            lacking = matched.run_allox(now, _pause(simulation, now), jobs.number, kind, policy.alpha)
        if lacking >= 0:
            raise RefusedError(
                f"job '{state.tables.ids[lacking]}' lacks memory, and the original would try it for ever",
                where="--regime irfsim",
                fix="give the cluster more memory, or use another --regime",
            )
    else:
        now = _run_method(simulation, now, policy, pool, jobs, _weights(policy, users, owner, state.tables.F[Job.WEIGHT]))
    if has_errors(trace, pool):
        simulation.estimates = Estimates("declared")
    write_result(simulation, now)
    simulation.engine.decisions = int(now.counts[world.EVENTS])


def _pause(simulation: Simulation, now: world.World) -> int:
    """Report where the run is; the number of events after which to do so again."""
    if simulation.on_progress is None:
        return _NEVER
    arrived = int(now.counts[world.NEXT])
    simulation.on_progress(float(now.pool[world.NOW]), arrived, arrived - int(now.counts[world.FINISHED]))
    return int(now.counts[world.EVENTS]) + max(now.jobs // _REPORTS, 1)


def _run_method(
    simulation: Simulation, now: world.World, policy: Policy, pool: IrfsimPool, jobs: IrfsimJobs, weight: Floats
) -> world.World:
    """Run one of the compiled methods; the world comes back, for it may have been given more room to log."""
    on_cpu, on_gpu = now.tasks[world.REPORTED + world.CPU], now.tasks[world.REPORTED + world.GPU]
    shortest, number, rest = np.minimum(on_cpu, on_gpu), np.array([pool.whole, jobs.beta]), scratch()
    while True:
        if isinstance(policy, AlloXPlus):
            code = run_plus(now, _pause(simulation, now), policy.age, rest)
        else:
            code = methods.run_method(now, _pause(simulation, now), _METHODS[policy.name], weight, number, on_cpu, on_gpu, shortest)
        if code == methods.DONE:
            return now
        if code == methods.BROKEN:
            raise RefusedError("AlloXPlus' comparison contradicts itself, and the original would end here", where="--regime irfsim")
        if code == methods.FULL:
            now = with_more_log(now)


def _by_name(users: list[str], code: Ints) -> tuple[list[str], Ints]:
    """Users in the order of their names, and the user of each job in that order."""
    order = sorted(range(len(users)), key=lambda k: users[k])
    place = np.empty(len(users), dtype=np.int64)
    place[order] = np.arange(len(users))
    return [users[k] for k in order], place[code]


def _weights(policy: Policy, users: list[str], owner: Ints, weight: Floats) -> Floats:
    found = np.zeros(len(users))
    np.maximum.at(found, owner, weight)
    found[found <= 0] = 1.0
    for name, value in read_weights(getattr(policy, "weights", ())).items():
        if name in users:
            found[users.index(name)] = value
    return found
