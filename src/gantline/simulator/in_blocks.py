"""`simulate_in_blocks(trace, cluster, policy, ...)`: a trace of any length in bounded memory.

Jobs come from a Parquet file, a block at a time, and those that have ended leave the memory; their results are kept on disk until the table
of jobs is written, in blocks again. The summary reads that disk one column at a time, which takes eight bytes a job.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gantline.core.arrays import Floats
from gantline.core.cluster import Cluster
from gantline.core.columns import Job, JobTable
from gantline.core.errors import RefusedError, UsageError
from gantline.core.machine_code import let_go
from gantline.core.policy import Policy
from gantline.core.tables import Tables
from gantline.engine.assembly.guard import asked
from gantline.engine.assembly.run_rules import RunRules, provided_needs
from gantline.engine.assembly.spec import OPTIONS, RunSpec
from gantline.engine.declared_key import LinearKey
from gantline.engine.dense.records import Record, Records
from gantline.engine.drivers.key_reading import read_key
from gantline.engine.drivers.loop_clock import as_priorities, take_order
from gantline.engine.drivers.record_loop import at_asked_speed
from gantline.engine.drivers.simulation import Simulation, report_on
from gantline.engine.drivers.window import JobWindow
from gantline.engine.imitations.registry import find_imitation
from gantline.engine.log import INTERVAL_FLOATS, INTERVAL_INTS, Interval, Log
from gantline.engine.settings import Amount
from gantline.engine.state import State
from gantline.simulator.run import Run
from gantline.simulator.run_columns import Held
from gantline.simulator.summary import changes_of, summarise, what_jobs_held
from gantline.traces.blocks import TraceBlocks
from gantline.traces.files.clusters import read_cluster
from gantline.traces.files.policies import policy_of
from gantline.traces.performance import scaling_model
from gantline.traces.write import write_blocks

# --- columns on disk: lines are appended in order, and amended when more is known of them -------------------------------
_SHARE = 1 << 24  # bytes read at once


class ColumnFiles:
    """A matrix (column, line) in files, read as the tables are: ``files[column]`` and ``files[column, low:high]``.

    Columns of which nothing happens (`zero`) take no room; any other that is not kept is a mistake of the reader.
    """

    def __init__(self, folder: Path, name: str, kinds: Mapping[int, Any], read_as: Any = None, zero: tuple[int, ...] = ()) -> None:
        self._path = {column: folder / f"{name}{column}" for column in kinds}
        self._kind = {column: np.dtype(kind) for column, kind in kinds.items()}
        self._read_as, self._zero = read_as, zero
        self._lines = 0
        for path in self._path.values():
            path.touch()

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._path), self._lines

    def append(self, values: Mapping[int, Any], lines: int) -> None:
        """More lines at the end; a column is given whole, or as one number for all of them."""
        for column, path in self._path.items():
            with path.open("ab") as file:
                file.write(np.broadcast_to(np.asarray(values[column], dtype=self._kind[column]), lines).tobytes())
        self._lines += lines

    def amend(self, places: NDArray[np.int64], values: Mapping[int, object]) -> None:
        """Other values in some lines."""
        if len(places):
            for column, value in values.items():
                np.memmap(self._path[column], self._kind[column], mode="r+")[places] = value

    def __getitem__(self, wanted: Any) -> NDArray[Any]:
        column, lines = wanted if isinstance(wanted, tuple) else (wanted, slice(None))
        if column in self._zero:
            return np.zeros(self._lines, dtype=self._read_as)[lines]
        low, high, _ = lines.indices(self._lines)
        kind = self._kind[column]
        found = np.fromfile(self._path[column], kind, count=max(high - low, 0), offset=low * kind.itemsize)
        return found if self._read_as is None else found.astype(self._read_as, copy=False)

    def bytes_of(self, column: int) -> Iterator[bytes]:
        """A column as it would lie in memory."""
        with self._path[column].open("rb") as file:
            while share := file.read(_SHARE):
                yield share


class _JobsOnDisk:
    """Columns of jobs by name, as `core.columns.JobTable` has them; each is read when it is asked for, and not kept."""

    def __init__(self, F: ColumnFiles, I: ColumnFiles) -> None:
        self._files = {np.float64: F, np.int64: I}

    def __getattr__(self, name: str) -> NDArray[Any]:
        column = getattr(JobTable, name)
        return self._files[column.kind][column.place]


class LogOnDisk:
    """The log of a run, on disk. It reads as `engine.log.Log` does."""

    def __init__(self, folder: Path) -> None:
        self.LI = ColumnFiles(folder, "entry", dict.fromkeys(range(INTERVAL_INTS), np.int32))
        self.LF = ColumnFiles(folder, "time", dict.fromkeys(range(INTERVAL_FLOATS), np.float64))
        self._devices = ColumnFiles(folder, "device", {0: np.int32})

    def append(self, entry: Mapping[int, Any], time: Mapping[int, Any], devices: NDArray[np.int32]) -> None:
        """Intervals that have begun, and all their devices."""
        self.LI.append(entry, len(entry[Interval.ROW]))
        self.LF.append(time, len(entry[Interval.ROW]))
        self._devices.append({0: devices}, len(devices))

    @property
    def LD(self) -> NDArray[np.int32]:
        return self._devices[0]

    @property
    def LN(self) -> tuple[int, int]:
        return self.intervals, self._devices.shape[1]

    @property
    def intervals(self) -> int:
        return self.LI.shape[1]

    def hash(self) -> str:
        """The hash that the same log has in memory."""
        digest = hashlib.blake2b(digest_size=16)
        columns = [(self.LI, k) for k in range(INTERVAL_INTS)] + [(self.LF, k) for k in range(INTERVAL_FLOATS)] + [(self._devices, 0)]
        for files, column in columns:
            for share in files.bytes_of(column):
                digest.update(share)
        return digest.hexdigest()


# --- the run ------------------------------------------------------------------------------------------------------------
BLOCK = 250_000
_KNOWN = frozenset({"placement", "admission", "regime", "round", "costs", "min_run", "seed", "budget"})
_FLOATS = (Job.ARRIVAL, Job.DEADLINE, Job.FIRST_START, Job.FINISH, Job.MARK, Job.SERVICE)
_INTS = (Job.PHASE, Job.PREEMPTIONS, Job.RESTARTS, Job.MIN_GPUS, Job.MAX_GPUS)


def simulate_in_blocks(
    trace: str | Path,
    cluster: Cluster | str | Path,
    policy: Policy | str,
    *,
    block: int = BLOCK,
    jobs_out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    on_progress: Callable[[float, int, int], None] | None = None,
    spec: RunSpec | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Simulate a trace that is too long for memory; returns the summary, which equals that of `simulate` to the last digit.

    >>> summary = simulate_in_blocks("jobs.parquet", "12500x8", "srtf", round=60, jobs_out="ended.parquet")

    `trace`: a Parquet file of jobs. `block`: how many of them to read at a time; smaller takes less memory and a little more time.
    `jobs_out`: where to write a row per job, as ``gantline simulate --jobs-out`` does.
    Orders with a key that is a sum of columns (fifo, sjf, srtf, las, tiresias, ...) on one device type; of the options of a run: placement,
    admission, regime, round, costs, min_run, seed. Anything else is refused.
    """
    began, cpu_began = time.perf_counter(), time.process_time()
    if block < 1:
        raise UsageError(f"a block of {block} jobs", where="--block", fix="write a whole number above zero, such as 250000")
    spec = _checked(RunSpec.of(options, spec))
    blocks, place = TraceBlocks(Path(trace), block), read_cluster(cluster)
    target = None if jobs_out is None else Path(jobs_out)
    with tempfile.TemporaryDirectory(prefix=".gantline-blocks.", dir=target.parent if target is not None else None) as name:
        kept = _Kept(Path(name))
        source = SimpleNamespace(source=blocks.source, hash=blocks.checked(Path(name)))
        chosen = policy_of(policy, settings)
        simulation, chosen = _run(blocks, place, chosen, spec, kept, on_progress)
        let_go()
        state: Any = simulation.state
        state.tables, state.log = kept.tables(state.tables), kept.log
        parts = chosen, source, place, simulation.estimates, state.placement, simulation.admission
        held = what_jobs_held(simulation)
        summary = summarise(simulation, *parts, spec.seed, held)  # type: ignore[arg-type]
        summary |= changes_of(simulation)
        if target is not None:
            write_blocks(kept.frames(_states(blocks, place, spec), held), target)
    summary["wall_seconds"] = time.perf_counter() - began
    summary["cpu_seconds"] = time.process_time() - cpu_began
    return summary


