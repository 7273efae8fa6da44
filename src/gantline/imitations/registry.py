"""Which regimes are run by a loop of their own; a new imitation is one package and one line here.

An imitation gets the run as it was set up and the trace, fills the run's tables and log, and may add to the summary. It is loaded when it
is asked for, because each brings kernels of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from gantline.drivers.virtual import Simulation
from gantline.workload.trace import Trace

Imitation = Callable[[Simulation, Trace], dict[str, Any] | None]

#: regime -> module in this package, and its function
_KNOWN = {
    "gavel": ("gavel.rounds", "run_in_rounds"),
    "elasticflow": ("elasticflow.drive", "drive"),
    "irfsim": ("irfsim.drive", "drive"),
    "irfsim-known": ("irfsim.drive", "drive"),
    "shockwave": ("shockwave.drive", "drive"),
    "sia": ("sia.drive", "drive"),
    "pollux": ("pollux.drive", "drive"),
}


def imitated(regime: str) -> bool:
    """Whether that regime is run by a loop of its own."""
    return regime in _KNOWN


def find_imitation(regime: str) -> Imitation | None:
    """The loop of that regime; None: the engine runs it."""
    if regime not in _KNOWN:
        return None
    module, function = _KNOWN[regime]
    found: Imitation = getattr(import_module(f"gantline.imitations.{module}"), function)
    return found
