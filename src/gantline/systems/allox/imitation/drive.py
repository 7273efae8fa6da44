"""The loop of `--regime irfsim`: AlloX and its baselines as IRFsim runs them, job by job (docs/design/irfsim.md).

Between it and the engine: a trace and a cluster as IRFsim sees them, and what it found out in the tables and the log of a run. Samples
are intervals of their job that end at their limit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf

import numpy as np
import polars as pl

from gantline.core.cluster import Cluster, Node
from gantline.core.columns import Job, Option
from gantline.core.errors import TraceError, UsageError
from gantline.core.phases import Phase
from gantline.core.policy import Policy
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.registry import Scope
from gantline.engine.log import Interval
from gantline.models.estimate_chain import Estimates
from gantline.systems.allox.imitation import methods
from gantline.systems.allox.imitation.irfsim import CPU, GPU, IRFsim, IrfsimTask
from gantline.systems.allox.imitation.matching import allox
from gantline.systems.allox.policies.decision import read_weights
from gantline.systems.allox.policies.policy import AlloX, AlloXPlus
from gantline.traces.option_estimates import error_column
from gantline.traces.options import parse_options
from gantline.traces.trace import Trace

#: what IRFsim reads: whether jobs are profiled is the regime's choice, and weights of users count in its forms of DRF alone
SCOPE = Scope(
    "IRFsim",
    frozenset({"track"}),
    {
        "allox": ("alpha",),
        "allox.plus": ("age",),
        "allox.sjf": (),
        "allox.srpt": (),
        "drf": ("weights",),
        "drf-ext": ("weights",),
        "drf-fifo": ("weights",),
        "es": (),
    },
    resources=("cpus", "memory"),
)
FIRST_BETA = 32.0  # cores: what the mean worth of a GPU begins with


def drive(simulation: Simulation, trace: Trace) -> None:
    """Run the trace to its end by IRFsim's rules and leave the result in the simulation's tables and log."""
    policy, state = simulation.engine.policy, simulation.state
    tables = state.tables
    with_gpus, without = _kinds_of_nodes(tables.cluster)
    types = (without[0].type, with_gpus[0].type)
    names = sorted(range(len(tables.users)), key=lambda code: tables.users[code])
    jobs = _read_jobs(trace, types, tables.F[Job.ARRIVAL].tolist(), np.argsort(names)[tables.I[Job.USER]].tolist(), without[0].cpus)
    gpus = sum(node.gpus for node in with_gpus)
    sim = IRFsim(
        jobs,
        _weights(policy, [tables.users[code] for code in names], jobs, tables.F[Job.WEIGHT].tolist()),
        gpus=gpus,
        nodes=len(without),
        cores=without[0].cpus,
        memory=sum(node.memory for node in tables.cluster.nodes),
        profiling=state.regime.name == "irfsim" and policy.name != "drf-fifo",
    )

    def report() -> None:
        if simulation.on_progress is not None:
            simulation.on_progress(sim.now, sim.arrived, sim.arrived - sim.finished)

    sim.run(_method(policy, jobs, tables.ids, sum(node.memory for node in with_gpus) / gpus), report)
    if any(_error_columns(trace, types)):
        simulation.estimates = Estimates("declared")
    _write_result(simulation, sim)
    simulation.engine.decisions = sim.events


def _method(policy: Policy, jobs: list[IrfsimTask], names: list[str], whole: float) -> Callable[[IRFsim], None]:
    """What a policy does at an event; ``whole`` is the memory that comes with one GPU."""
    if isinstance(policy, AlloX):
        return partial(allox, alpha=policy.alpha, names=names)
    if isinstance(policy, AlloXPlus):
        return partial(methods.allox_plus, age=policy.age)
    ratios = [job.units[CPU] * job.true[CPU] / (job.units[GPU] * job.true[GPU]) for job in jobs]
    beta = sum(ratios) / max(len(jobs), 1) + FIRST_BETA / max(len(jobs), 1)  # how many cores a GPU counts as
    known: dict[str, Callable[[IRFsim], None]] = {
        "drf-fifo": partial(methods.drf_fifo, whole=whole),
        "drf": methods.drf,
        "drf-ext": partial(methods.drf_extended, beta=beta),
        "es": methods.equal_share,
        "allox.sjf": methods.shortest_pair,
        "allox.srpt": methods.shortest_remaining_pair,
    }
    return known[policy.name]


def _kinds_of_nodes(cluster: Cluster) -> tuple[list[Node], list[Node]]:
    """The nodes that make up the pool: GPU nodes of one type, and CPU nodes of one type and size."""
    with_gpus = [node for node in cluster.nodes if node.gpus]
    without = [node for node in cluster.nodes if not node.gpus]
    if len({node.type for node in with_gpus}) != 1 or len({(node.type, node.cpus) for node in without}) != 1:
        raise UsageError(
            "IRFsim's clusters have GPUs of one type and CPU nodes of one type and size",
            where=f"cluster '{cluster}'",
            fix="write for example gpu:20x1/0c/64g,cpu:20x0/32c/64g",
        )
    if not (sum(node.memory for node in cluster.nodes) > 0 and without[0].cpus > 0):
        raise UsageError("IRFsim's nodes have cores and memory", where=f"cluster '{cluster}'", fix="write /32c/64g behind its nodes")
    return with_gpus, without


def _read_jobs(trace: Trace, types: tuple[str, str], arrival: list[float], user: list[int], cores: float) -> list[IrfsimTask]:
    """Times and demands from the ``options`` column, errors of estimates from ``<type>_err`` (or ``cpu_err``, ``gpu_err``)."""
    frame, jobs = trace.frame, []
    names = frame["job"].to_list()
    errors = [
        frame[column].cast(pl.Float64).fill_null(0.0).fill_nan(0.0).to_list() if column else [0.0] * frame.height
        for column in _error_columns(trace, types)
    ]
    for row, text in enumerate(frame["options"].to_list() if "options" in frame.columns else [""] * frame.height):
        units, memory, true = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
        for way in parse_options(text or ""):
            device = GPU if way.gpus else CPU
            if way.type == types[device]:
                units[device], memory[device], true[device] = way.gpus or way.cpus, way.memory, way.duration
        if min(true) <= 0.0:
            cpu, gpu = types
            raise TraceError(
                f"job '{names[row]}' lacks a way to run on '{gpu}' or '{cpu}'; IRFsim's jobs have both",
                file=trace.source,
                line=row + 2,
                field="options",
                fix=f"write {gpu}:1/0/2=SECONDS|{cpu}:0/{cores:g}/4=SECONDS, or use another --regime",
            )
        reported = [time * (1.0 + error[row]) for time, error in zip(true, errors)]
        number = int(names[row]) if names[row].isdigit() else row
        jobs.append(IrfsimTask(row, user[row], arrival[row], number, units, memory, true, reported))
    return jobs


def _error_columns(trace: Trace, types: tuple[str, str]) -> list[str]:
    """The columns that say how wrong estimates on the CPU and on the GPU are; empty: none."""
    return [error_column(trace.frame, name, device == GPU) for device, name in enumerate(types)]


def _weights(policy: Policy, users: list[str], jobs: list[IrfsimTask], weight: list[float]) -> list[float]:
    """How much users count: as the policy says, or the most that one of their jobs does."""
    found = [0.0] * len(users)
    for job in jobs:
        found[job.user] = max(found[job.user], weight[job.row])
    given = read_weights(getattr(policy, "weights", ()))
    return [given.get(name, value if value > 0.0 else 1.0) for name, value in zip(users, found)]


def _write_result(simulation: Simulation, sim: IRFsim) -> None:
    """Fill in starts, ends, service and intervals."""
    state, t = simulation.state, simulation.state.tables
    F, I, n = t.F, t.I, len(sim.jobs)
    row = np.array([span.task.row for span in sim.spans], dtype=np.int64)
    device = np.array([span.device for span in sim.spans], dtype=np.int64)
    begin, end = np.array([span.begin for span in sim.spans]), np.array([span.end for span in sim.spans])
    full = np.array([span.task.sample < 0 for span in sim.spans], dtype=bool)
    last = np.array([span is span.task.span for span in sim.spans], dtype=bool)
    width = np.where(device == GPU, [span.task.units[GPU] for span in sim.spans], 0.0)
    seconds = np.where(full, end - begin, 0.0)
    F[Job.SERVICE] = np.bincount(row, weights=seconds, minlength=n)
    F[Job.GPUTIME] = np.bincount(row, weights=seconds * width, minlength=n)
    I[Job.RESTARTS] = I[Job.PREEMPTIONS] = np.maximum(np.bincount(row[full], minlength=n) - 1, 0)
    F[Job.FIRST_START] = F[Job.MARK] = [job.first_start for job in sim.jobs]
    F[Job.FINISH] = [job.finish for job in sim.jobs]
    done = ~np.isnan(F[Job.FINISH])
    F[Job.DONE] = F[Job.SAFE] = np.where(done, F[Job.WORK], 0.0)
    I[Job.PHASE] = np.where(done, int(Phase.COMPLETED), int(Phase.PENDING))
    state.now = float(end.max(initial=0.0))
    reason = np.where(full, np.where(last, int(Reason.FINISHED), int(Reason.PREEMPTED)), int(Reason.LIMIT))
    nodes, held = _devices(simulation, sim)
    option = np.zeros((n, 2), dtype=np.int64)  # of each job on each device
    option[np.repeat(np.arange(n), I[Job.OPTION_COUNT]), np.where(t.options.I[Option.GPUS] > 0, GPU, CPU)] = np.arange(len(t.options))
    sizes = np.array([len(devices) for devices in held], dtype=np.int64)
    log, count = state.log, len(row)
    log.reserve(count, int(sizes.sum()))
    log.LI[Interval.ROW, :count], log.LI[Interval.OPTION, :count], log.LI[Interval.REASON, :count] = row, option[row, device], reason
    log.LI[Interval.OFFSET, :count], log.LI[Interval.COUNT, :count], log.LI[Interval.NODE, :count] = np.cumsum(sizes) - sizes, sizes, nodes
    log.LF[Interval.START, :count], log.LF[Interval.END, :count] = begin, end
    log.LD[: sizes.sum()] = [gpu for devices in held for gpu in devices]
    log.LN[:] = count, sizes.sum()


def _devices(simulation: Simulation, sim: IRFsim) -> tuple[list[int], list[list[int]]]:
    """A pool has no devices, so every interval, in order of the beginnings, gets the lowest GPUs or the lowest CPU node that are free."""
    t = simulation.state.tables
    cpu_nodes = [number for number, node in enumerate(t.cluster.nodes) if not node.gpus]
    gpu_free, node_free = [-inf] * t.D.shape[1], [-inf] * len(cpu_nodes)
    nodes, held = [], []
    for span in sim.spans:
        free_at, wanted = (gpu_free, int(span.task.units[GPU])) if span.device == GPU else (node_free, 1)
        found = [place for place, end in enumerate(free_at) if end <= span.begin][:wanted]
        for place in found:
            free_at[place] = span.end
        nodes.append(cpu_nodes[found[0]] if span.device == CPU and found else -1)
        held.append(found if span.device == GPU else [])
    return nodes, held