def _checked(spec: RunSpec) -> RunSpec:
    for known in OPTIONS.values():
        if known.name not in _KNOWN and getattr(spec, known.name) != known.default:
            fix = f"leave out {known.flag}, or run without --block"
            raise RefusedError(f"a run in blocks does not support {known.flag}", where="--block", fix=fix)
    return spec


def _states(blocks: TraceBlocks, place: Cluster, spec: RunSpec) -> Iterator[State]:
    """The blocks as separate tables; none of their jobs has arrived."""
    rules = RunRules.of(spec, place)
    for trace in blocks:
        tables = rules.load(trace, place)
        tables.performance = scaling_model(trace, place)
        yield rules.state(tables)


def _run(blocks: TraceBlocks, place: Cluster, policy: Policy, spec: RunSpec, kept: _Kept, on_progress: object) -> tuple[Simulation, Policy]:
    """Drive the window over all blocks."""
    window: JobWindow | None = None
    for state, following in pairwise(chain(_states(blocks, place, spec), [None])):
        assert state is not None
        if window is None:
            policy, window = _window(state, policy, spec, place, kept, on_progress)
        key, numbers = _key_in(state, policy, window.simulation.engine.guard)
        if key != window.declared:
            raise RefusedError("the key is another sum in another block", where="--block", fix="run without --block")
        del state.tables.lent  # the tables would stay as long as the functions that lend them
        kept.take(state.tables)
        with as_priorities(numbers, state.tables):
            window.run(state.tables, math.inf if following is None else float(following.tables.jobs.arrival[0]))
    assert window is not None
    window.end()
    return window.simulation, policy


