"""One run in virtual time, by the fastest loop that knows it.

A run that needs nothing between two decisions but the policy's key is taken through the six steps inside one compiled function; every other
one step by step (`stepping`), with the same result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gantline.core.policy import LinearKey, OrderPolicy, linear_speaks
from gantline.drivers.checkpoints import NO_CHECKPOINTS, Checkpoints
from gantline.drivers.declared import run_declared
from gantline.drivers.dense import knows
from gantline.drivers.loop_clock import CUT, DONE, LoopBounds
from gantline.drivers.stepping import Driver, Stepping
from gantline.drivers.virtual import Virtual
from gantline.engine import lists as ls

if TYPE_CHECKING:
    from gantline.performance.goodput.measured import Profiles


@dataclass
class Simulation(Stepping):
    """One run in virtual time."""

    checkpoints: Checkpoints = NO_CHECKPOINTS  # of regimes whose loop can be gone on with
    profiles: Profiles | None = None  # of regimes whose jobs run by measured profiles
    pieces: Any = None  # rows that an imitated original reports, where they are not one per job
    driver: Driver = field(default_factory=Virtual, kw_only=True)

    def run(self) -> None:
        """Run to the end."""
        key = self.declared_key()
        if key is not None:
            if run_declared(self.engine, key, self.bounds):
                self.cut()
        elif self._needs_no_python():
            self._run_key()
        else:
            self.run_stepwise()
        self.engine.grants.close_open_intervals()

    def run_stepwise(self, *begun: Any) -> None:
        """The stepping loop, see `steps`; what bounds each question is set up once for all of them."""
        with self.engine.asked_often():
            self.run_steps(*begun)

    def _run_key(self) -> None:
        """Where the loop of keys in Python does not know on, the stepping loop does; all of it, where it does not even begin."""
        from gantline.drivers.python_keys.choose import run_key  # runs of declared keys do without
        from gantline.drivers.python_keys.loop import ASK, NOT_BEGUN, STALLED

        ending = run_key(self.engine, self.bounds)
        self._observed = self.state.now
        if ending.code == CUT:
            self.cut()
        elif ending.code == DONE and self.state.lists.number[ls.WAITING] and self.stalled() and not self.tracked_ended():
            self.give_up("jobs wait that the policy never lets run")
        elif ending.code == STALLED:
            self.give_up()
        elif ending.code in (ASK, NOT_BEGUN):
            self.run_stepwise(ending.code == ASK, ending.answer)

    @property
    def bounds(self) -> LoopBounds:
        """What a compiled loop needs to know of this run."""
        return LoopBounds(self.until, self.track, self.load_limit, self.step_all, self.on_progress)

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
        return isinstance(self.driver, Virtual) and not (
            self.inputs
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
