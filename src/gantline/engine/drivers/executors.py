"""What carries orders out in a simulation, by name: ours, and what installed packages bring (group ``gantline.executors``).

An entry is a function ``make(state, option) -> Executor``: `option` is the text behind the colon of ``faulty:7``, or empty.
Executors of a service are another kind (`gantline.live.runners`): they have machines, and no virtual time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantline.core.columns import Job
from gantline.core.errors import GantlineError, UsageError
from gantline.core.rng import stream
from gantline.registry import Register

if TYPE_CHECKING:
    from gantline.engine.drivers.faults import Faults
    from gantline.engine.executor import Executor
    from gantline.engine.state import State

EXECUTORS = Register(
    "executors",
    {
        "instant": ("gantline.engine.drivers.virtual:Virtual", "an order is true at once"),
        "acknowledged": (
            "gantline.engine.drivers.executors:prompt",
            "orders go out and reports come in, without any delay: every number is the same as with 'instant'",
        ),
        "measured": (
            "gantline.engine.drivers.executors:measured",
            "as real programs: stops take the time that the performance model knows of, and --min-run, --grace, --turn spare jobs",
        ),
        "faulty": (
            "gantline.engine.drivers.executors:faulty",
            "faulty:SEED has messages that are late, lost or doubled, and starts and stops that take time",
        ),
    },
    where="--executor",
)
_PARTS = ("can", "send", "next_time", "receive", "fail")


def make_executor(text: str, state: State) -> Executor:
    """The executor that ``NAME`` or ``NAME:OPTION`` means, for the run with this state."""
    name, _, option = text.partition(":")
    make, where = EXECUTORS.load(name), f"--executor {text}"
    try:
        found: Executor = make(state, option)
    except GantlineError:
        raise
    except Exception as error:  # whatever the code of another package raises
        raise UsageError(f"cannot be made: {type(error).__name__}: {error}", where=where) from error
    if missing := [part for part in _PARTS if not hasattr(found, part)]:
        fix = "return what gantline.engine.executor.Executor describes"
        raise UsageError(f"a {type(found).__name__} has no {', '.join(missing)}", where=where, fix=fix)
    return found


def prompt(state: State, option: str) -> Executor:
    """It reports at once."""
    from gantline.engine.drivers.prompt import Prompt

    _no_option("acknowledged", option)
    return Prompt(state)


def measured(state: State, option: str) -> Executor:
    """Stops take the time that the performance model gives."""
    from gantline.engine.drivers.measured import MeasuredExecutor

    _no_option("measured", option)
    return MeasuredExecutor.of(state)


def faulty(state: State, option: str) -> Executor:
    """An executor with faults that are drawn from a seed."""
    from gantline.engine.drivers.faulty import FaultyExecutor

    if not option.isdigit():
        raise UsageError(f"'{option}' is not a seed", where="--executor", fix="write faulty:1")
    return FaultyExecutor(state.tables.F[Job.WORK].copy(), faults_of(int(option)), int(option))


def faults_of(seed: int) -> Faults:
    """The faults of that seed."""
    from gantline.engine.drivers.faults import Faults

    draw = stream(seed, 0, "world")
    return Faults(
        delay=(0.0, float(draw.choice([0.5, 2.0, 10.0]))),
        loss=float(draw.choice([0.0, 0.05, 0.2])),
        doubled=float(draw.choice([0.0, 0.2])),
        start=(0.0, float(draw.choice([5.0, 30.0]))),
        stop=(0.0, float(draw.choice([5.0, 30.0]))),
        checkpoint=float(draw.choice([60.0, 600.0])),
    )


def _no_option(name: str, option: str) -> None:
    if option:
        raise UsageError(f"'{name}' takes no '{option}'", where="--executor", fix=f"write {name}")
