"""The loop of `--regime shockwave`: Shockwave, its baselines, or a recorded schedule, in the rounds of its simulator."""

from __future__ import annotations

from typing import Any

import numpy as np

from gantline.core.columns import Job
from gantline.core.errors import UsageError
from gantline.core.phases import Phase
from gantline.core.policy import Policy
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import GpuSpell, write_spells
from gantline.policies.recorded import Recorded
from gantline.systems.shockwave.imitation.jobs import ShockwaveJob, fairness, mean_contention
from gantline.systems.shockwave.imitation.loop import Chooser, ShockwaveRounds, ShockwaveTask
from gantline.systems.shockwave.imitation.planner import Planner
from gantline.systems.shockwave.imitation.reading import read_jobs
from gantline.systems.shockwave.imitation.recorded import RecordedRounds
from gantline.systems.shockwave.imitation.shares import RULES
from gantline.systems.shockwave.imitation.turns import Turns
from gantline.systems.shockwave.policies.policy import Shockwave
from gantline.traces.trace import Trace

_BASELINES = {f"gavel.{name}": rule for name, rule in RULES.items()}


def drive(simulation: Simulation, trace: Trace) -> dict[str, Any]:
    """Run the trace to its end and leave the result in the simulation's tables and log; the summary has fairness by both definitions."""
    state, policy = simulation.state, simulation.engine.policy
    if not state.regime.round > 0:
        raise UsageError("rounds take no time", where="--round", fix="use 120")
    jobs = read_jobs(trace, state.tables)
    spells: list[GpuSpell] = []
    rounds = ShockwaveRounds(jobs, state.tables.cluster.gpus, _chooser(policy, jobs), state.regime.round)
    rounds.on_task = lambda task, ended: _note(spells, task, ended)
    rounds.on_round = simulation.on_progress
    rounds.run(simulation.until)
    _write_result(simulation, rounds, spells)
    return _fairness(rounds) | _planned(rounds.chooser)


def _chooser(policy: Policy, jobs: list[ShockwaveJob]) -> Chooser:
    if isinstance(policy, Shockwave):
        return Planner(policy.makespan, policy.power, policy.largest, policy.window, policy.calibrates, policy.told, policy.beat)
    if isinstance(policy, Recorded):
        return RecordedRounds(policy.table, jobs)
    return Turns(_BASELINES[policy.name])


def _note(spells: list[GpuSpell], task: ShockwaveTask, ended: bool) -> None:
    reason = Reason.FINISHED if ended else Reason.PREEMPTED
    spells.append(GpuSpell(task.job.index, task.begin, task.finish, task.job.gang, int(reason)))


def _joined(spells: list[GpuSpell], rounds: ShockwaveRounds) -> list[GpuSpell]:
    """Rounds in a row are one interval."""
    found: list[GpuSpell] = []
    number = dict.fromkeys(range(len(rounds.jobs)), 0)  # tasks of each job so far
    for one in sorted(spells, key=lambda one: (one.row, one.begin)):
        at = number[one.row]
        number[one.row] += 1
        started = rounds.jobs[one.row].started
        if at and started[at] == started[at - 1] + 1:
            found[-1] = GpuSpell(one.row, found[-1].begin, one.end, one.gpus, one.reason)
        else:
            found.append(one)
    return found


def _write_result(simulation: Simulation, rounds: ShockwaveRounds, spells: list[GpuSpell]) -> None:
    t, jobs = simulation.state.tables, rounds.jobs
    F, I = t.F, t.I
    F[Job.SERVICE] = [job.run_time for job in jobs]
    F[Job.GPUTIME] = [job.run_time * job.gang for job in jobs]
    F[Job.FIRST_START] = F[Job.MARK] = [job.first_start for job in jobs]
    F[Job.FINISH] = [job.finish for job in jobs]
    done = ~np.isnan(F[Job.FINISH])
    F[Job.DONE] = F[Job.SAFE] = np.where(done, F[Job.WORK], F[Job.WORK] * np.minimum(1.0, [job.done / job.steps for job in jobs]))
    arrived = np.array([job.admitted == job.admitted for job in jobs])
    I[Job.PHASE] = np.where(done, int(Phase.COMPLETED), np.where(arrived, int(Phase.PENDING), int(Phase.FUTURE)))
    whole = _joined(spells, rounds)
    I[Job.RESTARTS] = I[Job.PREEMPTIONS] = np.maximum(np.bincount([one.row for one in whole], minlength=len(jobs)) - 1, 0)
    simulation.state.now = rounds.clock
    simulation.engine.decisions = rounds.passes
    write_spells(simulation, whole)


def _fairness(rounds: ShockwaveRounds) -> dict[str, Any]:
    """Completion time over the fair finish time, with the contention of the whole trace (static) or of a job's own life (Themis)."""
    ended = [job for job in rounds.jobs if job.finish == job.finish]
    if not ended:
        return {}
    static = [fairness(job.finish - job.arrival, job, len(rounds.jobs) / rounds.gpus) for job in ended]
    lived = [
        fairness(job.finish - job.arrival, job, mean_contention(rounds.counts, rounds.gpus, *rounds.lives[job.index])) for job in ended
    ]
    fields: dict[str, Any] = {"rounds": rounds.passes, "busy_share": rounds.busy / (rounds.gpus * rounds.clock) if rounds.clock else 0.0}
    for name, values in (("static", static), ("themis", lived)):
        fields |= {
            f"rho_{name}_worst": max(values),
            f"rho_{name}_mean": float(np.mean(values)),
            f"rho_{name}_unfair": float(np.mean(np.array(values) > 1.0)),
        }
    return fields


def _planned(chooser: Chooser) -> dict[str, Any]:
    if not isinstance(chooser, Planner):
        return {}
    counted = {"plans": chooser.planned, "fair_plans": chooser.fair, "cut_plans": chooser.cut}  # the others keep no fair finish time
    return counted | {"estimates": "told" if chooser.told else "learned"}
