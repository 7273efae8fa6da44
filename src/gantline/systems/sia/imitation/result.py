"""Writes the result of the rounds into the tables and the log of a run."""

from __future__ import annotations

import numpy as np

from gantline.core.columns import Job, Option
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import DeviceSeats, write_log
from gantline.systems.sia.imitation.rounds import SiaRounds


def write_result(simulation: Simulation, rounds: SiaRounds) -> None:
    """Fill in starts, ends, service, restarts and the intervals in which GPUs were held."""
    state, t = simulation.state, simulation.state.tables
    F, I, jobs = t.F, t.I, rounds.jobs
    F[Job.SERVICE] = [job.seconds for job in jobs]
    F[Job.GPUTIME] = [job.gpu_seconds for job in jobs]
    I[Job.RESTARTS] = I[Job.PREEMPTIONS] = [job.restarts for job in jobs]
    F[Job.FIRST_START] = F[Job.MARK] = [job.first_start for job in jobs]
    F[Job.FINISH] = [job.finish for job in jobs]
    done = ~np.isnan(F[Job.FINISH])
    F[Job.DONE] = F[Job.SAFE] = [F[Job.WORK, k] * min(job.progress / job.edges[-1], 1.0) for k, job in enumerate(jobs)]
    I[Job.PHASE] = np.where(done, int(Phase.COMPLETED), int(Phase.PENDING))
    state.now = max((spell.end for spell in rounds.spells), default=rounds.now)
    simulation.engine.decisions = rounds.decisions
    _write_log(simulation, rounds)


def _write_log(simulation: Simulation, rounds: SiaRounds) -> None:
    """One interval per spell; a node's GPUs are given out from the lowest number that is free."""
    t = simulation.state.tables
    spells = sorted(rounds.spells, key=lambda spell: (spell.begin, spell.job))
    seats, first = DeviceSeats(t.D.shape[1]), t.cluster.first_device
    held: list[int] = []
    for spell in spells:
        nodes = rounds.classes[spell.group]
        for node, gpus in spell.parts:
            held += seats.take(gpus, spell.begin, spell.end, int(first[nodes.nodes[node]]), nodes.size)
    kinds = [t.cluster.type_code(rounds.classes[spell.group].type) for spell in spells]
    write_log(
        simulation,
        row=[spell.job for spell in spells],
        option=[_option(simulation, spell.job, kind) for spell, kind in zip(spells, kinds, strict=True)],
        reason=[_reason(spell.finished, spell.end, rounds.now) for spell in spells],
        begin=[spell.begin for spell in spells],
        end=[spell.end for spell in spells],
        gpus=[sum(gpus for _, gpus in spell.parts) for spell in spells],
        devices=held,
    )


def _reason(finished: bool, end: float, now: float) -> int:
    if finished:
        return int(Reason.FINISHED)
    return int(Reason.END if end >= now else Reason.RESIZED)


def _option(simulation: Simulation, row: int, kind: int) -> int:
    """The option of that type, which is listed once per type whatever the size."""
    t = simulation.state.tables
    first, count = int(t.I[Job.OPTION_FIRST, row]), int(t.I[Job.OPTION_COUNT, row])
    kinds = t.options.I[Option.TYPE, first : first + count].tolist()
    return first + (kinds.index(kind) if kind in kinds else 0)
