"""How fast a gang goes that shares, when no performance model says otherwise.

Devices are divided: in space by the fractions that members ask for, in time by their shares; stages and communication phases that are
interleaved are taken not to collide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gantline.core.grant import Grant
from gantline.core.plan import Assignment, Mode


def of_gang(grant: Grant, mates: Mapping[int, Grant], alone: float) -> float:
    """An unshared gang, on devices that the engine or the plan chose: the speed of its option, less what it does not use."""
    return alone * grant.assignment.fraction


def of_shared(grant: Grant, mates: Mapping[int, Grant], alone: float) -> float:
    """Members of a group on the same devices get what they ask for, or their part of it where too much is asked."""
    item = grant.assignment
    if item.mode == Mode.TIME:
        return alone * item.share / max(1.0, _crowd(item.share, grant, mates, "share"))
    if item.mode == Mode.SPACE:
        return alone * item.fraction / max(1.0, _crowd(item.fraction, grant, mates, "fraction"))
    return alone * item.fraction


def _crowd(own: float, grant: Grant, mates: Mapping[int, Grant], amount: str) -> float:
    """What is asked in all of the device that is asked most of: a gang is as fast as its slowest worker."""

    def asked(item: Assignment) -> float:
        return float(getattr(item, amount))

    if grant.fluid:
        return own + sum(asked(mate.assignment) for mate in mates.values())
    return max((own + sum(asked(m.assignment) for m in mates.values() if device in m.devices) for device in grant.devices), default=own)


Speed = Callable[[Grant, Mapping[int, Grant], float], float]

#: kind of grant -> its speed, given its mates and the speed that its option has alone
SPEEDS: dict[str, Speed] = {"gang": of_shared, "exact": of_shared, "parts": of_gang, "shared": of_shared, "share of time": of_shared}
