"""Which compiled loop runs a simulation: each reports whether it accepts the run, and why not.

records     the key is a sum over columns and its jobs are lines of memory: a decision costs what changes
tables      the key is evaluated at every decision, by NumPy's loops inside the compiled one
questions   the loop is compiled, and the policy is asked at every decision
steps       the policy is asked at every decision, and Python does the steps (`drivers.virtual`): accepts every run
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from gantline.core.policy import OrderPolicy, runs_by_key
from gantline.engine.drivers.declared import as_priorities
from gantline.engine.drivers.dense import run_on_records
from gantline.engine.drivers.loop_clock import LoopBounds, LoopEnd
from gantline.engine.drivers.python_keys.hint import Within
from gantline.engine.drivers.python_keys.read import plainly, read_key
from gantline.engine.engine import Engine

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


def run_compiled(engine: Engine, bounds: LoopBounds, obstacle: str = "") -> tuple[LoopEnd | None, LoopReport]:
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
    if read.declared is not None:
        key, numbers = read.declared
        with as_priorities(numbers, state.tables):
            return LoopEnd(run_on_records(engine, key, bounds)), report_on("records")
    from gantline.engine.drivers.python_keys.questions import Questions  # most runs are on records, and do without
    from gantline.engine.drivers.python_keys.run import run_plans, run_questions, run_written

    if read.written is not None:
        return run_written(engine, read.written, bounds), report_on("tables", read.no_records)
    with engine.asked_often():
        within: Within = cast(Any, engine.guard) or plainly  # of whole plans elsewhere
        if within(lambda: runs_by_key(policy)) and not within(policy.backfill_depth):
            ending = run_questions(engine, Questions(policy, state, within), bounds)
        else:
            ending = run_plans(engine, bounds)
    return ending, report_on("questions", read.no_records, read.no_tables)
