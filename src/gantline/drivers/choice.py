"""Which driver runs a simulation: `instant`, `acknowledged`, `measured`, or `faulty:SEED`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gantline.core import columns as c
from gantline.core.errors import NotFoundError, UsageError, near
from gantline.core.rng import stream
from gantline.drivers.virtual import Simulation

if TYPE_CHECKING:
    from gantline.drivers.faults import Faults
    from gantline.engine.engine import Engine
    from gantline.engine.executor import Executor

EXECUTORS = {
    "instant": "an order is true at once",
    "acknowledged": "orders go out and reports come in, without any delay: every number is the same as with 'instant'",
    "measured": "as real programs: stops take the time that the performance model knows of, and --min-run, --grace, --turn spare jobs",
    "faulty": "faulty:SEED has messages that are late, lost or doubled, and starts and stops that take time",
}


def make_driver(executor: str | Executor, engine: Engine, *settings: Any) -> Simulation:
    """A run that is driven as asked; `settings` are those of `Simulation`, in their order."""
    if executor == "instant":
        return Simulation(engine, *settings)
    from gantline.drivers.acknowledged import Acknowledged
    from gantline.drivers.faulty import FaultyExecutor
    from gantline.drivers.measured import MeasuredExecutor

    if not isinstance(executor, str):
        return Acknowledged(engine, *settings, executor=executor)
    name, _, option = executor.partition(":")
    if name not in EXECUTORS:
        raise NotFoundError(f"no executor '{executor}'", where="--executor", fix=near(name, EXECUTORS))
    if name != "faulty":
        if option:
            raise UsageError(f"'{name}' takes no '{option}'", where="--executor", fix=f"write {name}")
        if name == "measured":
            return Acknowledged(engine, *settings, executor=MeasuredExecutor.of(engine.state))
        return (Acknowledged if name == "acknowledged" else Simulation)(engine, *settings)
    if not option.isdigit():
        raise UsageError(f"'{option}' is not a seed", where="--executor", fix="write faulty:1")
    truth = engine.state.tables.F[c.WORK].copy()
    return Acknowledged(engine, *settings, executor=FaultyExecutor(truth, faults_of(int(option)), int(option)))


def faults_of(seed: int) -> Faults:
    """A bad world, drawn by a seed."""
    from gantline.drivers.faults import Faults

    draw = stream(seed, 0, "world")
    return Faults(
        delay=(0.0, float(draw.choice([0.5, 2.0, 10.0]))),
        loss=float(draw.choice([0.0, 0.05, 0.2])),
        doubled=float(draw.choice([0.0, 0.2])),
        start=(0.0, float(draw.choice([5.0, 30.0]))),
        stop=(0.0, float(draw.choice([5.0, 30.0]))),
        checkpoint=float(draw.choice([60.0, 600.0])),
    )
