"""Which regimes are run by a loop of their own: those with an imitation in their system's manifest.

An imitation gets the run as it was set up and the trace, fills the run's tables and log, and may add to the summary. It is loaded when it
is asked for, because each brings kernels of its own. What it reads of a run is its scope.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gantline.core.errors import GantlineError, UsageError
from gantline.core.policy import Policy
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.scope import Scope
from gantline.engine.regime import REGIMES
from gantline.registry import KINDS, Register, has_foreign
from gantline.traces.trace import Trace

Imitation = Callable[[Simulation, Trace], dict[str, Any] | None]

_LOOPS = Register("imitations", {}, where="--regime")
_SCOPES = Register("scopes", {}, where="--regime")


def imitated_regimes() -> list[str]:
    """The regimes that are run by a loop of their own."""
    return _LOOPS.names()


def find_imitation(regime: str) -> Imitation | None:
    """The loop of that regime; None: the engine runs it."""
    found: Imitation | None = _load(_LOOPS, regime)
    return found


def read_in(policy: Policy) -> dict[str, tuple[str, ...]]:
    """The regimes with a loop of their own that run this policy, and the parameters that each reads."""
    found = {}
    for regime in imitated_regimes():
        scope = find_scope(regime)
        try:
            assert scope is not None
            scope.check_class(policy, "")
        except GantlineError:
            continue
        found[regime] = scope.reads(policy)
    return found


def find_scope(regime: str) -> Scope | None:
    """What the imitation of that regime reads of a run; None: the engine runs it."""
    found: Scope | None = _load(_SCOPES, regime)
    return found


def _load(register: Register, regime: str) -> Any:
    """What there is of a regime; one of ours is imitated by us or not at all."""
    known = REGIMES.find(regime)
    if known is not None and not known.system and not has_foreign():  # a general regime: no manifest need be read
        return None
    found = register.find(regime)
    if found is None:
        return None
    if known is not None and known.brought_by != found.brought_by:
        what = f"package '{found.brought_by}' brings an {KINDS['imitations']} of regime '{regime}', which '{known.brought_by}' brings"
        raise UsageError(what, where="--regime", fix="uninstall that package, or give its regime a name of its own")
    return register.load(regime)
