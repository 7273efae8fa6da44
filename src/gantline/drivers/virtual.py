"""The engine on virtual time: six steps, one after the other, until everything has ended.

    1. the next instant     2. who has finished     3. nodes that change     4. who has arrived     5. decide     6. commit

Policies that declare a linear key run the same steps inside one compiled function (`linear_loop`), with the same result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gantline.admission.rules import AdmissionRule
from gantline.core import columns as c
from gantline.core.inputs import Input
from gantline.core.plan import Plan
from gantline.core.policy import LinearKey, OrderPolicy, linear_speaks
from gantline.drivers.checkpoints import NO_CHECKPOINTS, Checkpoints
from gantline.drivers.declared import run_declared
from gantline.drivers.dense import knows
from gantline.drivers.loop_clock import CUT, DONE, STALL, LoopBounds
from gantline.drivers.standstill import Standstill
from gantline.engine import lists as ls
from gantline.engine.advance import finish_due, next_finish, observe
from gantline.engine.agenda import Agenda
from gantline.engine.engine import Engine
from gantline.engine.lost_turns import Incident
from gantline.engine.quota_gate import CommonQuotas
from gantline.engine.state import State
from gantline.performance.estimate_chain import Estimates

if TYPE_CHECKING:
    from gantline.performance.goodput.measured import Profiles


@dataclass
class Simulation:
    """One run in virtual time."""

    gives_up: ClassVar[bool] = True  # where nothing is to be hoped for any more, the run ends

    engine: Engine
    admission: AdmissionRule = field(default_factory=AdmissionRule)
    estimates: Estimates = field(default_factory=Estimates)
    until: float = math.inf
    track: tuple[int, int] | None = None  # rows [low, high): the run ends when all of them have
    node_events: tuple[Input, ...] = ()  # what comes from outside, in order of time: mostly nodes that change
    step_all: bool = False  # visit every round even if nothing can change (the check of skipping)
    latency: float = 0.0  # seconds from question to commit
    on_progress: Callable[[float, int, int], None] | None = None
    checkpoints: Checkpoints = NO_CHECKPOINTS  # of regimes whose loop can be gone on with
    profiles: Profiles | None = None  # of regimes whose jobs run by measured profiles
    pieces: Any = None  # rows that an imitated original reports, where they are not one per job

    def __post_init__(self) -> None:
        self.state: State = self.engine.state
        self.down: list[tuple[float, int]] = []
        self._next_node_event = 0
        self._seen = 0.0  # the last instant up to which everything was observed
        self.agenda = Agenda(self.engine, self.step_all, late=self.latency > 0.0)
        self.engine.quotas.bounds = CommonQuotas(self.admission.user_quota, self.admission.queue_quota)
        self._measure()

    def _measure(self) -> None:
        """The load limit in GPUs."""
        self._load_limit = self.admission.most_gpus(self.state.tables.cluster.gpus)

    # --- which loop -----------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Run to the end."""
        key = self.declared_key()
        if key is not None:
            if run_declared(self.engine, key, self.bounds):
                self._cut()
        elif self._needs_no_python():
            self._run_key()
        else:
            with self.engine.asked_often():
                self._run_steps()
        self.engine.grants.close_open_intervals()

    def _run_key(self) -> None:
        """Where the loop of keys in Python does not know on, the stepping loop does; all of it, where it does not even begin."""
        from gantline.drivers.python_keys.choose import run_key  # runs of declared keys do without
        from gantline.drivers.python_keys.loop import ASK, NOT_BEGUN, STALLED

        ending = run_key(self.engine, self.bounds)
        self._seen = self.state.now
        if ending.code == CUT:
            self._cut()
        elif ending.code == DONE and self.state.lists.number[ls.WAITING] and self._stalled() and not self._all_tracked_ended():
            self._give_up("jobs wait that the policy never lets run")
        elif ending.code == STALLED:
            self._give_up()
        elif ending.code in (ASK, NOT_BEGUN):
            with self.engine.asked_often():
                self._run_steps(ready=ending.code == ASK, answer=ending.answer)

    @property
    def bounds(self) -> LoopBounds:
        """What a compiled loop needs to know of this run."""
        limit = self.admission.most_gpus(self.state.tables.cluster.gpus)
        return LoopBounds(self.until, self.track, limit, self.step_all, self.on_progress)

    def declared_key(self) -> LinearKey | None:
        """The declared key, if nothing in this run needs Python between two decisions."""
        policy = self.engine.policy
        if not (self._needs_no_python() and isinstance(policy, OrderPolicy) and linear_speaks(policy)):
            return None
        guard: Any = self.engine.guard  # of whole plans elsewhere
        key: LinearKey | None = policy.linear() if guard is None else guard(policy.linear)
        return key if key is not None and knows(self.state, key) else None

    def _needs_no_python(self) -> bool:
        """Whether nothing but the policy itself has to be asked between two decisions."""
        return not (
            self.node_events
            or self.engine.quotas.active
            or self.engine.sparing.in_force
            or self.estimates.learns
            or self.latency
            or self.engine.recorder
            or self.engine.grants.speeds.about_gangs
            or self.state.regime.tick
            or self.state.memory is not None
            or self.state.tables.cordoned
            or self.state.tables.windows
            or self.state.facts.victims != "order"
            or self.state.placement.picks
        )

    # --- the stepping loop ----------------------------------------------------------------------------------------------
    def _run_steps(self, ready: bool = False, answer: tuple[Plan | None, ...] = ()) -> None:
        """`ready`: somebody else has come up to the decision of this instant, or already has an `answer`."""
        for _ in self.questions(ready, answer):
            pass

    def questions(self, ready: bool = False, answer: tuple[Plan | None, ...] = ()) -> Iterator[None]:
        """The run, which pauses before each question to the policy."""
        state, engine = self.state, self.engine
        idle, moved, guard = 0, engine.started + engine.stopped, Standstill(engine)
        while True:
            # 1. the next instant
            now = state.now if ready else self._wait()
            if now == math.inf:
                break
            if now > self.until:
                self._cut()
                break
            state.now = now
            self.agenda.looked()
            # 2. who has finished, 3. which nodes change, 4. who has arrived
            changed = ready or self._observe()
            ready = False
            if self._tracked_done():
                break
            # 5. decide, 6. commit; an order need not be asked while nobody waits
            engine.next_finish = math.nan
            if state.lists.number[ls.WAITING] or engine.asks_always:
                if answer:
                    plan, answer = answer[0], ()
                else:
                    yield
                    plan = engine.decide()
                if plan is not None:
                    self._commit(plan)
                    if plan.release:
                        self._note_down()
                elif self.gives_up and engine.turns.hopeless:
                    self._give_up(f"the last {engine.turns.in_a_row} turns were lost")
                    break
                self._follow()
            if self.node_events or self.down:
                self._note_down()
            self.agenda.answered()
            quiet = not changed and engine.started + engine.stopped == moved
            idle, moved = idle + 1 if quiet else 0, engine.started + engine.stopped
            if not self.gives_up:
                continue
            if idle > STALL and self._stalled():
                self._give_up()
                break
            if self._next_event() == math.inf and guard.after_moves():
                break
            if self.on_progress is not None and state.decision % 512 == 0:
                self.on_progress(now, int(state.lists.number[ls.NEXT]), int(state.lists.number[ls.ACTIVE]))

    def _give_up(self, why: str = f"jobs wait, but nothing changed in {STALL} decisions") -> None:
        self.engine.incidents.append(Incident(self.state.now, self.state.decision, f"{why}: given up"))

    def _wait(self) -> float:
        """Let time pass until the next look; on virtual time that is a jump. Infinity: nothing is to come."""
        return self.agenda.next_look(self._next_event())

    def _pass(self, until: float) -> None:
        """Let time pass while a decision is made."""
        self.state.now = until

    def _next_event(self) -> float:
        """When the next input comes."""
        return self.node_events[self._next_node_event].time if self._next_node_event < len(self.node_events) else math.inf

    def _follow(self) -> None:
        """See to it that what was committed becomes true; on virtual time it is."""

    def _cut(self) -> None:
        """The run ends here, before the next decision: see who has finished and who has arrived by now."""
        self.state.now = self.until
        if not self.state.regime.finish_at_boundary:  # else nothing is seen before the boundary that does not come
            self._observe()

    def _observe(self) -> bool:
        """Finishes, node changes, arrivals up to now; whether there was any."""
        state = self.state
        changed = self._change_nodes() if self.node_events else False
        changed |= self.engine.windows.settle() if self.state.tables.windows else False
        changed |= self._finish_in_order() if self.engine.grants.minds_changes else False
        self._see()
        changed |= self._tidy_finished()
        if self.engine.grants.speeds_until <= state.now:
            self.engine.grants.refresh()
        entered = state.lists.active[state.lists.number[ls.ACTIVE] - state.lists.number[ls.ADMITTED] : state.lists.number[ls.ACTIVE]]
        if state.withheld:
            self.engine.inputs.keep_out()
        if self.estimates.learns and len(entered):
            self.estimates.on_arrival(state.tables, entered)
        self._seen = state.now
        return changed or len(entered) > 0

    def _see(self) -> None:
        """Who has finished by now, and who has arrived."""
        state, log = self.state, self.state.log
        observe(state.matrices, state.lists, state.now, self._load_limit, state.rules, log.columns)

    def _finish_in_order(self) -> bool:
        """Speeds change at the instant at which a mate ends or a model says so, not at the end of the round."""
        state, grants, now, changed = self.state, self.engine.grants, self.state.now, False
        while not state.regime.finish_at_boundary:
            due = min(next_finish(state.tables.F, state.tables.I, state.lists), grants.speeds_until)
            if due >= now:
                break
            state.now = due
            changed |= self._finish_due()
            if grants.speeds_until <= due:
                grants.refresh()
        state.now = now
        return changed

    def _finish_due(self) -> bool:
        state, log = self.state, self.state.log
        finish_due(state.matrices, state.lists, state.now, state.rules, log.columns)
        return self._tidy_finished()

    def _tidy_finished(self) -> bool:
        """Give back what finished rows held beyond plain gangs; whether any finished."""
        finished = int(self.state.lists.number[ls.FINISHED]) > 0
        if finished and self.engine.grants.minds_changes:
            self.engine.grants.forget_finished()
        return finished

    def _commit(self, plan: Plan) -> None:
        """Commit now, or after the decision's latency against whatever the state is by then."""
        if not self.latency:
            self.engine.commit(plan)
            return
        state = self.state
        asked = (state.rows if self.engine.asked is None else self.engine.asked).copy()
        self._pass(state.now + self.latency)
        overtaken = self._observe()
        self.engine.commit_late(plan, asked)
        if overtaken:  # somebody came or went while the decision was made
            self.agenda.touch()

    def _stalled(self) -> bool:
        state = self.state
        nothing_runs = math.isinf(next_finish(state.tables.F, state.tables.I, state.lists))
        return nothing_runs and state.lists.number[ls.NEXT] >= state.tables.count and self._next_node_event >= len(self.node_events)

    def _tracked_done(self) -> bool:
        return self.state.lists.number[ls.FINISHED] > 0 and self._all_tracked_ended()

    def _all_tracked_ended(self) -> bool:
        return self.track is not None and not np.isnan(self.state.tables.F[c.FINISH, self.track[0] : self.track[1]]).any()

    def _change_nodes(self) -> bool:
        """Apply inputs that are due, each at its own instant: who is done by then does not lose its work, who is not does."""
        state, now, changed = self.state, self.state.now, False
        while self._next_node_event < len(self.node_events) and self.node_events[self._next_node_event].time <= now:
            event = self.node_events[self._next_node_event]
            self._next_node_event += 1
            if not state.regime.finish_at_boundary:
                state.now = max(self._seen, event.time)
            if self.engine.grants.minds_changes:
                self._finish_in_order()
            self._finish_due()
            changed = True
            self._apply(event)
            self._measure()
            self._note_down()
        state.now = now
        return changed

    def _apply(self, value: Input) -> None:
        """Take one input in."""
        self.engine.apply(value)
        self._took_in(value)

    def _took_in(self, value: Input) -> None:
        """An input has changed the tables; on virtual time that is all."""

    def _note_down(self) -> None:
        """Devices that are out of use from now on; those of a node that drains or is released count when their gangs are gone."""
        t = self.state.tables
        down = int((t.D[c.D_HOLDER] == c.DOWN).sum())
        if down != (self.down[-1][1] if self.down else 0):
            self.down.append((self.state.now, down))
