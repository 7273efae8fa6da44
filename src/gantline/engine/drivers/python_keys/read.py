"""From a policy to a key that compiled code can evaluate, or the reason why it must be asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.policy import OrderPolicy, Policy, runs_by_key
from gantline.engine.declared_key import LinearKey
from gantline.engine.drivers.dense import at_asked_speed, why_not_on_records
from gantline.engine.drivers.python_keys.expression import FLOAT, CannotReadError, Term, cast
from gantline.engine.drivers.python_keys.hint import Hint, Within, hint_of
from gantline.engine.drivers.python_keys.linear import declare
from gantline.engine.drivers.python_keys.notes import NotedColumn, NotedSnapshot
from gantline.engine.drivers.python_keys.numpy_names import reading_names
from gantline.engine.state import State

if TYPE_CHECKING:
    from gantline.engine.drivers.python_keys.tape import Written

_BOUNDED = "quotas bound what jobs may hold"


class Reading(NamedTuple):
    """What became of a key: a sum for records, instructions for the tables, or neither; and why not."""

    declared: tuple[LinearKey, Floats | None] | None = None  # with numbers in place of the priorities, if it needs any
    written: Written | None = None
    sums: tuple[LinearKey, Floats | None] | None = None  # the sum that it is, also where records cannot represent the run
    no_records: str = ""
    no_tables: str = ""
    hint: Hint = Hint.NONE  # how long it declares its order to hold


def plainly(call: Callable[[], Any]) -> Any:
    """Call a policy without bounds."""
    return call()


def read_key(policy: Policy, state: State, guard: Within | None = None, bounded: bool = False) -> Reading:
    """Read the key of a policy that is nothing but a key.

    `guard` bounds the calls of it, as it does every turn; `bounded`: quotas bound what jobs may hold, which records do not know.
    """
    within = guard or plainly
    if not isinstance(policy, OrderPolicy):
        return _asked("it makes plans, not an order")
    if not within(lambda: runs_by_key(policy)):
        return _asked("it has a decide() of its own")
    no_records = _BOUNDED if bounded else why_not_on_records(state)
    depth = float(within(policy.backfill_depth))
    if depth:
        return _with_promises(policy, state, within, depth, no_records)
    hint = hint_of(policy, within)
    if hint is Hint.NOT_HEEDED_HERE:
        return _asked("its valid_until() is neither None nor infinite nor a function of the snapshot")
    try:
        return _compile(within(lambda: _note(policy, state)), state, hint, no_records)
    except CannotReadError as found:
        return _asked(f"its key takes {found}")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a mistake is the policy's own, when it is asked
        return _asked(f"its key raises {type(error).__name__}: {error}")


def _asked(why: str) -> Reading:
    return Reading(no_records=why, no_tables=why)


def _compile(key: Term, state: State, hint: Hint, no_records: str) -> Reading:
    """On records, if they can express it; an order declared to hold although it turns is one for the tables, which check it on demand."""
    found, why = declare(key, state.tables), ""
    linear, promised, on_events = found and found[0], hint is Hint.FOR_EVER, state.regime.round <= 0.0
    if on_events and hint is Hint.BY_SNAPSHOT and (linear is None or linear.rises):
        return _asked("its valid_until() names instants that the key does not show, and there are no rounds")
    if linear is None:
        why = "its key is no sum of columns, with a level in front or not"
    elif promised and (linear.rises or linear.thresholds):
        why = "its valid_until() says that the order holds although it turns"
    elif on_events and linear.thresholds and hint is not Hint.BY_SNAPSHOT:
        # a level counts from the very instant only if the policy says when that is; else from the next look on
        why = "it has levels and no valid_until(), and there are no rounds"
    sums = None if why else found
    why = why or no_records
    if not why:
        return Reading(found, sums=sums, hint=hint)
    from gantline.engine.drivers.python_keys.tape import write  # most keys do without

    written = write(key, state.tables.F.shape[1])
    if promised:
        return Reading(None, written._replace(until=math.inf), sums, why, hint=hint)
    if linear is not None:
        levels = () if on_events and hint is not Hint.BY_SNAPSHOT else linear.thresholds
        looks = linear.rises or len(levels) < len(linear.thresholds)
        until = math.nan if looks else math.inf
        written = written._replace(until=until, levels=levels, by_gpu=linear.level_by == "attained_gpu")
    return Reading(None, written, sums, why, hint=hint)


def _with_promises(policy: OrderPolicy, state: State, within: Within, depth: float, no_records: str) -> Reading:
    """Backfilling is compiled on records only."""
    why = no_records or ("" if at_asked_speed(state) else "it backfills, and jobs run at other speeds than they asked for")
    if why:
        return _asked(why)
    try:
        found = declare(within(lambda: _note(policy, state)), state.tables)
    except CannotReadError as reason:
        return _asked(f"its key takes {reason}")
    if found is None or found[0].moves:
        return _asked("it backfills in an order that moves")
    return Reading((replace(found[0], promises=depth), found[1]))


def _note(policy: OrderPolicy, state: State) -> Term:
    """Call the key once with columns that take notes."""
    question: Any = NotedSnapshot(state)
    with np.errstate(all="ignore"), reading_names(policy) as shadow:
        found: Any = shadow.key(question)
    if not isinstance(found, NotedColumn):
        raise CannotReadError("something else than columns of the snapshot")
    return cast(found.node, FLOAT)
