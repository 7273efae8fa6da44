"""The six steps on the tables: keys are sums that a kernel adds up, or given by the policy, which is asked in between.

The verbs call the same kernels as the stepping loop, so that this loop can stop before any decision and leave the rest to it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.gather import elapsed
from gantline.core.jit import kernel, variant
from gantline.core.plan import Misfit, Plan
from gantline.core.policy import OrderPolicy
from gantline.core.tables import Matrices
from gantline.engine import beside_reasons
from gantline.engine import declared_key as k
from gantline.engine import lists as ls
from gantline.engine import settings as s
from gantline.engine.advance import arrive, finish_due, next_finish, next_movable
from gantline.engine.blocked import name_blocked
from gantline.engine.declared_key import LinearKey
from gantline.engine.drivers import loop_clock as lc
from gantline.engine.drivers.declared import take_order
from gantline.engine.drivers.key_reading import Within, time_said
from gantline.engine.drivers.loop_clock import LoopClock, LoopEnd
from gantline.engine.drivers.six_steps import Verbs, loop_over
from gantline.engine.drivers.standstill import Standstill
from gantline.engine.engine import Engine
from gantline.engine.instants import answer_ends
from gantline.engine.lists import Lists
from gantline.engine.log import DEVICES, INTERVALS, LogColumns
from gantline.engine.quota_walk import QuotaNotes, any_exceeded, count_running, walk_lines
from gantline.engine.ranks import sort_rows
from gantline.engine.settings import EngineRules
from gantline.engine.walk import walk

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


@kernel
def _has_room(on: OnTables, number: Ints, clock: LoopClock) -> bool:
    log, devices = on.log, on.t.D.shape[1]
    if clock.number[lc.INSTANTS] % OFTEN == 0 or log.written[DEVICES] + 4 * devices + 64 > log.device.shape[0]:
        return False
    return bool(log.written[INTERVALS] + devices + number[ls.ACTIVE] + 64 <= log.entry.shape[1])


@kernel
def _has_ended(on: OnTables, row: int) -> bool:
    return not np.isnan(on.t.F[c.FINISH, row])


@kernel
def _due(on: OnTables, number: Ints) -> float:
    """When the next row arrives."""
    F = on.t.F
    return float(F[c.ARRIVAL, number[ls.NEXT]]) if number[ls.NEXT] < F.shape[1] else np.inf


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
    """Write the key of a row: the sum at this instant. What does not count is not even read: the columns lie far apart."""
    F, I, w = on.t.F, on.t.I, on.weight
    ran, key, levels = elapsed(F, I, row, now), 0.0, on.thresholds.shape[0]
    if w[k.ARRIVAL] != 0.0:
        key += w[k.ARRIVAL] * F[c.ARRIVAL, row]
    if w[k.ATTAINED] != 0.0:
        key += w[k.ATTAINED] * (F[c.SERVICE, row] + ran)
    if w[k.ATTAINED_GPU] != 0.0:
        key += w[k.ATTAINED_GPU] * (F[c.GPUTIME, row] + I[c.HELD, row] * ran)
    if w[k.REMAINING] != 0.0 or w[k.REMAINING_GPU] != 0.0:
        remaining = max(F[c.ESTIMATE, row] - (F[c.DONE, row] + F[c.RATE, row] * ran), 0.0)
        key += w[k.REMAINING] * remaining + w[k.REMAINING_GPU] * (remaining * I[c.GPUS, row])
    if w[k.ESTIMATE] != 0.0:
        key += w[k.ESTIMATE] * F[c.ESTIMATE, row]
    if w[k.GPUS] != 0.0:
        key += w[k.GPUS] * I[c.GPUS, row]
    if w[k.PRIORITY] != 0.0:
        key += w[k.PRIORITY] * F[c.PRIORITY, row]
    if w[k.FIRST_START] != 0.0:
        first = F[c.FIRST_START, row]
        key += w[k.FIRST_START] * (w[k.NEVER_STARTED] + F[c.ARRIVAL, row] if np.isnan(first) else first)
    level = 0
    if levels > 0:
        served = F[c.GPUTIME, row] + I[c.HELD, row] * ran if w[k.BY_GPU] == 1.0 else F[c.SERVICE, row] + ran
        for place in range(levels):
            if served >= on.thresholds[place]:
                level += 1
    F[c.KEY, row] = level * w[k.LEVEL_STEP] + key


@kernel
def _add_up_changed(on: OnTables, now: float) -> None:
    """Keys of all rows that may have changed: those that run, and those that wait and did not at the last decision."""
    running, waiting = on.lists.running, on.lists.waiting
    for place in range(on.lists.number[ls.RUNNING]):
        _add_up(on, running[place], now)
        on.changed[running[place]] = True  # when it waits
    for place in range(on.lists.number[ls.WAITING]):
        if on.changed[waiting[place]]:
            on.changed[waiting[place]] = False
            _add_up(on, waiting[place], now)


@kernel
def _enter(F: Floats, lists: Lists, said: Floats) -> bool:
    """Keys that the policy has given, if all of them are numbers."""
    for place in range(lists.number[ls.ACTIVE]):
        if np.isnan(said[place]):
            return False
    for place in range(lists.number[ls.ACTIVE]):
        F[c.KEY, lists.active[place]] = said[place]
    return True


@kernel
def _nothing_fits(NI: Ints, lists: Lists, rules: EngineRules) -> bool:
    """Whether all that wait ask for more than is free of any type, so that no order could start one of them."""
    if rules.switch[s.S_PREEMPT] == 1 or rules.switch[s.S_KEEP_EVICTIONS] == 1 or rules.switch[s.S_MISFIT] == _STOP:
        return False
    smallest, sizes, types = 0, lists.demand.shape[0], 0
    while smallest < sizes and lists.demand[smallest] == 0:
        smallest += 1
    for node in range(NI.shape[1]):
        types = max(types, NI[c.N_TYPE, node] + 1)
    for kind in range(types):
        free = 0
        for node in range(NI.shape[1]):
            if NI[c.N_TYPE, node] == kind:
                free += NI[c.N_FREE, node]
        if free >= smallest:
            return False
    return True


@kernel
def _decide(on: OnTables, number: Ints, clock: LoopClock, now: float) -> int:
    """Nothing is to be decided while nothing waits and no quota is exceeded; before a decision the policy may have to say something."""
    count, out, F = clock.number, on.out, on.t.F
    if BOUNDED:
        count_running(on.t, on.lists, on.quotas)
    if number[ls.WAITING] == 0 and not (BOUNDED and any_exceeded(on.quotas.books)):
        return lc.GO_ON
    if ASKS and count[lc.READY] == lc.BEFORE:
        if not BOUNDED and on.passes and _nothing_fits(on.t.NI, on.lists, on.rules):
            count[lc.DECISIONS] += 1
            out[0], out[1] = 0, 0
            return lc.GO_ON
        count[lc.READY] = lc.KNOWN
        return lc.KEYS
    if not ASKS:
        _add_up_changed(on, now)
    elif not _enter(F, on.lists, on.said):
        return lc.ASK
    count[lc.DECISIONS] += 1
    sort_rows(F, on.lists.running, number[ls.RUNNING])
    sort_rows(F, on.lists.waiting, number[ls.WAITING])
    if BOUNDED:
        walk_lines(on.t, on.lists, now, on.rules, on.log, on.scratch, out, on.quotas)
    else:
        walk(on.t, on.lists, now, on.rules, on.log, on.scratch, out)
    count[lc.STARTED] += out[0]
    count[lc.STOPPED] += out[1]
    return lc.GO_ON


@kernel
def _wake(on: OnTables, number: Ints, clock: LoopClock, now: float) -> float:
    """When the answer ends, a row that runs reaches a level, or a gang may be stopped that may not yet."""
    if number[ls.WAITING] == 0 and not (BOUNDED and any_exceeded(on.quotas.books)):
        return np.inf
    time = clock.time
    soonest = answer_ends(time[lc.VALID], now, time[lc.ROUND], time[lc.QUANTUM])
    if on.thresholds.shape[0] > 0:
        soonest = min(soonest, answer_ends(_next_level(on, now), now, time[lc.ROUND], time[lc.QUANTUM]))
    if BOUNDED or on.rules.switch[s.S_PREEMPT] == 1:  # by their quotas gangs give way under every policy
        soonest = min(soonest, next_movable(on.t.F, on.lists, now, on.rules.amount[s.S_MIN_RUN]))
    return soonest


@kernel
def _next_level(on: OnTables, now: float) -> float:
    """The first instant at which a row that runs reaches its next level."""
    F, I, lists, by_gpu = on.t.F, on.t.I, on.lists, on.weight[k.BY_GPU] == 1.0
    soonest = np.inf
    for place in range(lists.number[ls.RUNNING]):
        row = lists.running[place]
        speed = float(I[c.HELD, row]) if by_gpu else 1.0
        have = F[c.GPUTIME, row] if by_gpu else F[c.SERVICE, row]
        reached = have + speed * elapsed(F, I, row, now)
        for level in on.thresholds:
            if reached < level and speed > 0.0:
                soonest = min(soonest, F[c.SINCE, row] + (level - have) / speed)
                break
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

    def __init__(self, engine: Engine, bounds: lc.LoopBounds, key: LinearKey | None, passes: bool = False) -> None:
        self.engine, self.state, self.bounds, self._key, self._passes = engine, engine.state, bounds, key, passes
        take_order(self.state, engine.policy)
        self.clock = lc.clock(self.state.regime, bounds)
        if self.state.lists.number.any():  # in the middle of a run: the first decision is due now
            self.clock.time[lc.NOW] = self.clock.time[lc.WAKE] = self.state.now
        if key is None:
            self._run = run_asking_bounded if engine.quotas.active else run_asking
        else:
            self._run = run_sum_bounded if engine.quotas.active else run_sum
            self.clock.time[lc.VALID] = math.nan if key.rises else math.inf
        rows = self.state.tables.F.shape[1]
        self._changed, self._said = np.ones(rows, dtype=np.bool_), np.zeros(rows)
        self._asked_before = self.state.decision
        self._standstill = Standstill(engine)
        self._quotas = engine.quotas.notes(rows if engine.quotas.active else 0)
        self._on = self._store()

    def _store(self) -> OnTables:
        state, key = self.state, self._key or LinearKey()
        where = (state.matrices, state.lists, state.rules, state.log.columns, state.scratch, state.out)
        weights = k.coefficients(key), np.array(key.thresholds, dtype=np.float64)
        return OnTables(*where, *weights, self._changed, self._said, self._quotas, self._passes)

    def go_on(self) -> int:
        """Until something is needed that compiled code does not have."""
        state = self.state
        code = self._run(self._on, state.lists.number, self.clock)
        while code == lc.NEED_LOG:
            if self._key is not None:
                self.report_progress()
            if self._standstill.is_here(self.now):
                return lc.DONE
            devices = state.tables.D.shape[1]
            state.log.reserve(4 * devices + 2 * int(state.lists.number[ls.ACTIVE]) + 65536, 16 * devices + 65536)
            self._on = self._store()
            code = self._run(self._on, state.lists.number, self.clock)
        return code

    @property
    def decision(self) -> int:
        """The number of the decision that is about to be made."""
        return self._asked_before + int(self.clock.number[lc.DECISIONS]) + 1

    @property
    def now(self) -> float:
        return float(self.clock.time[lc.NOW])

    def report_progress(self) -> None:
        """Call `on_progress`, if there is one."""
        if self.bounds.on_progress is not None:
            self.bounds.on_progress(self.now, int(self.state.lists.number[ls.NEXT]), int(self.state.lists.number[ls.ACTIVE]))

    def enter(self, keys: Floats, until: float) -> None:
        """Enter the policy's keys of this instant, for all active rows."""
        self._said[: len(keys)] = keys
        self.clock.time[lc.VALID] = until

    def end_uncounted(self, code: int) -> LoopEnd:
        """The end of a loop that counted its decisions itself."""
        self.end(code)
        self.state.decision = self.decision - 1
        self.engine.decisions += int(self.clock.number[lc.DECISIONS])
        return LoopEnd(code)

    def end(self, code: int) -> None:
        engine, counted = self.engine, self.clock.number
        self.state.now = self.now
        engine.started += int(counted[lc.STARTED])
        engine.stopped += int(counted[lc.STOPPED])
        if code != lc.ASK:
            self.write_reasons()
        self.report_progress()

    def write_reasons(self) -> None:
        """Write the reasons that the last decision has left to be found afterwards."""
        if self.engine.quotas.active:
            beside_reasons.name_shortages(self.state.tables, self.state.rows)
            self.engine.quotas.write_reasons()
        else:
            name_blocked(self.state)


