"""The loop: six steps, one after the other, until everything has ended, whichever driver moves time.

    1. the next instant     2. gangs that have ended     3. inputs     4. jobs that have arrived     5. decide     6. commit

A driver beside it decides how time passes and what has been acknowledged (`Virtual`, `acknowledged`, `live`); when the policy is asked is
up to the agenda. The compiled loops take the same steps with the same result, see `simulation`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import DOWN, Device, Job
from gantline.core.inputs import Input
from gantline.core.plan import Plan
from gantline.core.reasons import Reason
from gantline.engine.advance import arrive, finish_due, next_finish
from gantline.engine.agenda import Agenda
from gantline.engine.drivers.six_steps import STALL
from gantline.engine.engine import Engine
from gantline.engine.gates.quotas import CommonQuotas
from gantline.engine.lists import RowCount
from gantline.engine.policy_failures import Incident
from gantline.engine.state import State
from gantline.models.estimate_chain import Estimates
from gantline.policies.admission.rules import AdmissionRule

# --- runs in which gangs start and stop without end and none works ------------------------------------------------------
MOVES = 400  # starts and stops between two looks
WHY = "jobs are started and stopped, and none of them does any work: changes take as long as jobs are left alone"


class Standstill:
    """What had been done at the last look."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.state = engine, engine.state
        self._attained: Floats | None = None
        self._next_look = engine.moves + MOVES

    def after_moves(self) -> bool:
        """Whether no gang has worked in many starts and stops; asked after every decision."""
        if self.engine.moves < self._next_look:
            return False
        self._next_look = self.engine.moves + MOVES
        return self.is_here(self.state.now)

    def is_here(self, now: float, attained: Floats | None = None, to_come: bool | None = None) -> bool:
        """Whether no gang has worked since the last look and nothing is to come; then the run's incidents say so.

        By default the tables say what jobs have attained and whether more are to come.
        """
        state = self.state
        if attained is None:
            F, rows = state.tables.F, state.running_rows
            attained = F[Job.SERVICE].copy()
            attained[rows] += np.maximum(0.0, now - F[Job.SINCE][rows])
        if to_come is None:
            to_come = bool(state.lists.number[RowCount.NEXT] < state.tables.count)
        before, self._attained = self._attained, attained
        if to_come or before is None or len(before) != len(attained) or (attained > before).any():
            return False
        self.engine.incidents.append(Incident(now, state.decision, f"{WHY}: given up"))
        return True


# --- the loop -----------------------------------------------------------------------------------------------------------


class Driver(Protocol):
    """How time passes, and what has been acknowledged."""

    @property
    def gives_up(self) -> bool:
        """Whether the run ends where nothing could change any more."""
        ...

    def wait(self, loop: Stepping) -> float:
        """Let time pass until the next look, and return that instant; infinity: there is none."""
        ...

    def elapse(self, loop: Stepping, until: float) -> None:
        """Let time pass while a decision is made."""
        ...

    def settle(self, loop: Stepping) -> bool:
        """End the gangs that have ended by now; whether any has since this was last asked."""
        ...

    def take_in(self, loop: Stepping, value: Input) -> None:
        """Apply an input to the tables, and have it carried out."""
        ...

    def follow(self, loop: Stepping) -> None:
        """A plan has changed the tables: have it carried out."""
        ...


