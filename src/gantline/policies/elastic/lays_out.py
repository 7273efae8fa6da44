"""The parameters of policies that may lay out their gangs themselves instead of leaving that to the engine."""

from __future__ import annotations

from dataclasses import dataclass, field

from gantline.core.arrays import Ints
from gantline.core.constraints import param
from gantline.core.policy import Policy
from gantline.policies.elastic.held_devices import NamedDevices
from gantline.policies.elastic.layouts import LAYOUT, LAYOUTS, MOVE_COST, TypeLayout
from gantline.policies.elastic.pools import Pool, SeatsOf


@dataclass(frozen=True)
class LaysOut(Policy):
    """Shares out devices, and may say which."""

    layout: str = field(default="engine", kw_only=True, metadata=param(LAYOUT, one_of=LAYOUTS))
    move_cost: str = field(default="auto", kw_only=True, metadata=param(MOVE_COST, one_of=("auto",), low=0.0, finite=True, unit="seconds"))

    @property
    def seats(self) -> SeatsOf | None:
        """What finds the devices of gangs that change or move; None: the engine."""
        return None if self.layout == "engine" else self._seats

    def _seats(self, pool: Pool, grants: Ints) -> NamedDevices:
        return TypeLayout(pool.snapshot, pool.kind, pool.jobs, grants).devices(self.layout, self.move_cost)