def run_on_tables(engine: Engine, key: LinearKey, bounds: lc.LoopBounds) -> LoopEnd:
    """Run to the end under a key that is a sum."""
    run = _Loop(engine, bounds, key)
    return run.end_uncounted(run.go_on())


def run_asking_keys(engine: Engine, policy: OrderPolicy, within: Within, bounds: lc.LoopBounds) -> LoopEnd:
    """Run to the end, or until the policy must be asked for whole plans: it is asked for its keys at every decision.

    A policy that stops nothing and does not say how long its order holds is not asked while all that wait ask for more than is free.
    """
    says_until, state = type(policy).valid_until is not OrderPolicy.valid_until, engine.state
    run = _Loop(engine, bounds, None, not says_until)
    code, questions = run.go_on(), 0
    while code == lc.KEYS:
        run.write_reasons()
        state.now, state.decision, questions = run.now, run.decision, questions + 1
        answer = _ask(engine, policy, within, says_until)
        if answer is None:
            code = lc.ASK
            break
        run.enter(*answer)
        if questions % _PROGRESS_EVERY == 0:
            run.report_progress()
        code = run.go_on()
    return run.end_uncounted(code)


def _ask(engine: Engine, policy: OrderPolicy, within: Within, says_until: bool) -> tuple[Floats, float] | None:
    """The keys in order of arrival, and when the order might change although nothing happens (NaN: it does not say).

    None: neither is one. Then the policy is asked for a whole plan, which reports its mistake.
    """
    snapshot, count = engine.state.snapshot(), len(engine.state.rows)
    try:
        said, until = within(lambda: (policy.key(snapshot), time_said(policy.valid_until(snapshot)) if says_until else None))
        keys = np.asarray(said, dtype=np.float64)
        return (keys, math.nan if until is None else until) if keys.shape == (count,) else None
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None


