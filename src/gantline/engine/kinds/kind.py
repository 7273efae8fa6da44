"""The interface of every kind of grant."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from gantline.core.columns import Option
from gantline.core.grant import Grant, Worker
from gantline.core.reasons import Reason
from gantline.engine.changes import LEAVES, Change
from gantline.engine.fluid import Fluid
from gantline.engine.holdings import Holding, Holdings
from gantline.engine.sharing import Pools
from gantline.engine.state import State
from gantline.engine.wanted import Wanted


@dataclass(frozen=True)
class Desk:
    """What kinds of grants use while a plan is committed."""

    state: State
    books: Holdings
    fluid: Fluid
    pools: Pools
    staying: set[int]  # members of groups that are together already


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a gang would go."""

    holding: Holding
    workers: tuple[Worker, ...] = ()
    moved: bool = False  # all of it leaves where it was, although it might have kept something


class Kind(ABC):
    """One kind of grant; what is common to most."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.state, self.books = desk, desk.state, desk.books

    def change(self, w: Wanted, held: Holding, grant: Grant | None) -> Change:
        """What the plan means for a gang that holds something."""
        return LEAVES

    @abstractmethod
    def fits(self, w: Wanted, change: Change | None) -> Placed | Reason:
        """Where the gang would go, or why it cannot."""

    def take(self, row: int, place: Placed) -> None:
        """Enter what the row holds from now on."""
        self.books.take(row, place.holding)

    def give_back(self, row: int, grant: Grant | None) -> Holding:
        """The row gives up everything. Returns what it held."""
        if grant is not None and grant.fluid:
            self.desk.fluid.close(row)
        return self.books.give_back(row)

    def why_not(self, w: Wanted) -> Reason:
        """Why devices were not found: there are too few, or not where they should be."""
        OI = self.state.tables.options.I
        free = self.books.free_of(int(OI[Option.TYPE, w.option]))
        return Reason.FRAGMENTED if free >= int(OI[Option.GPUS, w.option]) else Reason.RESOURCES
