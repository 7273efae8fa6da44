"""The loop of `--regime shockwave`: Shockwave, its baselines, or a recorded schedule, in the rounds of its simulator."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np

from gantline.core.errors import RefusedError, UsageError, near
from gantline.core.phases import Phase
from gantline.core.policy import Policy
from gantline.core.tables import Tables
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import DeviceCalendar, write_intervals, write_jobs
from gantline.models.sharing.throughput_model import ThroughputModel
from gantline.policies.recorded import Recorded
from gantline.systems.shockwave.imitation.jobs import SAMPLES, ShockwaveJob, fairness, mean_contention
from gantline.systems.shockwave.imitation.loop import Chooser, RecordedRounds, ShockwaveRounds
from gantline.systems.shockwave.imitation.planner import Planner
from gantline.systems.shockwave.imitation.shares import RULES, ShareTurns
from gantline.systems.shockwave.policies import Shockwave
from gantline.traces.trace import Trace

# The jobs of a trace and the measured speeds of a table, as Shockwave's simulator takes them.


_WHERE = "--regime shockwave"
MODES = ("static", "accordion", "gns")


def read_jobs(trace: Trace, tables: Tables) -> list[ShockwaveJob]:
    """The jobs in the order of the trace."""
    frame = trace.frame
    for name in ("model", "batch_size", "work"):
        if name not in frame.columns:
            raise UsageError(
                f"has no column '{name}'", where=f"trace {trace.source}", fix="import it with: gantline trace import gavel FILE OUT"
            )
    speeds = _speeds(tables)

    def speed(model: str, batch: int, gang: int) -> float:
        return speeds.get((f"{model} (batch size {batch})", gang), speeds.get((model, gang), nan))

    modes = frame["mode"].to_list() if "mode" in frame.columns else ["static"] * frame.height
    columns = (frame[name].to_list() for name in ("model", "gpus", "batch_size", "arrival", "work"))
    found = []
    for row, (model, gang, batch, arrival, steps) in enumerate(zip(*columns, strict=True)):
        mode = modes[row] or "static"
        if model not in SAMPLES:
            raise trace.fault(row, "model", f"is of model '{model}', whose epochs are not known", near(str(model), SAMPLES))
        if mode not in MODES:
            raise trace.fault(row, "mode", f"has the mode '{mode}'", near(str(mode), MODES))
        job = ShockwaveJob(row, model, mode, int(gang), int(batch or 1), float(arrival), int(steps), speed)
        if not job.throughput > 0:
            raise trace.fault(row, "batch_size", f"has no speed: {model}, batch size {batch}, {gang} GPUs", "measure it, or drop the job")
        found.append(job)
    return found


def _speeds(tables: Tables) -> dict[tuple[str, int], float]:
    """Steps per second by job type and gang, on the cluster's one type."""
    model = tables.performance
    if not isinstance(model, ThroughputModel):
        raise UsageError("needs measured speeds", where=_WHERE, fix="give --throughputs FILE, as JSON or CSV")
    types = [name for name in tables.cluster.types if tables.cluster.gpus_of(name) > 0]
    if len(types) != 1:
        raise RefusedError(f"Shockwave's simulator has one type of GPUs, not {len(types)}", where="--cluster", fix="use v100:32, say")
    alone = model.table.packed.alone[:, model.table.types.index(types[0])]
    return {key: float(value) for key, value in zip(model.table.keys, alone) if value == value}


# The loop of `--regime shockwave`: Shockwave, its baselines, or a recorded schedule, in the rounds of its simulator.

_BASELINES = {f"gavel.{name}": rule for name, rule in RULES.items()}


def drive(simulation: Simulation, trace: Trace) -> dict[str, Any]:
    """Run the trace to its end and leave the result in the simulation's tables and log; the summary has fairness by both definitions."""
    state, policy = simulation.state, simulation.engine.policy
    if not state.regime.round > 0:
        raise UsageError("rounds take no time", where="--round", fix="use 120")
    jobs = read_jobs(trace, state.tables)
    rounds = ShockwaveRounds(jobs, state.tables.cluster.gpus, _chooser(policy, jobs), state.regime.round)
    rounds.on_round = simulation.on_progress
    rounds.run(simulation.until)
    _write_result(simulation, rounds)
    return _fairness(rounds) | _planned(rounds.chooser)


def _chooser(policy: Policy, jobs: list[ShockwaveJob]) -> Chooser:
    if isinstance(policy, Shockwave):
        return Planner(policy.makespan, policy.power, policy.largest, policy.window, policy.calibrates, policy.knows_futures, policy.beat)
    if isinstance(policy, Recorded):
        return RecordedRounds(policy.table, jobs)
    return ShareTurns(_BASELINES[policy.name])


def _write_result(simulation: Simulation, rounds: ShockwaveRounds) -> None:
    jobs = rounds.jobs
    arrived = [job.admitted == job.admitted for job in jobs]
    write_jobs(
        simulation, service=[job.run_time for job in jobs], first_start=[job.first_start for job in jobs],
        finish=[job.finish for job in jobs], done=np.minimum(1.0, [job.done / job.steps for job in jobs]),
        restarts=[max(len(rounds.spells.get(job.index, ())) - 1, 0) for job in jobs],
        unfinished=np.where(arrived, int(Phase.PENDING), int(Phase.FUTURE)),
    )  # fmt: skip
    simulation.state.now = rounds.clock
    simulation.engine.decisions = rounds.passes
    calendar = DeviceCalendar(simulation.state.tables.D.shape[1])
    held = sorted((one for spells in rounds.spells.values() for one in spells), key=lambda one: (one.begin, one.row))
    write_intervals(simulation, (one._replace(devices=calendar.take(jobs[one.row].gang, one.begin, one.end)) for one in held))


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
    return counted | {"estimates": "told" if chooser.knows_futures else "learned"}