def run_asking_plans(engine: Engine, bounds: lc.LoopBounds) -> LoopEnd:
    """The same where the policy is asked for a whole plan at every decision, until one is something else than an order."""
    state = engine.state
    run = _Loop(engine, bounds, None)
    strict, switch = state.regime.strict, state.SI
    plan, code = None, run.go_on()
    while code == lc.KEYS:
        run.write_reasons()
        state.now = run.now
        if state.decision % _PROGRESS_EVERY == 0:
            run.report_progress()
        plan = engine.decide()
        ranking = None if plan is None else plan.ranking
        if plan is None or ranking is None or not _only_ranks(plan):
            code = lc.ASK
            break
        switch[s.S_PREEMPT], switch[s.S_MISFIT] = int(ranking.preempt or strict), 1 if strict else int(ranking.misfit)
        engine.valid_until = plan.valid_until
        run.enter(ranking.key, math.nan if plan.valid_until is None else plan.valid_until)
        code = run.go_on()
    run.end(code)
    return LoopEnd(code, (plan,) if code == lc.ASK else ())


def _only_ranks(plan: Plan) -> bool:
    """Whether a plan is an order by numbers, and nothing else."""
    more = plan.reservations or plan.refusals or plan.release or plan.notes or plan.memory is not None or plan.in_charge
    return not more and plan.ranking is not None and plan.ranking.placement is None
