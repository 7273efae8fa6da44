"""A regime: the rules by which a run counts time.

The default decides on events, sees a finish at its exact instant and frees the devices at once. With a round length, decisions
fall on multiples of it. The other regimes imitate published simulators and are kept with their systems.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from gantline.core.errors import UsageError
from gantline.registry import Register


@dataclass(frozen=True)
class Regime:
    """When decisions fall, when a finish is seen, and what an eviction costs."""

    name: str = "default"
    round: float = 0.0  # seconds between decisions; 0: decide on events
    quantum: float = 60.0  # on events: an order that moves by itself is looked at again at whole multiples of this
    finish_at_boundary: bool = False  # a finish is seen, and its devices are free, at the end of the round only
    keep_evictions: bool = False  # gangs stopped for a job that then does not fit stay stopped
    strict: bool = False  # whatever the policy says: lower ranks give way, and no job passes one that does not fit
    settles: tuple[str, ...] = ()  # parameters of policies that say nothing here, because the regime decides that itself
    credit_round: bool = False  # responsiveness counts to the end of the first round, as Blox does
    tick: float = 0.0  # instants are whole multiples of it
    ties_keep_order: bool = False  # equal ranks keep the order of the last decision, rather than that of arrival
    track_end_included: bool = True  # whether --track LO:HI means HI too
    checkpoints: bool = False  # a run can be saved and resumed
    profiles: bool = False  # jobs run by measured profiles
    cluster: str = ""  # what the run has where no cluster is given; empty: one must be
    equal_sizes: bool = False  # members of a group that shares have the same number of devices; other plans are refused
    most_asked: float = math.inf  # of each device by all members of a group, as the sum of their fractions; other plans are refused
    sizes_bind: bool = True  # a job that asks for more than there is cannot run; else it may get less

    def with_round(self, seconds: float | None) -> Regime:
        return self if seconds is None else replace(self, round=float(seconds))

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "round": self.round}


DEFAULT = Regime()
REGIMES = Register("regimes", {"default": "gantline.engine.regime:DEFAULT"}, where="--regime")


def regime_names() -> list[str]:
    return REGIMES.names()


def find_regime(name: str) -> Regime:
    """The regime of that name."""
    found = REGIMES.load(name)
    if not isinstance(found, Regime):
        raise UsageError(f"'{name}' is a {type(found).__name__}, not a regime", where="--regime", fix="make it a `Regime`")
    return found
