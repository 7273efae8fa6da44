"""One run in virtual time, by the fastest loop that supports it.

A run that needs nothing between two decisions but the policy's key is taken through the six steps inside one compiled function
(`compiled`), as far as that goes; every other one step by step (`stepping`), with the same result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gantline.engine import beside_reasons
from gantline.engine.drivers.checkpoints import NO_CHECKPOINTS, Checkpoints
from gantline.engine.drivers.compiled import LoopReport, report_on, run_compiled
from gantline.engine.drivers.loop_clock import LoopBounds, Outcome
from gantline.engine.drivers.stepping import Driver, Stepping
from gantline.engine.drivers.virtual import Virtual
from gantline.engine.lists import RowCount


@dataclass
class Simulation(Stepping):
    """One run in virtual time."""

    checkpoints: Checkpoints = NO_CHECKPOINTS  # of regimes with a loop that can be resumed
    profiles: object = None  # of regimes with jobs that run by measured profiles, as their reader returns them
    pieces: Any = None  # rows that an imitated original reports, where they are not one per job
    driver: Driver = field(default_factory=Virtual, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.loop: LoopReport = report_on("steps", "it is driven from outside")

    def run(self) -> None:
        """Run to the end: compiled, as far as that goes, then step by step."""
        ending, self.loop = run_compiled(self.engine, self.bounds, self.between_decisions())
        if ending is None:
            self.run_stepwise()
        else:
            self._observed = self.state.now
            if ending.code == Outcome.CUT:
                self.cut()
            elif ending.code == Outcome.DONE and self.state.lists.number[RowCount.WAITING] and self.stalled() and not self.tracked_ended():
                self.give_up("jobs wait that the policy never lets run")
            elif ending.code == Outcome.STALLED:
                self.give_up()
            elif ending.code == Outcome.ASK:
                self.loop = self.loop.left_for_steps(self.state.now)
                self.run_stepwise(True, ending.answer)
        beside_reasons.name_shortages(self.state.tables, self.state.rows)  # compiled loops look for places only
        self.engine.grants.close_open_intervals()

    def run_stepwise(self, *begun: Any) -> None:
        """The stepping loop, see `steps`; what bounds each question is set up once for all of them."""
        with self.engine.asked_often():
            self.run_steps(*begun)

    @property
    def bounds(self) -> LoopBounds:
        """What a compiled loop needs to know of this run."""
        return LoopBounds(self.until, self.track, self.load_limit, self.step_all, self.on_progress)

    def between_decisions(self) -> str:
        """What has to be done in Python between two decisions, beside asking the policy; empty: nothing."""
        engine, state = self.engine, self.state
        whys = {
            "an executor acknowledges what was decided": not isinstance(self.driver, Virtual),
            "nodes change, or something else comes from outside": self.inputs,
            "quotas bound what jobs may hold, and the run ends before all jobs have": engine.quotas.active and self.track,
            "jobs are spared for a while (--min-run, --grace, --turn of real programs)": engine.sparing.in_force,
            "estimates learn from jobs that end": self.estimates.learns,
            "decisions take time": self.latency,
            "the run is recorded": engine.recorder,
            "the performance model is asked about every gang": engine.grants.speeds.about_gangs,
            f"regime '{state.regime.name}' counts in ticks": state.regime.tick,
            "the policy remembers something": state.memory is not None,
            "nodes are cordoned": state.tables.cordoned,
            "devices are reserved in advance": state.tables.windows,
            "grants or promises of an earlier plan stand": state.tables.granted or state.reservations,
            "gangs to stop are chosen by what they lose": state.facts.victims != "order",
            f"placement '{state.placement.name}' is written in Python": state.placement.picks,
        }
        return next((why for why, holds in whys.items() if holds), "")
