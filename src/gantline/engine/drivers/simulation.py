"""One run in virtual time, by the fastest loop that supports it; each reports whether it accepts the run, and why not.

records     the key is a sum over columns and its jobs are lines of memory: a decision costs what changes
tables      the key is such a sum, and keys of all jobs that run are added up at every decision
questions   the loop is compiled, and the policy is asked for its keys at every decision
steps       the policy is asked for a plan at every decision, and Python does the steps (`stepping`): accepts every run

A compiled loop takes a run as far as it goes, and leaves the rest to the steps; the result is the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from gantline.core.policy import OrderPolicy, runs_by_key
from gantline.engine import host_resources
from gantline.engine.drivers.acknowledged import Acknowledged
from gantline.engine.drivers.executors import EXECUTORS, make_executor
from gantline.engine.drivers.key_reading import Within, plainly, read_key
from gantline.engine.drivers.record_loop import run_on_records
from gantline.engine.drivers.six_steps import LoopBounds, Outcome, as_priorities
from gantline.engine.drivers.stepping import Driver, Stepping, Virtual
from gantline.engine.drivers.table_loop import run_asking_keys, run_on_tables
from gantline.engine.engine import Engine
from gantline.engine.executor import Executor
from gantline.engine.lists import RowCount

LOOPS = ("records", "tables", "questions", "steps", "imitation")  # the fastest first


class LoopReport(NamedTuple):
    """The loop that ran, and why each faster one did not."""

    name: str
    refused: dict[str, str]

    def lines(self) -> list[str]:
        """The loop, then one line per reason."""
        whys = dict.fromkeys(self.refused.values())
        faster = {why: ", ".join(name for name in self.refused if self.refused[name] == why) for why in whys}
        return [f"loop: {self.name}", *(f"not {names}: {why}" for why, names in faster.items())]

    def left_for_steps(self, now: float) -> LoopReport:
        """The same where this loop could not go on: Python does the steps from there on."""
        why = f"from {now:g} s on the policy must be asked for whole plans"
        return LoopReport("steps", dict.fromkeys(LOOPS[: LOOPS.index("steps")], why) | self.refused)


def report_on(name: str, *whys: str) -> LoopReport:
    """The loop of that name; `whys` are the reasons of the faster ones, the last for all that are left."""
    faster = LOOPS[: LOOPS.index(name)]
    return LoopReport(name, {loop: whys[min(place, len(whys) - 1)] for place, loop in enumerate(faster)})


def run_compiled(engine: Engine, bounds: LoopBounds, obstacle: str = "") -> tuple[int | None, LoopReport]:
    """Run to the end, or as far as compiled code supports this policy and this run; None: not at all.

    `obstacle` is what has to be done in Python between two decisions of this run.
    """
    policy, state = engine.policy, engine.state
    if obstacle:
        return None, report_on("steps", obstacle)
    if not isinstance(policy, OrderPolicy):
        return None, report_on("steps", "the policy makes plans, not an order")
    if state.regime.ties_keep_order:
        return None, report_on("steps", f"regime '{state.regime.name}' breaks ties by the last order")
    read = read_key(policy, state, engine.guard, engine.quotas.active)
    if read.key is not None:
        with as_priorities(read.numbers, state.tables):
            if read.on_records:
                return run_on_records(engine, read.key, bounds), report_on("records")
            return run_on_tables(engine, read.key, bounds), report_on("tables", read.why_tables)
    with engine.asked_often():
        within: Within = cast(Any, engine.guard) or plainly  # of whole plans elsewhere
        if not within(lambda: runs_by_key(policy)) or within(policy.backfill_depth):
            return None, report_on("steps", read.why_asked)
        return run_asking_keys(engine, policy, within, bounds), report_on("questions", read.why_asked)


# --- how time passes ----------------------------------------------------------------------------------------------------


def make_driver(executor: str | Executor, engine: Engine) -> Driver:
    """How time passes in a run with that executor."""
    if executor == "instant":
        EXECUTORS.find("instant")  # refused where a package brings another thing of that name
        return Virtual()
    found = make_executor(executor, engine.state) if isinstance(executor, str) else executor
    return Acknowledged(engine, found)


# --- the run ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Checkpoints:
    """Files of a run that a loop of its own can save and resume: where to save it, how often in virtual time, and from which to go on."""

    save: str = ""
    every: float = math.inf
    resume: str = ""


@dataclass
class Simulation(Stepping):
    """One run in virtual time."""

    checkpoints: Checkpoints = Checkpoints()
    profiles: object = None  # of regimes with jobs that run by measured profiles, as their reader returns them
    pieces: Any = None  # rows that an imitated original reports, where they are not one per job
    driver: Driver = field(default_factory=Virtual, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.loop: LoopReport = report_on("steps", "it is driven from outside")

    def run(self) -> None:
        """Run to the end: compiled, as far as that goes, then step by step."""
        code, self.loop = run_compiled(self.engine, self.bounds, self.between_decisions())
        if code is None:
            self.run_stepwise()
        else:
            self._observed = self.state.now
            if code == Outcome.CUT:
                self.cut()
            elif code == Outcome.DONE and self.state.lists.number[RowCount.WAITING] and self.stalled() and not self.tracked_ended():
                self.give_up("jobs wait that the policy never lets run")
            elif code == Outcome.STALLED:
                self.give_up()
            elif code == Outcome.ASK:
                self.loop = self.loop.left_for_steps(self.state.now)
                self.run_stepwise(True)
        host_resources.name_shortages(self.state.tables, self.state.rows)  # compiled loops look for places only
        self.engine.grants.close_open_intervals()

    def run_stepwise(self, ready: bool = False) -> None:
        """The stepping loop, see `steps`; what bounds each question is set up once for all of them."""
        with self.engine.asked_often():
            self.run_steps(ready)

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
            "jobs are spared for a while (--min-run, --grace, --turn of real programs)": engine.preemption_grace.applies,
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
