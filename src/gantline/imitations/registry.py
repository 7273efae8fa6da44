"""Which regimes are run by a loop of their own; a new imitation is one package and one line here.

An imitation gets the run as it was set up and the trace, fills the run's tables and log, and may add to the summary. It is loaded when it
is asked for, because each brings kernels of its own. What it reads of a run is in its package's `scope.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from gantline.core.errors import GantlineError
from gantline.core.policy import Policy
from gantline.drivers.virtual import Simulation
from gantline.imitations.scope import Scope
from gantline.workload.trace import Trace

Imitation = Callable[[Simulation, Trace], dict[str, Any] | None]

#: regime -> its loop, and what that reads of a run
_KNOWN = {
    "gavel": ("gantline.systems.gavel.imitation.rounds:run_in_rounds", "gantline.systems.gavel.imitation.scope:SCOPE"),
    "elasticflow": ("gantline.systems.elasticflow.imitation.drive:drive", "gantline.systems.elasticflow.imitation.scope:SCOPE"),
    "irfsim": ("gantline.systems.allox.imitation.drive:drive", "gantline.systems.allox.imitation.scope:SCOPE"),
    "irfsim-known": ("gantline.systems.allox.imitation.drive:drive", "gantline.systems.allox.imitation.scope:SCOPE"),
    "shockwave": ("gantline.systems.shockwave.imitation.drive:drive", "gantline.systems.shockwave.imitation.scope:SCOPE"),
    "sia": ("gantline.systems.sia.imitation.drive:drive", "gantline.systems.sia.imitation.scope:SCOPE"),
    "pollux": ("gantline.systems.pollux.imitation.drive:drive", "gantline.systems.pollux.imitation.scope:SCOPE"),
    "pal": ("gantline.systems.pal.imitation.drive:drive", "gantline.systems.pal.imitation.scope:SCOPE"),
    "gaia": ("gantline.systems.gaia.imitation.drive:drive", "gantline.systems.gaia.imitation.scope:SCOPE"),
}


def imitated_regimes() -> list[str]:
    """The regimes that are run by a loop of their own."""
    return list(_KNOWN)


def find_imitation(regime: str) -> Imitation | None:
    """The loop of that regime; None: the engine runs it."""
    if regime not in _KNOWN:
        return None
    found: Imitation = _load(_KNOWN[regime][0])
    return found


def read_in(policy: Policy) -> dict[str, tuple[str, ...]]:
    """The regimes with a loop of their own that run this policy, and the parameters that each reads."""
    found = {}
    for regime in _KNOWN:
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
    if regime not in _KNOWN:
        return None
    found: Scope = _load(_KNOWN[regime][1])
    return found


def _load(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)
