"""From a policy to a key that compiled code can evaluate, or the reason why it must be asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.policy import LinearKey, OrderPolicy, Policy
from gantline.drivers.dense import fits_dense
from gantline.drivers.python_keys.expression import FLOAT, CannotReadError, Term, cast, fixed
from gantline.drivers.python_keys.hint import Hint, hint_of, never_turns
from gantline.drivers.python_keys.linear import declare
from gantline.drivers.python_keys.notes import NotedColumn, NotedSnapshot
from gantline.drivers.python_keys.numpy_names import reading_names
from gantline.drivers.python_keys.questions import Questions
from gantline.drivers.python_keys.tape import Written, write
from gantline.engine.state import State


class Reading(NamedTuple):
    """What became of a key: one of the first two, or why neither, and perhaps that it looks at each job by itself."""

    declared: tuple[LinearKey, Floats] | None = None  # on records
    written: Written | None = None  # on the tables
    why: str = ""
    by_job: Questions | None = None  # about jobs that may have changed
    hint: Hint = Hint.NONE  # how long it says that its order holds
    once: bool = False  # it has answered for all jobs of the run, and what it reads never changes


def may_be_asked(policy: Policy, state: State) -> bool:
    """Whether the loop of keys in Python knows this run, if the policy is asked at every decision."""
    return isinstance(policy, OrderPolicy) and not _unknown(state)


def _unknown(state: State) -> str:
    """What the loop of keys in Python does not know of a run; empty: it knows all."""
    if state.lists.number.any() or state.now != 0.0:
        return "the run has begun already"
    return f"the regime '{state.regime.name}' breaks ties by the last order" if state.regime.ties_keep_order else ""


def read_key(policy: Policy, state: State, guard: Callable[[Callable[[], Any]], Any] | None = None) -> Reading:
    """Read the key of a policy that is nothing but a key; `guard` bounds the calls of it, as it does every turn."""
    kind: Any = type(policy)
    if not isinstance(policy, OrderPolicy):
        return Reading(why="it makes plans, not an order")
    if kind.decide is not OrderPolicy.decide:
        return Reading(why="it has a decide() of its own")
    if _unknown(state):
        return Reading(why=_unknown(state))
    within: Callable[[Callable[[], Any]], Any] = (lambda call: call()) if guard is None else guard
    hint = hint_of(policy, within)
    if hint is Hint.NOT_HEEDED_HERE:
        found = Reading(why="of its valid_until(), which is neither None nor infinite nor a function of the snapshot")
    else:
        found = _read(policy, state, within, hint)
    if not found.why or not policy.per_job:
        return found
    asked = Questions(policy, state, within)
    if not asked.as_said:
        return found._replace(why=f"{found.why}, and it looks at other jobs although it says per_job")
    if asked.lasting is not None:
        return _compile(fixed(asked.lasting), state)._replace(once=True)
    return found._replace(by_job=asked)


def _read(policy: OrderPolicy, state: State, within: Callable[[Callable[[], Any]], Any], hint: Hint) -> Reading:
    try:
        return _compile(within(lambda: _note(policy, state)), state, hint)
    except CannotReadError as found:
        return Reading(why=f"it takes {found}")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a mistake is the policy's own, when it is asked
        return Reading(why=f"it raises {type(error).__name__}: {error}")


def _compile(key: Term, state: State, hint: Hint = Hint.NONE) -> Reading:
    """As a declared key, if one can say it; an order that is said to hold although it turns is one for the tables, which look when told."""
    declared, promised = declare(key, state.tables) if fits_dense(state) else None, hint is Hint.FOR_EVER
    # on events a declared level counts from the very instant, one that was written from the next look on
    if declared is not None and (state.regime.round > 0.0 or not declared[0].thresholds) and (never_turns(declared[0]) or not promised):
        return Reading(declared, hint=hint)
    written = write(key, state.tables.F.shape[1])
    return Reading(written=written._replace(moves=False) if promised else written, hint=hint)


def _note(policy: OrderPolicy, state: State) -> Term:
    """Call the key once with columns that take notes."""
    question: Any = NotedSnapshot(state)
    with np.errstate(all="ignore"), reading_names(policy) as shadow:
        found: Any = shadow.key(question)
    if not isinstance(found, NotedColumn):
        raise CannotReadError("something else than columns of the snapshot")
    return cast(found.node, FLOAT)
