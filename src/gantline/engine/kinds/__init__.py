"""Kinds of grants. Each says what a plan means for a gang that holds something (`change`), where a gang would go (`fits`), and how it
takes and gives back; how fast it goes is in `speed`. A new kind is one small class and one line here.

    gang           devices of its own that the engine chooses        shared          devices that a group holds together
    exact          devices of its own that the plan names            parts           workers of several roles
    share of time  so much of a type, and no device in particular
"""

from __future__ import annotations

from gantline.engine.kinds.exact import ExactGang
from gantline.engine.kinds.kind import Desk, Kind
from gantline.engine.kinds.parts import PartsGang
from gantline.engine.kinds.placed import PlacedGang
from gantline.engine.kinds.shared import SharedGang
from gantline.engine.kinds.time_share import TimeShare

KINDS: dict[str, type[Kind]] = {
    "gang": PlacedGang,
    "exact": ExactGang,
    "shared": SharedGang,
    "parts": PartsGang,
    "share of time": TimeShare,
}

__all__ = ["KINDS", "Desk", "Kind"]
