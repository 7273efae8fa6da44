"""The loop of `--regime synergy`: Synergy's orders and mechanisms as its simulator runs them, job by job."""

from __future__ import annotations

import numpy as np

from gantline.core.columns import Job
from gantline.core.errors import RefusedError, UsageError, near
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import write_log
from gantline.models.sensitivity import Networks, PerGpu
from gantline.systems.synergy.imitation.jobs import Sku, SynergyJob
from gantline.systems.synergy.imitation.rounds import MECHANISMS, SynergyRounds
from gantline.systems.synergy.imitation.spells import joined
from gantline.systems.synergy.policies.needs import demand_of
from gantline.systems.synergy.policies.policy import Synergy
from gantline.systems.synergy.profiles import SynergyProfiles
from gantline.traces.trace import Trace

_WHERE = "--regime synergy"
_CPUS, _MEMORY, _STORAGE = 24.0, 500.0, 500.0
"""What a server has where the cluster says nothing of CPUs, GB of memory and MB/s of storage."""


def drive(simulation: Simulation, trace: Trace) -> dict[str, float]:
    """Run the trace until a round finds no job."""
    policy, state = simulation.engine.policy, simulation.state
    assert isinstance(policy, Synergy)  # the scope has no other
    if policy.order == "las" and policy.mechanism == "opt":
        what = "Synergy's simulator fails with this order and mechanism: it takes a server to have as many CPUs and GB as GPUs"
        raise RefusedError(what, where="--set order=las mechanism=opt", fix="use another mechanism, or --regime default")
    if not isinstance(simulation.profiles, SynergyProfiles):
        raise UsageError("no profiles are given", where=_WHERE, fix="give --profiles DIR")
    sku, servers = _sku(simulation), len(state.tables.cluster.nodes)
    jobs = _jobs(trace, simulation.profiles.on(_share(simulation, sku)), sku, sku.gpus * servers)
    rounds = SynergyRounds(
        jobs, state.regime.round, policy.order, MECHANISMS[policy.mechanism], sku, servers,
        consolidate=policy.place == "consolidated", static=policy.mode == "static", on_round=simulation.on_progress,
    )  # fmt: skip
    state.now = rounds.run()
    _write(simulation, rounds)
    simulation.engine.decisions = rounds.count
    left = len(jobs) - len(rounds.ends)
    return {"end_of_run": state.now} | ({"left_behind_a_gap": left} if left else {})


def _sku(simulation: Simulation) -> Sku:
    """The server that all nodes are."""
    skus = {Sku(node.gpus, node.cpus or _CPUS, node.memory or _MEMORY) for node in simulation.state.tables.cluster.nodes}
    if len(skus) != 1 or len(simulation.state.tables.cluster.types) != 1:
        raise RefusedError("Synergy's simulator knows one kind of server", where=_WHERE, fix="use a cluster such as 4x8/24c/500g")
    return skus.pop()


def _share(simulation: Simulation, sku: Sku) -> PerGpu:
    """What belongs to one GPU."""
    storage = simulation.state.tables.cluster.nodes[0].storage or _STORAGE
    return sku.cpus / sku.gpus, sku.memory / sku.gpus, storage / sku.gpus


def _jobs(trace: Trace, networks: Networks, sku: Sku, most: int) -> list[SynergyJob]:
    """The trace in steps; where it has none, so many seconds at the proportional share."""
    frame, jobs = trace.frame, []
    if "model" not in frame.columns:
        raise UsageError("the trace has no column 'model'", where=_WHERE, fix="gantline trace import synergy SRC OUT --profiles DIR")
    stepped = "iterations" in frame.columns
    columns = ("job", "model", "arrival", "gpus", "iterations" if stepped else "duration")
    for row, (job, name, arrival, gpus, amount) in enumerate(zip(*(frame[column].to_list() for column in columns))):
        where = f"{_WHERE}, job '{job}'"
        if name not in networks:
            raise UsageError(f"there is no profile of '{name}'", where=where, fix=near(str(name), networks))
        if not 0 < gpus <= most:
            raise RefusedError(f"it asks for {gpus} GPUs of {most}", where=where, fix="leave it out, or use another cluster")
        profile = networks[name]
        demand, gain = demand_of(profile, int(gpus), sku)
        steps = float(amount) if stepped else float(amount) / profile.step_time
        jobs.append(SynergyJob(row, int(gpus), demand, gain, profile, arrival=arrival, steps=steps, speed=gain, last_ran=arrival))
    return jobs


def _write(simulation: Simulation, rounds: SynergyRounds) -> None:
    """Starts, ends, service and intervals, in the tables and the log of the run."""
    t = simulation.state.tables
    spells = joined(rounds.spells, rounds.length, rounds.sku, rounds.servers)
    count = len(rounds.jobs)
    first, pieces = np.full(count, np.nan), np.zeros(count, dtype=np.int64)
    for spell in reversed(spells):
        first[spell.row] = spell.begin
        pieces[spell.row] += 1
    end = np.array([rounds.ends.get(row, np.nan) for row in range(count)])
    done = np.isfinite(end)
    gpus = np.array([job.gpus for job in rounds.jobs], dtype=np.float64)
    t.F[Job.GPUTIME] = [job.attained for job in rounds.jobs]
    t.F[Job.SERVICE] = t.F[Job.GPUTIME] / gpus
    t.F[Job.FIRST_START] = t.F[Job.MARK] = first
    t.F[Job.FINISH] = end
    t.F[Job.DONE] = t.F[Job.SAFE] = np.where(done, t.F[Job.WORK], np.array([job.done / job.steps for job in rounds.jobs]) * t.F[Job.WORK])
    t.rate_changes = np.array([job.changes for job in rounds.jobs], dtype=np.int64)
    t.I[Job.RESTARTS] = t.I[Job.PREEMPTIONS] = np.maximum(pieces - 1, 0)
    t.I[Job.PHASE] = np.where(done, int(Phase.COMPLETED), int(Phase.PENDING))
    row = np.array([spell.row for spell in spells], dtype=np.int64)
    write_log(
        simulation, row=row, option=t.I[Job.OPTION_FIRST][row],
        reason=[int(Reason.FINISHED) if spell.end == end[spell.row] else int(Reason.PREEMPTED) for spell in spells],
        begin=[spell.begin for spell in spells], end=[spell.end for spell in spells], gpus=[len(spell.devices) for spell in spells],
        devices=[device for spell in spells for device in spell.devices],
    )  # fmt: skip
