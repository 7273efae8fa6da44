"""The six steps on the tables: keys are sums that a kernel adds up, or given by the policy, which is asked in between.

The verbs call the same kernels as the stepping loop, so that this loop can stop before any decision and leave the rest to it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import Job, Node, elapsed
from gantline.core.jit import kernel, variant
from gantline.core.plan import Misfit
from gantline.core.policy import OrderPolicy
from gantline.core.tables import Matrices
from gantline.engine import host_resources
from gantline.engine.advance import arrive, finish_due, next_finish, next_movable
from gantline.engine.agenda import answer_ends
from gantline.engine.declared_key import LinearKey, coefficients, next_threshold, sum_of
from gantline.engine.drivers.key_reading import Within
from gantline.engine.drivers.questions import AskedColumns, Questions, room_for, show
from gantline.engine.drivers.six_steps import (
    LoopBounds,
    LoopClock,
    LoopCount,
    LoopTime,
    Outcome,
    Stage,
    Verbs,
    clock_of,
    count_in,
    loop_over,
    take_order,
)
from gantline.engine.drivers.stepping import Standstill
from gantline.engine.engine import Engine
from gantline.engine.gates.quota_walk import QuotaNotes, any_exceeded, count_running, walk_lines
from gantline.engine.lists import Lists, RowCount
from gantline.engine.log import LogColumns, LogSize
from gantline.engine.ranks import sort_rows
from gantline.engine.settings import Amount, EngineRules, Switch
from gantline.engine.walk.ranking import name_blocked
from gantline.engine.walk.walk import walk

OFTEN = 4096  # instants after which the loop comes back in any case, so that alarms are noticed
# known when a loop is compiled (`variant`): whether the policy gives the keys, and whether quotas bound what jobs may hold
ASKS, BOUNDED = False, False

_STOP = int(Misfit.STOP)
_PROGRESS_EVERY = 512  # decisions between two progress reports


class OnTables(NamedTuple):
    """All that the loop works on."""

    t: Matrices
    lists: Lists
    rules: EngineRules
    log: LogColumns
    scratch: Ints
    out: Ints
    weight: Floats  # of the sum, see `engine.declared_key`
    thresholds: Floats
    changed: Bools  # by row that waits: its key is not the one that it has now
    said: Floats  # keys of all active rows, as the policy gives them
    quotas: QuotaNotes
    passes: bool  # the policy need not be asked while nothing can start
    shown: AskedColumns  # what the next question is about


@kernel
def _has_room(on: OnTables, number: Ints, clock: LoopClock) -> bool:
    log, devices = on.log, on.t.D.shape[1]
    if clock.number[LoopCount.INSTANTS] % OFTEN == 0 or log.written[LogSize.DEVICES] + 4 * devices + 64 > log.device.shape[0]:
        return False
    return bool(log.written[LogSize.INTERVALS] + devices + number[RowCount.ACTIVE] + 64 <= log.entry.shape[1])


@kernel
def _has_ended(on: OnTables, row: int) -> bool:
    return not np.isnan(on.t.F[Job.FINISH, row])


@kernel
def _due(on: OnTables, number: Ints) -> float:
    """When the next row arrives."""
    F = on.t.F
    return float(F[Job.ARRIVAL, number[RowCount.NEXT]]) if number[RowCount.NEXT] < F.shape[1] else np.inf


@kernel
def _next_end(on: OnTables, number: Ints) -> float:
    return next_finish(on.t.F, on.t.I, on.lists)


@kernel
def _finish(on: OnTables, number: Ints, now: float) -> None:
    finish_due(on.t, on.lists, now, on.rules, on.log)


@kernel
def _arrive(on: OnTables, number: Ints, now: float, load_limit: float) -> None:
    arrive(on.t.F, on.t.I, on.lists, now, load_limit)


@kernel
def _add_up(on: OnTables, row: int, now: float) -> None:
    """Write the key of a row: the sum at this instant."""
    F, I = on.t.F, on.t.I
    ran = elapsed(F, I, row, now)
    F[Job.KEY, row] = sum_of(
        on.weight,
        on.thresholds,
        I[Job.GPUS, row],
        F[Job.ARRIVAL, row],
        F[Job.SERVICE, row] + ran,
        F[Job.GPUTIME, row] + I[Job.HELD, row] * ran,
        max(F[Job.ESTIMATE, row] - (F[Job.DONE, row] + F[Job.RATE, row] * ran), 0.0),
        F[Job.ESTIMATE, row],
        F[Job.PRIORITY, row],
        F[Job.FIRST_START, row],
    )


@kernel
def _add_up_changed(on: OnTables, now: float) -> None:
    """Keys of all rows that may have changed: those that run, and those that wait and did not at the last decision."""
    running, waiting = on.lists.running, on.lists.waiting
    for place in range(on.lists.number[RowCount.RUNNING]):
        _add_up(on, running[place], now)
        on.changed[running[place]] = True  # when it waits
    for place in range(on.lists.number[RowCount.WAITING]):
        if on.changed[waiting[place]]:
            on.changed[waiting[place]] = False
            _add_up(on, waiting[place], now)


@kernel
def _enter(F: Floats, lists: Lists, said: Floats) -> bool:
    """Keys that the policy has given, if all of them are numbers."""
    for place in range(lists.number[RowCount.ACTIVE]):
        if np.isnan(said[place]):
            return False
    for place in range(lists.number[RowCount.ACTIVE]):
        F[Job.KEY, lists.active[place]] = said[place]
    return True


@kernel
def _nothing_fits(NI: Ints, lists: Lists, rules: EngineRules) -> bool:
    """Whether all that wait ask for more than is free of any type, so that no order could start one of them."""
    if rules.switch[Switch.PREEMPT] == 1 or rules.switch[Switch.KEEP_EVICTIONS] == 1 or rules.switch[Switch.MISFIT] == _STOP:
        return False
    smallest, sizes, types = 0, lists.demand.shape[0], 0
    while smallest < sizes and lists.demand[smallest] == 0:
        smallest += 1
    for node in range(NI.shape[1]):
        types = max(types, NI[Node.TYPE, node] + 1)
    for kind in range(types):
        free = 0
        for node in range(NI.shape[1]):
            if NI[Node.TYPE, node] == kind:
                free += NI[Node.FREE, node]
        if free >= smallest:
            return False
    return True


@kernel
def _decide(on: OnTables, number: Ints, clock: LoopClock, now: float) -> int:
    """Nothing is to be decided while nothing waits and no quota is exceeded; before a decision the policy may have to say something."""
    count, out, F = clock.number, on.out, on.t.F
    if BOUNDED:
        count_running(on.t, on.lists, on.quotas)
    if number[RowCount.WAITING] == 0 and not (BOUNDED and any_exceeded(on.quotas.books)):
        return Outcome.GO_ON
    if ASKS and count[LoopCount.READY] == Stage.BEFORE:
        if not BOUNDED and on.passes and _nothing_fits(on.t.NI, on.lists, on.rules):
            count[LoopCount.DECISIONS] += 1
            out[0], out[1] = 0, 0
            return Outcome.GO_ON
        count[LoopCount.READY] = Stage.KNOWN
        show(on.t, on.lists, now, on.shown)
        return Outcome.KEYS
    if not ASKS:
        _add_up_changed(on, now)
    elif not _enter(F, on.lists, on.said):
        return Outcome.ASK
    count[LoopCount.DECISIONS] += 1
    sort_rows(F, on.lists.running, number[RowCount.RUNNING])
    sort_rows(F, on.lists.waiting, number[RowCount.WAITING])
    if BOUNDED:
        walk_lines(on.t, on.lists, now, on.rules, on.log, on.scratch, out, on.quotas)
    else:
        walk(on.t, on.lists, now, on.rules, on.log, on.scratch, out)
    count[LoopCount.STARTED] += out[0]
    count[LoopCount.STOPPED] += out[1]
    return Outcome.GO_ON


@kernel
def _wake(on: OnTables, number: Ints, clock: LoopClock, now: float) -> float:
    """When the answer ends, a row that runs reaches a level, or a gang may be stopped that may not yet."""
    if number[RowCount.WAITING] == 0 and not (BOUNDED and any_exceeded(on.quotas.books)):
        return np.inf
    time = clock.time
    soonest = answer_ends(time[LoopTime.VALID], now, time[LoopTime.ROUND], time[LoopTime.QUANTUM])
    if on.thresholds.shape[0] > 0:
        soonest = min(soonest, answer_ends(_next_level(on, now), now, time[LoopTime.ROUND], time[LoopTime.QUANTUM]))
    if BOUNDED or on.rules.switch[Switch.PREEMPT] == 1:  # by their quotas gangs give way under every policy
        soonest = min(soonest, next_movable(on.t.F, on.lists, now, on.rules.amount[Amount.MIN_RUN]))
    return soonest


@kernel
def _next_level(on: OnTables, now: float) -> float:
    """The first instant at which a row that runs reaches its next level."""
    F, I, lists, soonest = on.t.F, on.t.I, on.lists, np.inf
    for place in range(lists.number[RowCount.RUNNING]):
        row = lists.running[place]
        service, gputime, since = F[Job.SERVICE, row], F[Job.GPUTIME, row], F[Job.SINCE, row]
        at = next_threshold(on.weight, on.thresholds, I[Job.HELD, row], service, gputime, since, elapsed(F, I, row, now))
        soonest = min(soonest, at)
    return soonest


_VERBS = Verbs(_due, _finish, _arrive, _decide, _wake, _has_room, _has_ended, _next_end)
_WITHIN_QUOTAS = _VERBS._replace(decide=variant(_decide, "decide_bounded", BOUNDED=True), wake=variant(_wake, "wake_bounded", BOUNDED=True))
run_sum = loop_over(_VERBS, "run_sum", __name__)
run_sum_bounded = loop_over(_WITHIN_QUOTAS, "run_sum_bounded", __name__)
run_asking = loop_over(_VERBS._replace(decide=variant(_decide, "decide_asking", ASKS=True)), "run_asking", __name__)
run_asking_bounded = loop_over(
    _WITHIN_QUOTAS._replace(decide=variant(_decide, "decide_asking_bounded", ASKS=True, BOUNDED=True)), "run_asking_bounded", __name__
)


class _Loop:
    """One run of the compiled loop, and what is done when it comes back."""

    def __init__(self, engine: Engine, bounds: LoopBounds, key: LinearKey | None, passes: bool = False) -> None:
        self.engine, self.state, self.bounds, self._key, self._passes = engine, engine.state, bounds, key, passes
        take_order(self.state, engine.policy)
        self.clock = clock_of(self.state.regime, bounds)
        if self.state.lists.number.any():  # in the middle of a run: the first decision is due now
            self.clock.time[LoopTime.NOW] = self.clock.time[LoopTime.WAKE] = self.state.now
        if key is None:
            self._run = run_asking_bounded if engine.quotas.active else run_asking
        else:
            self._run = run_sum_bounded if engine.quotas.active else run_sum
            self.clock.time[LoopTime.VALID] = math.nan if key.rises else math.inf
        rows = self.state.tables.F.shape[1]
        self._changed, self._said = np.ones(rows, dtype=np.bool_), np.zeros(rows)
        self._asked_before = self.state.decision
        self.shown = room_for(rows if key is None else 0)
        self._standstill = Standstill(engine)
        self._quotas = engine.quotas.notes(rows if engine.quotas.active else 0)
        self._on = self._store()

    def _store(self) -> OnTables:
        state, key = self.state, self._key or LinearKey()
        where = (state.matrices, state.lists, state.rules, state.log.columns, state.scratch, state.out)
        weights = coefficients(key), np.array(key.thresholds, dtype=np.float64)
        return OnTables(*where, *weights, self._changed, self._said, self._quotas, self._passes, self.shown)

    def go_on(self) -> int:
        """Until something is needed that compiled code does not have."""
        state = self.state
        code = self._run(self._on, state.lists.number, self.clock)
        while code == Outcome.NEED_LOG:
            if self._key is not None:
                self.report_progress()
            if self._standstill.is_here(self.now):
                return Outcome.DONE
            devices = state.tables.D.shape[1]
            state.log.reserve(4 * devices + 2 * int(state.lists.number[RowCount.ACTIVE]) + 65536, 16 * devices + 65536)
            self._on = self._store()
            code = self._run(self._on, state.lists.number, self.clock)
        return code

    @property
    def decision(self) -> int:
        """The number of the decision that is about to be made."""
        return self._asked_before + int(self.clock.number[LoopCount.DECISIONS]) + 1

    @property
    def now(self) -> float:
        return float(self.clock.time[LoopTime.NOW])

    def report_progress(self) -> None:
        """Call `on_progress`, if there is one."""
        if self.bounds.on_progress is not None:
            self.bounds.on_progress(self.now, int(self.state.lists.number[RowCount.NEXT]), int(self.state.lists.number[RowCount.ACTIVE]))

    def enter(self, keys: Floats, until: float) -> None:
        """Enter the policy's keys of this instant, for all active rows."""
        self._said[: len(keys)] = keys
        self.clock.time[LoopTime.VALID] = until

    def end(self, code: int) -> int:
        """Leave the engine as far as the loop came; the code is returned."""
        count_in(self.engine, self.clock)
        self.state.decision = self.decision - 1
        if code != Outcome.ASK:
            self.write_reasons()
        self.report_progress()
        return code

    def write_reasons(self) -> None:
        """Write the reasons that the last decision has left to be found afterwards."""
        if self.engine.quotas.active:
            host_resources.name_shortages(self.state.tables, self.state.rows)
            self.engine.quotas.write_reasons()
        else:
            name_blocked(self.state)


