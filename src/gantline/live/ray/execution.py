"""Carries out orders on a Ray cluster: as on one machine, but for how keepers begin, and what Ray holds for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gantline.engine.executor import Order
from gantline.live.launch import Launch
from gantline.live.local.execution import Execution
from gantline.live.local.incarnation import Incarnation
from gantline.live.local.incarnations import Loss
from gantline.live.ray.incarnation import RayIncarnation


class RayKeepers:
    """Keepers are actors."""

    def begin(self, one: Incarnation, launch: Launch) -> None:
        assert isinstance(one, RayIncarnation)
        one.start()

    def judge(self, one: Incarnation, alive: Sequence[Incarnation]) -> None:
        """Nothing more is known."""


@dataclass
class RayExecution(Execution):
    """Carries out one order at a time, in the runner's thread."""

    def carry_out(self, order: Order | Loss) -> None:
        super().carry_out(order)
        one = None if isinstance(order, Loss) else self.known.get(self.contact.task(order.row).job)
        if one is not None:
            self._settle(one)

    def look(self, one: Incarnation) -> None:
        super().look(one)
        self._settle(one)

    def _settle(self, one: Incarnation) -> None:
        """What it has is what Ray holds for it, unless it is about to change."""
        assert isinstance(one, RayIncarnation)
        if one.order.get("one_by_one") and not one.over and not one.switching:
            one.settle([self.writer.name(device) for device in one.devices])
