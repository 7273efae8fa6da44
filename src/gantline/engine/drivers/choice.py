"""Which driver runs a simulation: orders are true at once, or go to an executor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantline.engine.drivers.executors import EXECUTORS, make_executor
from gantline.engine.drivers.stepping import Driver
from gantline.engine.drivers.virtual import Virtual

if TYPE_CHECKING:
    from gantline.engine.engine import Engine
    from gantline.engine.executor import Executor


def make_driver(executor: str | Executor, engine: Engine) -> Driver:
    """How time passes in a run with that executor."""
    if executor == "instant":
        EXECUTORS.find("instant")  # refused where a package brings another thing of that name
        return Virtual()
    found = make_executor(executor, engine.state) if isinstance(executor, str) else executor
    from gantline.engine.drivers.acknowledged import Acknowledged

    return Acknowledged(engine, found)