def run_on_tables(engine: Engine, key: LinearKey, bounds: LoopBounds) -> int:
    """Run to the end under a key that is a sum; how it ended."""
    run = _Loop(engine, bounds, key)
    return run.end(run.go_on())


def run_asking_keys(engine: Engine, policy: OrderPolicy, within: Within, bounds: LoopBounds) -> int:
    """Run to the end, or until the policy must be asked for whole plans: it is asked for its keys at every decision.

    A policy that stops nothing and does not say how long its order holds is not asked while all that wait ask for more than is free.
    """
    state = engine.state
    run = _Loop(engine, bounds, None, passes=type(policy).valid_until is OrderPolicy.valid_until)
    leaves_reasons = engine.quotas.active or state.SI[Switch.MISFIT] == _STOP  # a key may look at them
    questions, asked, code = Questions(state, policy, within, run.shown), 0, run.go_on()
    while code == Outcome.KEYS:
        if leaves_reasons:
            run.write_reasons()
        state.now, state.decision, asked = run.now, run.decision, asked + 1
        answer = questions.ask()
        if answer is None:
            code = Outcome.ASK
            break
        run.enter(*answer)
        if asked % _PROGRESS_EVERY == 0:
            run.report_progress()
        code = run.go_on()
    return run.end(code)
