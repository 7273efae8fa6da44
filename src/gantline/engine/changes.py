"""What a plan means for a gang that holds something already: it stays, keeps some of its devices in place, or leaves."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gantline.engine.holdings import Holding
from gantline.engine.parts import Kept


class Manner(Enum):
    """How much of what it holds a gang gives up."""

    STAYS = "keeps its devices"
    KEEPS = "keeps some of its devices in place"
    LEAVES = "gives up all of them"


@dataclass(frozen=True, slots=True)
class Change:
    """A gang's part in a commit, before its turn comes."""

    manner: Manner
    keep: Holding | None = None  # what it holds on to meanwhile
    workers: Kept | None = None  # the workers that stay, of a grant with parts


STAYS, LEAVES = Change(Manner.STAYS), Change(Manner.LEAVES)
