"""Running the loop on the tables: a key that was read, held against the policy now and then, or one that the policy is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.columns import Job
from gantline.core.plan import Plan
from gantline.core.policy import OrderPolicy
from gantline.engine import beside_reasons
from gantline.engine.blocked import name_blocked
from gantline.engine.drivers.declared import take_order
from gantline.engine.drivers.loop_clock import LoopBounds, LoopCount, LoopEnd, LoopTime, Outcome, clock
from gantline.engine.drivers.python_keys.questions import Questions
from gantline.engine.drivers.python_keys.table_verbs import How, OnTables, run_asking, run_asking_bounded, run_tape, run_tape_bounded
from gantline.engine.drivers.python_keys.tape import Tape, Written, blank
from gantline.engine.drivers.standstill import Standstill
from gantline.engine.engine import Engine
from gantline.engine.lists import RowCount
from gantline.engine.settings import Switch

_PROGRESS_EVERY = 512  # decisions between two progress reports


class _Loop:
    """The arguments of the compiled loop, and what is done when it comes back."""

    def __init__(self, engine: Engine, bounds: LoopBounds, loop: Callable[..., int], tape: Tape, levels: tuple[float, ...] = ()) -> None:
        self.engine, self.state, self.bounds, self._run = engine, engine.state, bounds, loop
        take_order(self.state, engine.policy)
        self.clock = clock(self.state.regime, bounds)
        if self.state.lists.number.any():  # in the middle of a run: the first decision is due now
            self.clock.time[LoopTime.NOW] = self.clock.time[LoopTime.WAKE] = self.state.now
        self.how = np.zeros(len(How), dtype=np.int64)
        self._tape, self._levels = tape, np.array(levels, dtype=np.float64)
        rows = self.state.tables.F.shape[1]
        self._fresh, self._said = np.zeros(rows, dtype=np.int64), np.zeros(rows)
        self._asked_before, self._checked = self.state.decision, 1
        self._standstill = Standstill(engine)
        self._quotas = engine.quotas.notes(rows if engine.quotas.active else 0)
        self._on = self._store()

    def _store(self) -> OnTables:
        state = self.state
        where = (state.matrices, state.lists, state.rules, state.log.columns, state.scratch, state.out)
        return OnTables(*where, self._tape, self._levels, self.how, self._fresh, self._said, self._quotas)

    def go_on(self) -> int:
        """Until something is needed that compiled code does not have."""
        state = self.state
        code = self._run(self._on, state.lists.number, self.clock)
        while code == Outcome.NEED_LOG:
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

    def holds(self) -> bool:
        """Whether the keys of this instant are those that the policy itself gives for all jobs; looked at again after as many decisions."""
        self.state.now = self.now
        self.how[How.UNTIL_CHECK], self._checked = self._checked, 2 * self._checked
        self.report_progress()
        return _as_the_policy_says(self.engine, self.decision)

    def enter(self, keys: Floats, until: float) -> None:
        """Enter the policy's keys of this instant, for all active rows."""
        self._said[: len(keys)] = keys
        self.clock.time[LoopTime.VALID] = until

    def end_uncounted(self, code: int) -> LoopEnd:
        """The end of a loop that counted its decisions itself."""
        self.end(code)
        self.state.decision = self.decision - 1
        self.engine.decisions += int(self.clock.number[LoopCount.DECISIONS])
        return LoopEnd(code)

    def end(self, code: int) -> None:
        engine, counted = self.engine, self.clock.number
        self.state.now = self.now
        engine.started += int(counted[LoopCount.STARTED])
        engine.stopped += int(counted[LoopCount.STOPPED])
        if code != Outcome.ASK:
            self.write_reasons()
        self.report_progress()

    def write_reasons(self) -> None:
        """Write the reasons that the last decision has left to be found afterwards."""
        if self.engine.quotas.active:
            beside_reasons.name_shortages(self.state.tables, self.state.rows)
            self.engine.quotas.write_reasons()
        else:
            name_blocked(self.state)


