"""The loop of `--regime muri`: Muri, its ablations and its baselines as its authors' simulator runs them."""

from __future__ import annotations

import math

import numpy as np

from gantline.core.cluster import Cluster
from gantline.core.columns import Job
from gantline.core.errors import RefusedError
from gantline.core.policy import Policy
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import HeldInterval, write_intervals, write_jobs
from gantline.engine.policy_failures import Incident
from gantline.systems.muri.imitation.clock import EventSchedule, MuriJob, MuriLives, read_jobs, run_events
from gantline.systems.muri.imitation.schedules import AntManSchedule, MuriSchedule, ShortestSchedule, ThemisSchedule, TiresiasSchedule
from gantline.systems.muri.policies import Muri
from gantline.systems.muri.traces import OTHER, RestartOverheads
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
    _write(simulation, jobs, lives)
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
        by_node: dict[int, list[int]] = {}
        for device, node in enumerate(cluster.device_node):
            by_node.setdefault(int(node), []).append(device)
        return AntManSchedule(list(by_node.values()))
    if policy.name == "srtf":
        return ShortestSchedule(devices, lambda job: job.alone)
    if policy.name == "srsf":
        return ShortestSchedule(devices, lambda job: job.alone * job.gpus)
    return ThemisSchedule(devices) if policy.name == "themis" else TiresiasSchedule(devices)


def _write(simulation: Simulation, jobs: list[MuriJob], lives: MuriLives) -> None:
    """Starts, ends, service and intervals, in the tables and the log of the run. Time that jobs share counts for each of them."""
    t, n = simulation.state.tables, len(lives.end)
    spells = sorted((spell.begin, job.row, spell.end, spell.devices) for spell in lives.spells for job in spell.members)
    last, again = max((end for _, _, end, _ in spells), default=0.0), [math.nan] * n  # again: when each job begins next
    intervals, preempted, pieces = list[HeldInterval](), [0] * n, [0] * n
    for begin, row, end, devices in reversed(spells):
        ended = (end == lives.end[row], Reason.FINISHED), (end == again[row], Reason.MOVED), (end == last, Reason.END)
        reason = next((why for holds, why in ended if holds), Reason.PREEMPTED)
        intervals.append(HeldInterval(row, begin, end, devices, reason))
        again[row] = begin
        preempted[row] += reason == Reason.PREEMPTED
        pieces[row] += 1
    restarts = [max(count - 1, 0) for count in pieces]
    write_jobs(
        simulation,
        service=[job.ran for job in jobs],
        first_start=again,
        finish=lives.end,
        restarts=restarts,
        done=[1.0 - job.left / job.iterations for job in jobs],
    )
    t.I[Job.PREEMPTIONS] = preempted
    t.rate_changes = np.array([job.changes for job in jobs], dtype=np.int64)
    simulation.state.now = lives.now
    write_intervals(simulation, reversed(intervals))
