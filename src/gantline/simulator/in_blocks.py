"""`simulate_in_blocks(trace, cluster, policy, ...)`: a trace of any length in bounded memory.

Jobs come from a Parquet file, a block at a time, and those that have ended leave the memory; their results are kept on disk until the table
of jobs is written, in blocks again. The summary reads that disk one column at a time, which takes eight bytes a job.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.columns import Job, Node
from gantline.core.errors import RefusedError, UsageError
from gantline.core.machine_code import let_go
from gantline.core.options import OptionTable
from gantline.core.phases import COMPLETED
from gantline.core.policy import Policy
from gantline.core.tables import Tables
from gantline.engine.assembly.guard import asked
from gantline.engine.assembly.run_rules import RunRules, provided_needs
from gantline.engine.assembly.spec import OPTIONS, RunSpec
from gantline.engine.declared_key import LinearKey
from gantline.engine.dense.backfill import forecast
from gantline.engine.dense.devices import devices
from gantline.engine.dense.gangs import LoopSetting, to_lines
from gantline.engine.dense.heap import HEAPS, Heaps, heaps
from gantline.engine.dense.queues import Lane, Lanes, queues
from gantline.engine.dense.records import Record, Records
from gantline.engine.drivers.key_reading import read_key
from gantline.engine.drivers.record_loop import OnRecords, at_asked_speed, blank_records, key_and_pass, run_records
from gantline.engine.drivers.simulation import Simulation, report_on
from gantline.engine.drivers.six_steps import LoopTime, Outcome, as_priorities, clock_of, count_in, take_order
from gantline.engine.imitations.registry import find_imitation
from gantline.engine.lists import RowCount
from gantline.engine.log import Interval, Log, LogSize
from gantline.engine.settings import Amount
from gantline.engine.state import State
from gantline.simulator.block_files import Kept
from gantline.simulator.summary import changes_of, summarise, what_jobs_held
from gantline.traces.blocks import TraceBlocks
from gantline.traces.files.clusters import read_cluster
from gantline.traces.files.policies import policy_of
from gantline.traces.performance import scaling_model
from gantline.traces.write import write_blocks

# --- the run ------------------------------------------------------------------------------------------------------------
BLOCK = 250_000
_KNOWN = frozenset({"placement", "admission", "regime", "round", "costs", "min_run", "seed", "budget"})


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
        kept = Kept(Path(name))
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


def _run(blocks: TraceBlocks, place: Cluster, policy: Policy, spec: RunSpec, kept: Kept, on_progress: object) -> tuple[Simulation, Policy]:
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
            window.run(state.tables, math.inf if following is None else float(following.tables.F[Job.ARRIVAL, 0]))
    assert window is not None
    window.end()
    return window.simulation, policy


def _window(state: State, policy: Policy, spec: RunSpec, place: Cluster, kept: Kept, on_progress: Any) -> tuple[Policy, JobWindow]:
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


# --- the loop on records over a window of jobs: those that wait or run, and the next block of those to come ---------------
# Rows that have ended leave the window between two blocks, and what is left keeps its order. Ties are broken by that order, so the window
# decides as the whole table would: a test holds the logs of both against each other.


class JobWindow:
    """One run of a key that is a sum, block after block."""

    def __init__(self, simulation: Simulation, key: LinearKey, kept: Kept) -> None:
        state, NI = simulation.state, simulation.state.tables.NI
        gpus = int(NI[Node.GPUS].sum())
        self.simulation, self.kept = simulation, kept
        self.clock = clock_of(state.regime, simulation.bounds)
        self.declared = key
        self.key, self.work = key_and_pass(state, key, gpus + 1)
        self.plan = forecast(0.0, 0, gpus, False)
        self.ds, self.number = devices(NI, state.rule.one_node), np.zeros(len(RowCount) + 1, dtype=np.int64)
        self.rows: Ints = np.zeros(0, dtype=np.int64)  # what each line of the window is called in the whole run
        self.jobs = blank_records(0)
        self.heaps = heaps(self.jobs)
        self.queues, _ = queues(np.zeros(0, dtype=np.int64))
        self.room = 2 * gpus + 65536
        self.log = Log(4 * self.room, 4 * self.room)
        self.open: Ints = np.zeros(0, dtype=np.int64)  # the numbers of intervals that the log holds because they have not ended
        self.reported = [0, 0]  # intervals and devices that have been reported
        self._arrived = 0

    def run(self, block: Tables, until: float) -> None:
        """Let the jobs of a block in, and run as long as no other job matters: to just before `until`, when the next block begins."""
        self._take(block)
        self.clock.time[LoopTime.UNTIL] = np.nextafter(until, -np.inf)
        rates = OptionTable.blank(len(self.rows))
        rates.rate[:] = rates.rate_spread[:] = 1.0
        setting, code = LoopSetting(self.simulation.state.SI, self.simulation.state.SF, rates.F), Outcome.NEED_LOG
        while code == Outcome.NEED_LOG:
            log = self.log
            log.reserve(self.room, self.room)
            on = OnRecords(self.jobs, self.heaps, self.queues, self.ds, log.columns, setting, self.key, self.work, self.plan)
            code = run_records(on, self.number, self.clock)
            self._tell_log()
        gone = self.jobs.i[:, Record.STATE] == COMPLETED
        self.kept.left(self.rows[gone], Records(self.jobs.f[gone], self.jobs.i[gone]))
        self._let_go(gone)
        if self.simulation.on_progress is not None:
            self.simulation.on_progress(float(self.clock.time[LoopTime.NOW]), self._arrived, int(self.number[RowCount.ACTIVE]))

    def end(self) -> None:
        """No job is to come: report which are left, and what the run came to."""
        assert not len(self.open), "every gang that runs has an end"
        self.kept.left(self.rows, self.jobs)
        count_in(self.simulation.engine, self.clock)

    def _take(self, block: Tables) -> None:
        """Put the rows of a block behind those that are here."""
        old, fresh = len(self.rows), block.F.shape[1]
        jobs = blank_records(old + fresh)
        jobs.f[:old], jobs.i[:old] = self.jobs.f, self.jobs.i
        needs = np.concatenate([self.jobs.i[:, Record.NEED].astype(np.int64), block.I[Job.GPUS]])
        lanes, lane_of = queues(needs)
        to_lines(block.F, block.I, lane_of[old:], jobs.f[old:], jobs.i[old:])
        jobs.i[:, Record.LANE], jobs.i[:, Record.OPTION] = lane_of, np.arange(old + fresh)
        _move_queues(self.queues, lanes)
        self.queues, self.heaps, self.jobs = lanes, _moved_heaps(self.heaps, np.arange(old), jobs), jobs
        self.rows = np.concatenate([self.rows, self._arrived + np.arange(fresh)])
        self._arrived += fresh

    def _let_go(self, gone: Bools) -> None:
        """Only jobs that are not gone stay, in the same order."""
        stay = ~gone
        place = np.cumsum(stay) - 1
        self.number[RowCount.HELD] = np.count_nonzero(stay[: self.number[RowCount.HELD]])
        self.number[RowCount.NEXT] = np.count_nonzero(stay[: self.number[RowCount.NEXT]])
        for lane in range(self.queues.lane.shape[1]):
            at = _ring(self.queues, lane)
            self.queues.row[at] = place[self.queues.row[at]]
        held = self.log.LI[Interval.ROW, : len(self.open)]
        held[:] = place[held]
        self.jobs, self.rows = Records(self.jobs.f[stay], self.jobs.i[stay]), self.rows[stay]
        self.heaps = _moved_heaps(self.heaps, place, self.jobs)

    def _tell_log(self) -> None:
        """Report the new intervals of the log; only those that have not ended stay in it."""
        log, held = self.log, len(self.open)
        n, d = int(log.LN[LogSize.INTERVALS]), int(log.LN[LogSize.DEVICES])
        LI, LF = log.LI[:, :n], log.LF[:, :n]
        ended = ~np.isnan(LF[Interval.END])
        self.kept.closed(self.open[ended[:held]], LF[Interval.END, :held][ended[:held]], LI[Interval.REASON, :held][ended[:held]])
        new = LI[:, held:]
        offset = new[Interval.OFFSET].astype(np.int64) + self.reported[1]
        self.kept.begun(
            self.rows[new[Interval.ROW]], new[Interval.REASON], offset, new[Interval.COUNT], new[Interval.NODE], LF[:, held:], log.LD[:d]
        )
        numbers = np.concatenate([self.open, self.reported[0] + np.arange(n - held)])[~ended]
        self.reported[0] += n - held
        self.reported[1] += d
        stay = np.flatnonzero(~ended)
        self.jobs.i[LI[Interval.ROW, stay], Record.INTERVAL] = np.arange(len(stay))
        log.LI[:, : len(stay)], log.LF[:, : len(stay)] = LI[:, stay], LF[:, stay]
        log.LN[LogSize.INTERVALS], log.LN[LogSize.DEVICES], self.open = len(stay), 0, numbers


def _moved_heaps(old: Heaps, place: NDArray[np.int64], jobs: Records) -> Heaps:
    """The same heaps over rows that are called otherwise; a heap does not look at its rows, so that each stays where it was in it."""
    new = heaps(jobs)
    new.size[:] = old.size
    for which in range(HEAPS):  # the scratch is empty between two passes
        size = int(old.size[which])
        new.key[which, :size] = old.key[which, :size]
        new.row[which, :size] = place[old.row[which, :size]]
    return new


def _ring(queues: Lanes, lane: int) -> Ints:
    """The places of a lane's rows, the first one first."""
    base, mask, head, count = (queues.lane[what, lane] for what in (Lane.BASE, Lane.MASK, Lane.HEAD, Lane.COUNT))
    return np.asarray(base + ((head + np.arange(count)) & mask))


def _move_queues(old: Lanes, new: Lanes) -> None:
    """Jobs that wait, into other lanes of the same sizes."""
    lane_of = {int(size): lane for lane, size in enumerate(new.lane[Lane.SIZE])}
    new.waiting[:] = old.waiting
    for lane, size in enumerate(old.lane[Lane.SIZE].tolist()):
        count = int(old.lane[Lane.COUNT, lane])
        if size in lane_of:
            other = lane_of[size]
            at = _ring(old, lane)
            first = int(new.lane[Lane.BASE, other])
            new.key[first : first + count], new.row[first : first + count] = old.key[at], old.row[at]
            new.lane[Lane.COUNT, other], new.lane[Lane.WHY, other], new.first[other] = count, old.lane[Lane.WHY, lane], old.first[lane]