def run_written(engine: Engine, written: Written, bounds: LoopBounds) -> LoopEnd:
    """Run to the end, or until the policy itself must be asked.

    At the first decision, the second, the fourth and so on the policy is asked what the keys are. If its keys differ, it is asked
    from there on.
    """
    run = _Loop(engine, bounds, run_tape_bounded if engine.quotas.active else run_tape, written.tape, written.levels)
    run.how[How.AGES], run.how[How.UNTIL_CHECK], run.how[How.BY_GPU] = int(written.ages), 1, int(written.by_gpu)
    run.clock.time[LoopTime.VALID] = written.until
    code = run.go_on()
    while code == Outcome.CHECK:
        code = run.go_on() if run.holds() else Outcome.ASK
    return run.end_uncounted(code)


def run_questions(engine: Engine, asked: Questions, bounds: LoopBounds) -> LoopEnd:
    """The same where the policy is asked for its keys at every decision.

    A policy that stops nothing and does not say how long its order holds is not asked while all that wait ask for more than is free.
    """
    state = engine.state
    run = _Loop(engine, bounds, run_asking_bounded if engine.quotas.active else run_asking, blank(0))
    run.how[How.PASSES] = int(not asked.says_until)
    code, questions = run.go_on(), 0
    while code == Outcome.KEYS:
        run.write_reasons()
        state.now, state.decision, questions = run.now, run.decision, questions + 1
        answer = asked.ask()
        if answer is None:
            code = Outcome.ASK
            break
        run.enter(*answer)
        if questions % _PROGRESS_EVERY == 0:
            run.report_progress()
        code = run.go_on()
    return run.end_uncounted(code)


def run_plans(engine: Engine, bounds: LoopBounds) -> LoopEnd:
    """The same where the policy is asked for a whole plan at every decision, until one is something else than an order."""
    state = engine.state
    run = _Loop(engine, bounds, run_asking_bounded if engine.quotas.active else run_asking, blank(0))
    strict, switch = state.regime.strict, state.SI
    plan, code = None, run.go_on()
    while code == Outcome.KEYS:
        run.write_reasons()
        state.now = run.now
        if state.decision % _PROGRESS_EVERY == 0:
            run.report_progress()
        plan = engine.decide()
        ranking = None if plan is None else plan.ranking
        if plan is None or ranking is None or not _only_ranks(plan):
            code = Outcome.ASK
            break
        switch[Switch.PREEMPT], switch[Switch.MISFIT] = int(ranking.preempt or strict), 1 if strict else int(ranking.misfit)
        engine.valid_until = plan.valid_until
        run.enter(ranking.key, math.nan if plan.valid_until is None else plan.valid_until)
        code = run.go_on()
    run.end(code)
    return LoopEnd(code, (plan,) if code == Outcome.ASK else ())


def _as_the_policy_says(engine: Engine, decision: int) -> bool:
    """Whether the keys of this instant are those that the policy itself would give."""
    state, policy, counted = engine.state, engine.policy, engine.state.decision
    assert isinstance(policy, OrderPolicy)
    state.decision = decision
    snapshot = state.snapshot()
    state.decision = counted
    guard: Any = engine.guard  # of whole plans elsewhere
    try:
        said = np.asarray(policy.key(snapshot) if guard is None else guard(lambda: policy.key(snapshot)), dtype=np.float64)
    except KeyboardInterrupt:
        raise
    except BaseException:  # its mistake is reported when it is asked
        return False
    return np.array_equal(said, state.tables.F[Job.KEY][state.rows])


def _only_ranks(plan: Plan) -> bool:
    """Whether a plan is an order by numbers, and nothing else."""
    more = plan.reservations or plan.refusals or plan.release or plan.notes or plan.memory is not None or plan.in_charge
    return not more and plan.ranking is not None and plan.ranking.placement is None
