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

#: regime -> package here, the module of its loop, and the function
_KNOWN = {
    "gavel": ("gavel", "rounds", "run_in_rounds"),
    "elasticflow": ("elasticflow", "drive", "drive"),
    "irfsim": ("irfsim", "drive", "drive"),
    "irfsim-known": ("irfsim", "drive", "drive"),
    "shockwave": ("shockwave", "drive", "drive"),
    "sia": ("sia", "drive", "drive"),
    "pollux": ("pollux", "drive", "drive"),
    "pal": ("pal", "drive", "drive"),
    "gaia": ("gaia", "drive", "drive"),
}


def imitated_regimes() -> list[str]:
    """The regimes that are run by a loop of their own."""
    return list(_KNOWN)


def find_imitation(regime: str) -> Imitation | None:
    """The loop of that regime; None: the engine runs it."""
    if regime not in _KNOWN:
        return None
    package, module, function = _KNOWN[regime]
    found: Imitation = getattr(import_module(f"gantline.imitations.{package}.{module}"), function)
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
    found: Scope = import_module(f"gantline.imitations.{_KNOWN[regime][0]}.scope").SCOPE
    return found
