"""A regime: one way of counting time.

The default decides on events, sees a finish at its exact instant and frees the devices at once. With a round length, decisions
fall on multiples of it. The other regimes imitate published simulators; each is one small file in `regimes/`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from typing import Any

from gantline.core.errors import NotFoundError, near


@dataclass(frozen=True)
class Regime:
    """When decisions fall, when a finish is seen, and what an eviction costs."""

    name: str = "default"
    round: float = 0.0  # seconds between decisions; 0: decide on events
    quantum: float = 60.0  # on events: an order that moves by itself is looked at again at whole multiples of this
    finish_at_boundary: bool = False  # a finish is seen, and its devices are free, at the end of the round only
    keep_evictions: bool = False  # gangs stopped for a job that then does not fit stay stopped
    strict: bool = False  # whatever the policy says: lower ranks give way, and nobody passes a job that does not fit
    credit_round: bool = False  # responsiveness counts to the end of the first round, as Blox does
    whole_nodes: bool = True  # consolidated gangs larger than a node take whole idle nodes
    tick: float = 0.0  # instants are whole multiples of it
    ties_keep_order: bool = False  # equal ranks keep the order of the last decision, rather than that of arrival
    track_end_included: bool = True  # whether --track LO:HI means HI too
    checkpoints: bool = False  # a run can be saved and gone on with
    profiles: bool = False  # jobs run by measured profiles
    cluster: str = ""  # what the run has where no cluster is given; empty: one must be
    sizes_bind: bool = True  # a job that asks for more than there is cannot run; else it may get less

    def with_round(self, seconds: float | None) -> Regime:
        return self if seconds is None else replace(self, round=float(seconds))

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "round": self.round}


#: name -> where its value stands, imported when it is asked for
_KNOWN = {
    "default": "gantline.engine.regimes.default:REGIME",
    "blox": "gantline.systems.blox.regime:REGIME",
    "tiresias": "gantline.systems.tiresias.regime:REGIME",
    "gavel": "gantline.systems.gavel.regime:REGIME",
    "elasticflow": "gantline.systems.elasticflow.regime:REGIME",
    "irfsim": "gantline.systems.allox.regime:REGIME",
    "irfsim-known": "gantline.systems.allox.regime_known:REGIME",
    "shockwave": "gantline.systems.shockwave.regime:REGIME",
    "sia": "gantline.systems.sia.regime:REGIME",
    "pollux": "gantline.systems.pollux.regime:REGIME",
    "pal": "gantline.systems.pal.regime:REGIME",
    "gaia": "gantline.systems.gaia.regime:REGIME",
}


def regime_names() -> list[str]:
    return list(_KNOWN)


def find_regime(name: str) -> Regime:
    """The regime of that name."""
    if name not in _KNOWN:
        raise NotFoundError(f"no regime '{name}'", where="--regime", fix=near(name, _KNOWN))
    module, _, attribute = _KNOWN[name].partition(":")
    regime: Regime = getattr(importlib.import_module(module), attribute)
    return regime
