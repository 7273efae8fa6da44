"""The loop of `--regime muri`: Muri, its ablations and its baselines as its authors' simulator runs them."""

from __future__ import annotations

from itertools import chain

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.columns import Job
from gantline.core.errors import RefusedError
from gantline.core.phases import Phase
from gantline.core.policy import Policy
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import write_log
from gantline.engine.lost_turns import Incident
from gantline.systems.muri.imitation.antman import AntManSchedule
from gantline.systems.muri.imitation.clock import EventSchedule, MuriLives, run_events
from gantline.systems.muri.imitation.jobs import MuriJob, read_jobs
from gantline.systems.muri.imitation.muri import MuriSchedule
from gantline.systems.muri.imitation.orders import ShortestSchedule, TiresiasSchedule
from gantline.systems.muri.imitation.themis import ThemisSchedule
from gantline.systems.muri.policies.policy import Muri
from gantline.systems.muri.profiles import OTHER, RestartOverheads
from gantline.traces.trace import Trace


def drive(simulation: Simulation, trace: Trace) -> dict[str, object]:
    """Run the trace until its last job is done."""
    state = simulation.state
    cluster = state.tables.cluster
    if len(cluster.types) != 1:
        raise RefusedError("Muri's simulator knows one type of device", where="--regime muri", fix="use a cluster such as 8x8")
    overheads = simulation.profiles or RestartOverheads()
    assert isinstance(overheads, RestartOverheads)
    jobs = read_jobs(trace, overheads)
    lives = run_events(jobs, _schedule(simulation.engine.policy, jobs, cluster), simulation.until, simulation.on_progress)
    _write(simulation, lives)
    simulation.engine.decisions = lives.events
    if lives.now < simulation.until and np.isnan(lives.end).any():
        what = "jobs wait, each for devices that others have reserved: given up"
        simulation.engine.incidents.append(Incident(lives.now, lives.events, what))
    known = {} if overheads.measured else {"profiles": f"none: an event costs every job {OTHER:g} s"}
    return known | {"free_stops": False}


def _schedule(policy: Policy, jobs: list[MuriJob], cluster: Cluster) -> EventSchedule:
    devices = len(cluster.device_node)
    if isinstance(policy, Muri):
        worst, stages = policy.ordering == "worst", list(dict.fromkeys(job.stages for job in jobs))  # as kinds are counted
        return MuriSchedule(devices, stages, known=policy.known, matching=policy.matching, worst=worst, most=policy.most)
    if policy.name == "antman":
        seats: dict[int, list[int]] = {}
        for device, node in enumerate(cluster.device_node):
            seats.setdefault(int(node), []).append(device)
        return AntManSchedule(list(seats.values()))
    if policy.name == "srtf":
        return ShortestSchedule(devices, lambda job: job.alone)
    if policy.name == "srsf":
        return ShortestSchedule(devices, lambda job: job.alone * job.gpus)
    return ThemisSchedule(devices) if policy.name == "themis" else TiresiasSchedule(devices)


def _write(simulation: Simulation, lives: MuriLives) -> None:
    """Starts, ends, service and intervals, in the tables and the log of the run. Time that jobs share counts for each of them."""
    state, t = simulation.state, simulation.state.tables
    spells, n = lives.spells, len(lives.end)
    row = np.array([job.row for spell in spells for job in spell.members], dtype=np.int64)
    spell_of = np.repeat(np.arange(len(spells)), [len(spell.members) for spell in spells])
    begin = np.array([spell.begin for spell in spells])[spell_of]
    order = np.lexsort((row, begin))
    row, begin, spell_of = row[order], begin[order], spell_of[order]
    end = np.array([spell.end for spell in spells])[spell_of]
    devices = [spells[at].devices for at in spell_of.tolist()]
    first = np.full(n, np.nan)
    np.fmin.at(first, row, begin)
    finish = np.array(lives.end)
    t.F[Job.SERVICE] = lives.ran
    t.F[Job.GPUTIME] = t.F[Job.SERVICE] * t.I[Job.GPUS]
    t.F[Job.FIRST_START] = t.F[Job.MARK] = first
    t.F[Job.FINISH] = finish
    t.F[Job.DONE] = t.F[Job.SAFE] = t.F[Job.WORK] * lives.done
    reason = _reasons(row, begin, end, finish)
    t.I[Job.RESTARTS] = np.bincount(row, minlength=n).clip(1) - 1
    t.I[Job.PREEMPTIONS] = np.bincount(row[reason == Reason.PREEMPTED], minlength=n)
    t.rate_changes = np.array(lives.changes, dtype=np.int64)
    t.I[Job.PHASE] = np.where(np.isfinite(finish), int(Phase.COMPLETED), int(Phase.PENDING))
    state.now = lives.now
    write_log(
        simulation, row=row, option=t.I[Job.OPTION_FIRST][row], reason=reason, begin=begin, end=end,
        gpus=[len(each) for each in devices], devices=np.fromiter(chain.from_iterable(devices), np.int64),
    )  # fmt: skip


def _reasons(row: Ints, begin: Floats, end: Floats, finish: Floats) -> Ints:
    """Why each spell ended: the job did, it moved at that instant, the run did, or others took its devices."""
    order = np.lexsort((begin, row))
    one, other = order[:-1], order[1:]
    begins_again = np.full(len(row), np.nan)
    begins_again[one] = np.where(row[one] == row[other], begin[other], np.nan)
    ended = (end == finish[row], end == begins_again, end == end.max(initial=0.0))
    return np.select(ended, (Reason.FINISHED, Reason.MOVED, Reason.END), Reason.PREEMPTED).astype(np.int64)
