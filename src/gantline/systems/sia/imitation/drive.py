"""The loop of `--regime sia`: Sia, or a recorded table of decisions, in the clock of Sia's simulator (docs/policies/sia.md)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gantline.core.errors import UsageError, near
from gantline.core.policy import Policy
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.profiles import profiles_of, profiles_summary
from gantline.engine.policy_failures import Incident
from gantline.policies.node_classes import NodeClass
from gantline.policies.recorded import Recorded
from gantline.systems.gavel.policies.finish_policies import FinishTimeFairness
from gantline.systems.gavel.policies.sum_policies import MaxSumThroughputPerf
from gantline.systems.pollux.policies.policy import Pollux
from gantline.systems.shockwave.policies.policy import Shockwave
from gantline.systems.sia.imitation.beliefs import Fitter
from gantline.systems.sia.imitation.deciding import SiaScheduler
from gantline.systems.sia.imitation.gavel import GavelScheduler
from gantline.systems.sia.imitation.goodputs import Assumptions
from gantline.systems.sia.imitation.jobs import SiaJob
from gantline.systems.sia.imitation.pollux_unaware import PolluxScheduler
from gantline.systems.sia.imitation.reading import classes_of, read_jobs
from gantline.systems.sia.imitation.recorded import RecordedScheduler
from gantline.systems.sia.imitation.result import write_result
from gantline.systems.sia.imitation.rounds import RoundScheduler, SiaRounds
from gantline.systems.sia.imitation.tuned import ShockwaveScheduler, ThemisScheduler
from gantline.systems.sia.policies.configurations import Configurations
from gantline.systems.sia.policies.policy import FITS, Sia
from gantline.traces.trace import Trace

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
        return PolluxScheduler(
            classes, power=policy.p, restart=policy.restart, avoid=policy.avoid, size=policy.size, generations=policy.generations, seed=seed
        )
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
