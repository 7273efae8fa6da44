"""The parameters of Synergy, by the names of its own policies, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from gantline.core.errors import RefusedError
from gantline.core.policy import Policy
from gantline.core.takes import about

ORDERS = ("fifo", "srtf", "las", "ftf", "drf", "tetris")
MECHANISMS = ("fair", "greedy", "tune", "opt")
PLACES = ("in-order", "consolidated")
MODES = ("replay", "static")


@dataclass(frozen=True)
class SynergySettings(Policy):
    """Which jobs go first, and how the CPUs and the memory of servers are divided among them."""

    name: ClassVar[str] = "synergy"
    paper: ClassVar[str] = "Mohan et al., Looking Beyond GPUs for DNN Scheduling on Multi-Tenant Clusters, OSDI 2022"

    order: str = field(default="srtf", metadata=about(f"which jobs go first: {', '.join(ORDERS)}", one_of=ORDERS))
    mechanism: str = field(
        default="tune",
        metadata=about(
            "CPUs and memory: fair (by GPUs), greedy (all or wait), tune (all or the share), opt (most speed)", one_of=MECHANISMS
        ),
    )
    place: str = field(
        default="in-order", metadata=about("nodes: in-order, or consolidated (the fullest that holds the job)", one_of=PLACES)
    )
    mode: str = field(default="replay", metadata=about("regime synergy: static begins rounds at one second", one_of=MODES))

    def for_regime(self, regime: str) -> Policy:
        if regime != "synergy" and self.mode != "replay":
            raise RefusedError("'mode' is read in regime synergy only", where="policy 'synergy'", fix="leave it out")
        return self
