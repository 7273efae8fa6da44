"""Which loop runs a policy that declares no key: on records, with what was read of its key, or with a question at every decision."""

from __future__ import annotations

from typing import Any

from gantline.core.policy import OrderPolicy
from gantline.drivers import loop_clock as lc
from gantline.drivers.declared import run_read
from gantline.drivers.python_keys.loop import NOT_BEGUN
from gantline.drivers.python_keys.questions import Questions
from gantline.drivers.python_keys.read import may_be_asked, read_key
from gantline.drivers.python_keys.run import LoopEnd, run_asked, run_by_key, run_written
from gantline.engine.engine import Engine


def run_key(engine: Engine, bounds: lc.LoopBounds) -> LoopEnd:
    """Run to the end, or as far as compiled code knows this policy and this run."""
    read = read_key(engine.policy, engine.state, engine.guard)
    if read.declared is not None:
        return LoopEnd(lc.CUT if run_read(engine, *read.declared, bounds) else lc.DONE)
    if read.written is not None:
        return run_written(engine, read.written, bounds)
    if not may_be_asked(engine.policy, engine.state):
        return LoopEnd(NOT_BEGUN)
    with engine.asked_often():
        if read.by_job is not None:
            return run_by_key(engine, read.by_job, bounds)
        if isinstance(engine.policy, OrderPolicy) and type(engine.policy).decide is OrderPolicy.decide:
            return run_by_key(engine, Questions(engine.policy, engine.state, engine.guard or _plainly, by_job=False), bounds)
        return run_asked(engine, bounds)


def _plainly(call: Any) -> Any:
    return call()