@dataclass
class Stepping:
    """One run, step by step."""

    engine: Engine
    admission: AdmissionRule = field(default_factory=AdmissionRule)
    estimates: Estimates = field(default_factory=Estimates)
    until: float = math.inf
    track: tuple[int, int] | None = None  # rows [low, high): the run ends when all of them have
    node_events: tuple[Input, ...] = ()  # what comes from outside, in order of time: mostly nodes that change
    step_all: bool = False  # visit every round even if nothing can change (the check of skipping)
    latency: float = 0.0  # seconds from question to commit
    on_progress: Callable[[float, int, int], None] | None = None
    watched: Ints | None = field(default=None, kw_only=True)  # rows with which the run ends, where they are no range
    driver: Driver = field(kw_only=True)

    def __post_init__(self) -> None:
        self.state: State = self.engine.state
        self.inputs: deque[Input] = deque(self.node_events)  # those that have yet to be taken in
        self.down: list[tuple[float, int]] = []  # devices out of use: since when, how many
        self.agenda = Agenda(self.engine, self.step_all, late=self.latency > 0.0)
        self.engine.quotas.bounds = CommonQuotas(self.admission.user_quota, self.admission.queue_quota)
        self._observed = 0.0  # the last instant up to which everything was observed
        self._ended = False  # whether a gang has ended since the last look
        self._nodes_change = bool(self.inputs)
        self._measure()
        self._idle = self._moves = 0  # looks at which nothing changed, one after the other; starts and stops by then

    def steps(self, ready: bool = False) -> Iterator[None]:
        """The run, which pauses before each question to the policy.

        `ready`: another loop has come up to the decision of this instant.
        """
        state, engine, driver = self.state, self.engine, self.driver
        standstill, self._moves = Standstill(engine), engine.moves
        while True:
            # 1. the next instant
            now = state.now if ready else driver.wait(self)
            if now == math.inf:
                return
            if now > self.until:
                self.cut()
                return
            state.now = now
            self.agenda.looked()
            # 2. gangs that have ended, 3. inputs, 4. jobs that have arrived
            changed = ready or self.observe()
            ready = False
            if self._ended and self.tracked_ended():
                return
            self._ended = False
            # 5. decide, 6. commit; an order need not be asked while nothing waits
            engine.next_finish = math.nan
            if state.lists.number[RowCount.WAITING] or engine.asks_always:
                yield
                plan = engine.decide()
                if plan is not None:
                    self._commit(plan)
                elif driver.gives_up and engine.turns.hopeless:
                    self.give_up(f"the last {engine.turns.in_a_row} turns were lost")
                    return
                driver.follow(self)
            if self._nodes_change:
                self._note_down()
            self.agenda.answered()
            if driver.gives_up and self._is_stuck(changed, standstill):
                return
            if self.on_progress is not None:
                self.on_progress(now, int(state.lists.number[RowCount.NEXT]), int(state.lists.number[RowCount.ACTIVE]))

    def run_steps(self, ready: bool = False) -> None:
        """All of them, see `steps`."""
        for _ in self.steps(ready):
            pass

    # --- what a step consists of ----------------------------------------------------------------------------------------
    def observe(self) -> bool:
        """Ends, inputs and arrivals up to now, each at its own instant; whether there was any."""
        state, engine = self.state, self.engine
        changed = self.take_inputs()
        self._settle()
        if state.tables.windows:  # which stop nothing that has ended by now
            changed |= engine.windows.settle()
        arrive(state.tables.F, state.tables.I, state.lists, state.now, self.load_limit)
        if engine.grants.speeds_until <= state.now:
            engine.grants.refresh()
        count = state.lists.number
        entered = state.lists.active[count[RowCount.ACTIVE] - count[RowCount.ADMITTED] : count[RowCount.ACTIVE]]
        if state.withheld:
            engine.inputs.requests.keep_out()
        if self.estimates.learns and len(entered):
            self.estimates.on_arrival(state.tables, entered)
        self._observed = state.now
        return changed or self._ended or len(entered) > 0

    def take_inputs(self) -> bool:
        """Take in what is due, each input at its own instant: a gang that is done by then keeps its work; whether there was any."""
        state, now, before = self.state, self.state.now, len(self.inputs)
        while self.inputs and self.inputs[0].time <= now:
            value = self.inputs.popleft()
            if not state.regime.finish_at_boundary:
                state.now = max(self._observed, value.time)
            self._settle()
            self.driver.take_in(self, value)
            self._nodes_change = True
            self._measure()
            self._note_down()
        state.now = now
        return len(self.inputs) < before

    def next_input(self) -> float:
        """When the next input comes."""
        return self.inputs[0].time if self.inputs else math.inf

    def cut(self) -> None:
        """The run ends here, before the next decision: see what has ended and arrived by now."""
        self.state.now = self.until
        if not self.state.regime.finish_at_boundary:  # else nothing is seen before the boundary that does not come
            self.observe()

    def _settle(self) -> None:
        self._ended |= self.driver.settle(self)

    def _measure(self) -> None:
        """GPUs at which admission stops."""
        self.load_limit = self.admission.most_gpus(self.state.tables.cluster.gpus)

    def _commit(self, plan: Plan) -> None:
        """Commit now, or after the decision's latency against whatever the state is by then."""
        if not self.latency:
            self.engine.commit(plan)
        else:
            asked = (self.state.rows if self.engine.asked is None else self.engine.asked).copy()
            self.driver.follow(self)  # runs that have reached their limit stop now, whatever is being decided
            self.driver.elapse(self, self.state.now + self.latency)
            overtaken = self.observe()
            self.engine.commit_late(plan, asked)
            if overtaken:  # something came or went while the decision was made
                self.agenda.touch()
        self._nodes_change |= bool(plan.release)

    def _note_down(self) -> None:
        """Devices that are out of use from now on; those of a node that drains or is released count when their gangs are gone."""
        down = int((self.state.tables.D[Device.HOLDER] == DOWN).sum())
        if down != (self.down[-1][1] if self.down else 0):
            self.down.append((self.state.now, down))

    # --- when it is over ------------------------------------------------------------------------------------------------
    def tracked_ended(self) -> bool:
        """Whether all rows have ended with which the run does."""
        rows = slice(*self.track) if self.track is not None else self.watched
        return rows is not None and not np.isnan(self.state.tables.F[Job.FINISH, rows]).any()

    def stalled(self) -> bool:
        """Whether nothing runs and nothing is to come."""
        state = self.state
        nothing_runs = math.isinf(next_finish(state.tables.F, state.tables.I, state.lists))
        return nothing_runs and state.lists.number[RowCount.NEXT] >= state.tables.count and not self.inputs

    def give_up(self, why: str = f"jobs wait, but nothing changed in {STALL} decisions") -> None:
        """The run ends although jobs are left; its incidents say why, and which jobs were to have what cannot be."""
        t, rows = self.state.tables, self.state.rows
        never = rows[t.I[Job.REASON][rows] == int(Reason.INFEASIBLE)]
        if len(never):
            more = f" and {len(never) - 1} more" if len(never) > 1 else ""
            why = f"{why}; the plan asks for what the cluster cannot give job '{t.ids[never[0]]}'{more}"
        self.engine.incidents.append(Incident(self.state.now, self.state.decision, f"{why}: given up"))

    def _is_stuck(self, changed: bool, standstill: Standstill) -> bool:
        """Whether looking on would never change anything; then the run is given up."""
        quiet = not changed and self.engine.moves == self._moves
        self._idle, self._moves = self._idle + 1 if quiet else 0, self.engine.moves
        if self._idle > STALL and self.stalled():
            self.give_up()
            return True
        return not self.inputs and standstill.after_moves()


