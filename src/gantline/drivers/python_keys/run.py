"""Running the loop of a key in Python: one that was read, held against the policy now and then, or one that must be asked for."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np

from gantline.core import columns as c
from gantline.core.plan import Plan
from gantline.core.policy import OrderPolicy
from gantline.drivers import loop_clock as lc
from gantline.drivers.declared import take_order
from gantline.drivers.loop_clock import LoopClock
from gantline.drivers.python_keys import loop
from gantline.drivers.python_keys.expression import number
from gantline.drivers.python_keys.on_records import answers_on_records, run_on_records
from gantline.drivers.python_keys.questions import Questions
from gantline.drivers.python_keys.tape import Tape, Written, write, write_columns
from gantline.drivers.standstill import Standstill
from gantline.engine import lists as ls
from gantline.engine import settings as s
from gantline.engine.blocked import name_blocked
from gantline.engine.engine import Engine

_TOLD = 512  # decisions between two words on progress


class LoopEnd(NamedTuple):
    """How a loop ended (see `loop_clock` and `loop`), and where it leaves a decision to others: what the policy has answered already."""

    code: int
    answer: tuple[Plan | None, ...] = ()  # (None,): it has lost its turn


class _Loop:
    """The arguments of the compiled loop, and what is done when it comes back."""

    def __init__(self, engine: Engine, written: Written, bounds: lc.LoopBounds, clock: LoopClock | None = None) -> None:
        self.engine, self.state, self.written, self.bounds = engine, engine.state, written, bounds
        take_order(self.state, engine.policy)
        self.clock = lc.clock(self.state.regime, bounds) if clock is None else clock
        self.how = np.zeros(loop.PLACES, dtype=np.int64)
        self.how[loop.AGES], self.how[loop.UNTIL_CHECK] = int(written.ages), 1
        self.clock.time[lc.VALID] = math.nan if written.moves else math.inf
        self.fresh = np.zeros(self.state.tables.F.shape[1], dtype=np.int64)
        self.tape = written.tape
        self._asked_before, self._checked = engine.state.decision, 1
        self._given = self._arguments()
        self.standstill = Standstill(engine)

    def use(self, tape: Tape) -> None:
        """Go on with other instructions."""
        self.tape = tape
        self._given = self._arguments()

    def _arguments(self) -> tuple[Any, ...]:
        state = self.state
        more = (state.log.columns, state.scratch, state.out, self.tape, self.how, self.fresh, self.clock)
        return (state.matrices, state.lists, state.rules, *more)

    def go_on(self) -> int:
        """Until something is needed that compiled code does not have."""
        code = loop.run_tape(*self._given)
        while code == lc.NEED_LOG:
            if self.standstill.is_here(self.now):
                return lc.DONE
            devices = self.state.tables.D.shape[1]
            self.state.log.reserve(4 * devices + 2 * int(self.state.lists.number[ls.ACTIVE]) + 65536, 16 * devices + 65536)
            self._given = self._arguments()
            code = loop.run_tape(*self._given)
        return code

    @property
    def decision(self) -> int:
        """The number of the decision that is about to be made."""
        return self._asked_before + int(self.clock.number[lc.DECISIONS]) + 1

    @property
    def now(self) -> float:
        return float(self.clock.time[lc.NOW])

    def tell(self) -> None:
        """A word on progress."""
        if self.bounds.on_progress is not None:
            self.bounds.on_progress(self.now, int(self.state.lists.number[ls.NEXT]), int(self.state.lists.number[ls.ACTIVE]))

    def holds(self) -> bool:
        """Whether the keys of this instant are those that the policy itself gives for all jobs; looked at again after as many decisions."""
        self.state.now = self.now
        self.how[loop.UNTIL_CHECK], self._checked = self._checked, 2 * self._checked
        self.tell()
        return _as_the_policy_says(self.engine, self.decision)

    def end_uncounted(self, code: int) -> LoopEnd:
        """The end of a loop whose decisions nobody but itself has counted."""
        self.end(code)
        self.state.decision = self.decision - 1
        self.engine.decisions += int(self.clock.number[lc.DECISIONS])
        return LoopEnd(code)

    def end(self, code: int) -> None:
        engine, counted = self.engine, self.clock.number
        self.state.now = self.now
        engine.started += int(counted[lc.STARTED])
        engine.stopped += int(counted[lc.STOPPED])
        if code != loop.ASK:
            name_blocked(self.state)
        self.tell()


def run_written(engine: Engine, written: Written, bounds: lc.LoopBounds) -> LoopEnd:
    """Run to the end, or until the policy itself must be asked.

    At the first decision, the second, the fourth and so on the policy is asked what the keys are. Should it say anything else, it is asked
    from there on.
    """
    run = _Loop(engine, written, bounds)
    code = run.go_on()
    while code == loop.CHECK:
        code = run.go_on() if run.holds() else loop.ASK
    return run.end_uncounted(code)


def run_by_key(engine: Engine, asked: Questions, bounds: lc.LoopBounds) -> LoopEnd:
    """The same with questions: about those jobs whose keys may have changed (who runs, and who has come or been stopped), or about all.

    The former on records, if they have what the policy reads; where they do not know on, the tables do. A policy that stops nobody is not
    asked while all who wait ask for more than is free.
    """
    state, clock, kind = engine.state, None, cast(type[OrderPolicy], type(engine.policy))
    if engine.guard is not None:
        asked.within = engine.guard
    if asked.by_job and answers_on_records(state, asked):
        code, clock = run_on_records(engine, asked, bounds)
        if code != loop.LEAVE:
            state.decision += int(clock.number[lc.DECISIONS])
            engine.decisions += int(clock.number[lc.DECISIONS])
            return LoopEnd(code)
    run = _Loop(engine, write(number(0.0), 0), bounds, clock)
    how, time = run.how, run.clock.time
    how[loop.WHO] = loop.KEY_BY_JOB if asked.by_job else loop.KEY_OF_ALL
    how[loop.READY] = loop.BEFORE if clock is None else loop.BEGUN
    how[loop.PASSES] = int(kind.valid_until is OrderPolicy.valid_until)
    how[loop.UNTIL_CHECK] = asked.first_check if asked.by_job else -1
    tape, said = asked.tape(None)
    run.use(tape)
    code, questions = run.go_on(), 0
    while code in (loop.KEYS, loop.CHECK):
        if code == loop.KEYS:
            name_blocked(state)  # by the last decision
            state.now, state.decision = run.now, run.decision
            asked.decision, count, questions = state.decision, how[loop.COUNT], questions + 1
            keys, until = asked.ask(run.fresh[:count], state.now), asked.valid_until()
            if keys is None or until is None:
                code = loop.ASK
                break
            if len(asked.reads.columns) > len(asked.ready):
                tape, said = asked.tape(run.tape)
                run.use(tape)
            said[:count] = keys
            how[loop.AGES], time[lc.VALID] = asked.reads.ages, until
            if questions % _TOLD == 0:
                run.tell()
        elif not run.holds():
            code = loop.ASK
            break
        code = run.go_on()
    return run.end_uncounted(code)


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
    except BaseException:  # its mistake is told when it is asked
        return False
    return np.array_equal(said, state.tables.F[c.KEY][state.rows])


def run_asked(engine: Engine, bounds: lc.LoopBounds) -> LoopEnd:
    """Run to the end with a question at every decision, or until the policy says something else than an order."""
    state = engine.state
    run = _Loop(engine, write(number(0.0), 0), bounds)
    tape, _, said = write_columns((), state.tables.F.shape[1])
    run.use(tape)
    run.how[loop.WHO] = loop.POLICY
    strict, switch, time = state.regime.strict, state.SI, run.clock.time
    plan = None
    code = run.go_on()
    while code == loop.CHECK:
        name_blocked(state)  # by the last decision
        state.now, run.how[loop.UNTIL_CHECK] = run.now, 1
        if state.decision % _TOLD == 0:
            run.tell()
        plan = engine.decide()
        if plan is None or not _only_ranks(plan):
            code = loop.ASK
            break
        ranking = plan.ranking
        assert ranking is not None
        count = run.how[loop.COUNT] = len(ranking.key)
        run.fresh[:count], said[:count] = state.rows, ranking.key
        switch[s.S_PREEMPT], switch[s.S_MISFIT] = int(ranking.preempt or strict), 1 if strict else int(ranking.misfit)
        engine.valid_until = plan.valid_until
        time[lc.VALID] = math.nan if plan.valid_until is None else plan.valid_until
        code = run.go_on()
    run.end(code)
    return LoopEnd(code, (plan,) if code == loop.ASK else ())


def _only_ranks(plan: Plan) -> bool:
    """Whether a plan is an order by numbers, and nothing else."""
    more = plan.reservations or plan.refusals or plan.release or plan.notes or plan.memory is not None or plan.in_charge
    return not more and plan.ranking is not None and plan.ranking.placement is None
