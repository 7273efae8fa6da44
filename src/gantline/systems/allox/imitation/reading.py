"""A trace and a cluster as IRFsim sees them: jobs with a CPU and a GPU way, one pool of cores, GPUs and memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.errors import TraceError, UsageError
from gantline.systems.allox.imitation.world import (
    ARRIVAL,
    CODE_COLUMNS,
    COUNTS,
    CPU,
    DEVICE,
    FINISH,
    FIRST_START,
    GPU,
    GROUP,
    GROUP_FIRST,
    LISTS,
    NEEDS_MEMORY,
    OWNER,
    REPORTED,
    SAMPLE,
    TASK_COLUMNS,
    TRUE,
    UNITS,
    USER_COLUMNS,
    World,
)
from gantline.traces.option_estimates import error_column
from gantline.traces.options import parse_options
from gantline.traces.trace import Trace

SAMPLE_MEMORY = (16.0, 12.0)  # GB of a sample on a CPU node and on a GPU
SAMPLE_SHARES = (0.01, 0.02)
FIRST_BETA = 32.0  # cores: what the mean worth of a GPU begins with


@dataclass(frozen=True)
class IrfsimPool:
    """The cluster as one machine."""

    gpu_type: str
    cpu_type: str
    gpus: int
    nodes: int
    cores: float  # per CPU node
    memory: float  # in all
    whole: float  # memory that comes with one GPU

    @staticmethod
    def of(cluster: Cluster) -> IrfsimPool:
        """The pool that the nodes make up; they must be GPU nodes of one type and CPU nodes of one type and size."""
        with_gpus = [node for node in cluster.nodes if node.gpus]
        without = [node for node in cluster.nodes if not node.gpus]
        if len({node.type for node in with_gpus}) != 1 or len({(node.type, node.cpus) for node in without}) != 1:
            raise UsageError(
                "IRFsim's clusters have GPUs of one type and CPU nodes of one type and size",
                where=f"cluster '{cluster}'",
                fix="write for example gpu:20x1/0c/64g,cpu:20x0/32c/64g",
            )
        gpus = sum(node.gpus for node in with_gpus)
        memory = sum(node.memory for node in cluster.nodes)
        whole = sum(node.memory for node in with_gpus) / gpus
        if not (memory > 0 and without[0].cpus > 0):
            raise UsageError("IRFsim's nodes have cores and memory", where=f"cluster '{cluster}'", fix="write /32c/64g behind its nodes")
        return IrfsimPool(with_gpus[0].type, without[0].type, gpus, len(without), without[0].cpus, memory, whole)


@dataclass(frozen=True)
class IrfsimJobs:
    """The jobs of a trace; columns over (CPU, GPU)."""

    number: Ints  # the number that AlloX' hash table sees
    units: Floats
    memory: Floats
    true: Floats
    reported: Floats

    @property
    def beta(self) -> float:
        """How many cores a GPU counts as in DRF extended."""
        n = len(self.true)
        ratios = (self.units[:, CPU] * self.true[:, CPU] / (self.units[:, GPU] * self.true[:, GPU])).tolist()
        return sum(ratios) / n + FIRST_BETA / n if n else FIRST_BETA


def read_jobs(trace: Trace, pool: IrfsimPool) -> IrfsimJobs:
    """Times and demands from the ``options`` column, errors of estimates from ``<type>_err`` (or ``cpu_err``, ``gpu_err``)."""
    frame = trace.frame
    n = frame.height
    units, memory, true = np.zeros((n, 2)), np.zeros((n, 2)), np.zeros((n, 2))
    for row, text in enumerate(frame["options"].to_list() if "options" in frame.columns else [None] * n):
        for way in parse_options(text or ""):
            device = GPU if way.gpus else CPU
            if way.type == (pool.gpu_type, pool.cpu_type)[device == CPU]:
                units[row, device], memory[row, device], true[row, device] = way.gpus or way.cpus, way.memory, way.duration
    lacking = np.flatnonzero(np.any(true <= 0, axis=1))
    if len(lacking):
        raise TraceError(
            f"job '{frame['job'][int(lacking[0])]}' lacks a way to run on '{pool.gpu_type}' or '{pool.cpu_type}'; IRFsim's jobs have both",
            file=trace.source,
            line=int(lacking[0]) + 2,
            field="options",
            fix=f"write {pool.gpu_type}:1/0/2=SECONDS|{pool.cpu_type}:0/{pool.cores:g}/4=SECONDS, or use another --regime",
        )
    columns = error_column(frame, pool.cpu_type, False), error_column(frame, pool.gpu_type, True)
    error = np.stack([_errors(frame, column) for column in columns], axis=1)
    names = frame["job"].to_list()
    number = np.array([int(name) if name.isdigit() else row for row, name in enumerate(names)], dtype=np.int64)
    return IrfsimJobs(number, units, memory, true, true * (1.0 + error))


def has_errors(trace: Trace, pool: IrfsimPool) -> bool:
    """Whether the trace says how wrong its estimates are."""
    return bool(error_column(trace.frame, pool.gpu_type, True) or error_column(trace.frame, pool.cpu_type, False))


def _errors(frame: pl.DataFrame, column: str) -> Floats:
    return frame[column].cast(pl.Float64).fill_null(0.0).fill_nan(0.0).to_numpy() if column else np.zeros(frame.height)


def build_world(jobs: IrfsimJobs, owner: Ints, arrival: Floats, users: int, pool: IrfsimPool, profiling: bool) -> World:
    """Everything idle and no job present yet; with profiling, four samples behind every job's row."""
    n = len(arrival)
    size = 5 * n if profiling else n
    job = np.concatenate((np.arange(n), np.repeat(np.arange(n), 4 if profiling else 0)))
    tasks, codes = np.zeros((TASK_COLUMNS, size)), np.full((CODE_COLUMNS, size), -1, dtype=np.int64)
    tasks[ARRIVAL] = arrival[job]
    tasks[[FIRST_START, FINISH]] = np.nan
    given = ((UNITS, jobs.units), (NEEDS_MEMORY, jobs.memory), (TRUE, jobs.true), (REPORTED, jobs.reported))
    for column, values in given:
        tasks[column : column + 2, :n] = values.T
    if profiling:
        times = np.stack([np.maximum(1.0, share * jobs.true) for share in SAMPLE_SHARES] * 2, axis=1).reshape(-1, 2).T
        tasks[TRUE : TRUE + 2, n:] = tasks[REPORTED : REPORTED + 2, n:] = times
        tasks[UNITS : UNITS + 2, n:] = [[pool.cores], [1.0]]
        tasks[NEEDS_MEMORY : NEEDS_MEMORY + 2, n:] = np.array(SAMPLE_MEMORY)[:, None]
        codes[SAMPLE, n:] = np.tile((CPU, CPU, GPU, GPU), n)
    group = np.cumsum(np.concatenate(([0], np.diff(arrival) > 0)))[:n]
    codes[OWNER], codes[GROUP], codes[DEVICE] = owner[job], group[job], GPU
    places = np.bincount(codes[OWNER], minlength=users)
    lists = np.zeros((LISTS, 2 * size + users + 1), dtype=np.int64)
    lists[GROUP_FIRST, :n] = np.searchsorted(group, np.arange(n))
    capacity = (pool.nodes * pool.cores, float(pool.gpus), pool.memory)
    return World(
        jobs=n,
        tasks=tasks,
        codes=codes,
        users=np.zeros((USER_COLUMNS, users)),
        queues=np.stack((np.cumsum(places) - places, np.zeros(users, dtype=np.int64))),
        pool=np.array([*capacity, *capacity, 0.0]),
        counts=np.zeros(COUNTS, dtype=np.int64),
        lists=lists,
        keys=np.zeros((2, 2 * size)),
        booked=np.full(pool.gpus + pool.nodes, np.nan),
        log_codes=np.zeros((2, 2 * size + 1024), dtype=np.int64),
        log_times=np.zeros((2, 2 * size + 1024)),
    )


def with_more_log(world: World) -> World:
    """The same world with room for twice as many intervals."""
    return world._replace(log_codes=np.tile(world.log_codes, 2), log_times=np.tile(world.log_times, 2))
