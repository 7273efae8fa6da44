"""How long a policy declares its order to hold (`valid_until()`), and whether a key that is read must respect it.

A true hint changes nothing but how often the policy is asked: a read key is evaluated whenever the order may change, so it needs none.
One that is "for ever" whatever the snapshot is respected all the same, as it costs nothing: a promise that is not kept gives the
run that it gives when the policy is asked, and ``--verify-skips`` finds it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from numbers import Real
from typing import Any

from gantline.core.policy import OrderPolicy
from gantline.engine.drivers.python_keys.expression import CannotReadError

Within = Callable[[Callable[[], Any]], Any]  # bounds a call


class Hint(Enum):
    """Which declaration must be respected."""

    NONE = "it says nothing, or that it wants to be asked again"
    FOR_EVER = "the order holds until something happens"
    BY_SNAPSHOT = "a time that depends on the snapshot: a read key does without"
    NOT_HEEDED_HERE = "a fixed time, no time at all, or a mistake: the policy is asked"


class Nothing:
    """A snapshot of which nothing may be read."""

    def __getattr__(self, name: str) -> Any:
        raise CannotReadError(name)

    def __len__(self) -> int:
        raise CannotReadError("its length")


def time_said(said: Any) -> float | None:
    """How long a policy may declare its order to hold."""
    if said is None or (isinstance(said, Real) and not math.isnan(said)):
        return None if said is None else float(said)
    raise ValueError("no time")


def hint_of(policy: OrderPolicy, within: Within) -> Hint:
    """Ask once, with a snapshot of which nothing may be read."""
    if type(policy).valid_until is OrderPolicy.valid_until:
        return Hint.NONE
    nothing: Any = Nothing()
    try:
        said = time_said(within(lambda: policy.valid_until(nothing)))
    except CannotReadError:
        return Hint.BY_SNAPSHOT
    except KeyboardInterrupt:
        raise
    except BaseException:  # its mistake is reported when it is asked
        return Hint.NOT_HEEDED_HERE
    return Hint.NONE if said is None else Hint.FOR_EVER if said == math.inf else Hint.NOT_HEEDED_HERE