def _window(state: State, policy: Policy, spec: RunSpec, place: Cluster, kept: _Kept, on_progress: Any) -> tuple[Policy, JobWindow]:
    """The window of this run, and the policy as the run has it; `state` is that of the first block."""
    if find_imitation(state.regime.name) is not None:
        raise RefusedError(f"regime '{state.regime.name}' has a loop of its own", where="--block", fix="run without --block")
    rules = RunRules.of(spec, place)
    guard = rules.guard(policy)
    policy = rules.policy(policy, guard)
    name = policy.name or type(policy).__name__
    rules.estimates.provide(name, asked(policy, guard, lambda: frozenset(policy.needs)), provided_needs(state.tables, rules.facts))
    simulation = Simulation(rules.engine(state, policy, guard), rules.admission, rules.estimates, on_progress=on_progress)
    if obstacle := simulation.between_decisions():
        raise RefusedError(f"a run in blocks is compiled: {obstacle}", where="--block", fix="run without --block")
    simulation.loop = report_on("records")
    key, _ = _key_in(state, policy, guard)
    take_order(state, policy)
    kept.credit = float(state.SF[Amount.CREDIT])
    return policy, JobWindow(simulation, key, kept)


def _key_in(state: State, policy: Policy, guard: Any) -> tuple[LinearKey, Floats | None]:
    """The policy's key, read from the jobs of a block."""
    found = read_key(policy, state, guard)
    if found.key is None or not found.on_records:
        why = found.why_tables or found.why_asked
    elif found.key.promises:
        why = f"policy '{policy.name or type(policy).__name__}' backfills"
    elif state.tables.performance is not None or not at_asked_speed(state):
        why = "jobs run at other speeds than they asked for"
    else:
        return found.key, found.numbers
    raise RefusedError(f"a run in blocks is one on records: {why}", where="--block", fix="run without --block")


class _Kept:
    """What has left the window, on disk."""

    def __init__(self, folder: Path) -> None:
        self.credit = 0.0
        self.log = LogOnDisk(folder)
        self.F = ColumnFiles(folder, "f", dict.fromkeys(_FLOATS, np.float64), np.float64, zero=(Job.LOST,))
        self.I = ColumnFiles(folder, "i", dict.fromkeys(_INTS, np.int32), np.int64)

    def take(self, block: Tables) -> None:
        """Jobs that are to come; what they come to is amended when they leave."""
        rows = block.F.shape[1]
        self.F.append({column: block.F[column] for column in _FLOATS}, rows)
        self.I.append({column: block.I[column] for column in _INTS}, rows)

    def begun(self, row: Any, reason: Any, offset: Any, count: Any, node: Any, time: Any, devices: Any) -> None:
        if len(offset) and offset[-1] > np.iinfo(np.int32).max:
            raise RefusedError("two thousand million devices were given out", where="--block", fix="cut the trace in two")
        entry = {
            Interval.ROW: row,
            Interval.OPTION: row,
            Interval.REASON: reason,
            Interval.OFFSET: offset,
            Interval.COUNT: count,
            Interval.NODE: node,
        }
        self.log.append(entry, {Interval.START: time[Interval.START], Interval.END: time[Interval.END]}, devices)

    def closed(self, intervals: Any, end: Any, reason: Any) -> None:
        self.log.LF.amend(intervals, {Interval.END: end})
        self.log.LI.amend(intervals, {Interval.REASON: reason})

    def left(self, rows: Any, jobs: Records) -> None:
        f, i = jobs
        first, starts = f[:, Record.FIRST_START], i[:, Record.STARTS]
        fields = {Job.FIRST_START: first, Job.FINISH: f[:, Record.FINISH], Job.MARK: np.where(starts > 0, first + self.credit, np.nan)}
        self.F.amend(rows, fields | {Job.SERVICE: f[:, Record.SERVICE]})
        self.I.amend(rows, {Job.PHASE: i[:, Record.STATE], Job.PREEMPTIONS: i[:, Record.STOPS], Job.RESTARTS: np.maximum(starts - 1, 0)})

    def tables(self, block: Tables) -> SimpleNamespace:
        """All jobs as a summary reads them; the cluster is that of any block."""
        of_block = {"cluster": block.cluster, "nodes": block.nodes, "devices": block.devices, "NI": block.NI, "D": block.D}
        return SimpleNamespace(F=self.F, I=self.I, jobs=_JobsOnDisk(self.F, self.I), performance=None, metrics={}, **of_block)

    def frames(self, states: Iterator[State], held: Held) -> Iterator[pl.DataFrame]:
        """A row per job, block after block."""
        first = 0
        for state in states:
            tables, last = state.tables, first + state.tables.F.shape[1]
            del tables.lent
            for column in _FLOATS:
                tables.F[column] = self.F[column, first:last]
            for column in _INTS:
                tables.I[column] = self.I[column, first:last]
            yield Run({}, tables, Log(), Held(held.seconds[first:last], held.device_seconds[first:last])).jobs
            first = last
