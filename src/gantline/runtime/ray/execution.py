"""Orders are carried out on a Ray cluster as on one machine, but for how keepers begin."""

from __future__ import annotations

from collections.abc import Sequence

from gantline.runtime.launch import Launch
from gantline.runtime.local.incarnation import Incarnation
from gantline.runtime.ray.incarnation import RayIncarnation


class RayKeepers:
    """Keepers are actors."""

    def begin(self, one: Incarnation, launch: Launch) -> None:
        assert isinstance(one, RayIncarnation)
        one.start()

    def judge(self, one: Incarnation, alive: Sequence[Incarnation]) -> None:
        """Nothing more is known."""