# --- virtual time -------------------------------------------------------------------------------------------------------


class Virtual:
    """A driver without a state of its own."""

    gives_up: ClassVar[bool] = True

    def wait(self, loop: Stepping) -> float:
        return loop.agenda.next_look(loop.next_input())

    def elapse(self, loop: Stepping, until: float) -> None:
        loop.state.now = until

    def settle(self, loop: Stepping) -> bool:
        in_order = self._settle_in_order(loop) if loop.engine.grants.minds_changes else False
        return self._finish_due(loop) or in_order

    def take_in(self, loop: Stepping, value: Input) -> None:
        loop.engine.apply(value)

    def follow(self, loop: Stepping) -> None:
        """Nothing to do: it is carried out already."""

    def _settle_in_order(self, loop: Stepping) -> bool:
        """Speeds change at the instant at which a mate ends or a model says so, not at the end of the round."""
        state, grants, now, ended = loop.state, loop.engine.grants, loop.state.now, False
        while not state.regime.finish_at_boundary:
            due = min(next_finish(state.tables.F, state.tables.I, state.lists), grants.speeds_until)
            if due >= now:
                break
            state.now = due
            ended |= self._finish_due(loop)
            if grants.speeds_until <= due:
                grants.refresh()
        state.now = now
        return ended

    def _finish_due(self, loop: Stepping) -> bool:
        state, grants = loop.state, loop.engine.grants
        finish_due(state.matrices, state.lists, state.now, state.rules, state.log.columns)
        ended = int(state.lists.number[RowCount.FINISHED]) > 0
        if ended and grants.minds_changes:
            grants.forget_finished()
        return ended
