"""Speed by tier of placement: a gang on one machine, on machines of one rack, or across racks.

What averaging gradients costs depends on the slowest link that a gang crosses; measured per network, that is a slowdown per tier
(Themis, NSDI 2020, section 2; Tiresias, NSDI 2019, figure 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.cluster import Cluster
from gantline.core.errors import UsageError
from gantline.core.topology import level_of
from gantline.models.model import Gangs, PerformanceModel

_TIERS = "one machine, one rack, several racks"


@dataclass(frozen=True)
class PlacementTiers(PerformanceModel):
    """Slowdowns (one machine, one rack, several racks) of each network; those not named have `others`.

    >>> simulate(trace, "rack1:..", "themis", performance=PlacementTiers({"vgg": (1.0, 1.8, 3.0)}))

    Which machines a gang sits on is known to the run, however it was placed.
    """

    networks: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    others: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        for name, slowdowns in {**self.networks, "others": self.others}.items():
            if len(slowdowns) != 3 or not all(np.isfinite(slowdowns)) or list(slowdowns) != sorted(slowdowns) or slowdowns[0] < 1.0:
                what = f"the slowdowns of '{name}' are {tuple(slowdowns)}"
                raise UsageError(what, where="placement tiers", fix=f"three numbers from 1 on that do not fall: {_TIERS}")

    def slowdown(self, network: str, nodes: Sequence[int], cluster: Cluster) -> float:
        """How many times slower a gang on these nodes is than on one machine."""
        return self.networks.get(network, self.others)[level_of(cluster, nodes)]

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        rate = gangs.divided.copy()
        for at in np.flatnonzero(gangs.nodes > 1).tolist():
            rate[at] /= self.slowdown(gangs[at].model, gangs.places(at), gangs.cluster)
        return rate, np.full(len(gangs), np.inf)
