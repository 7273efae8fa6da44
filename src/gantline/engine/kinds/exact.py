"""Devices of its own that the plan names, in rank order."""

from __future__ import annotations

from gantline.core.grant import Grant
from gantline.core.reasons import Reason
from gantline.engine.changes import LEAVES, STAYS, Change, Manner
from gantline.engine.holdings import Holding
from gantline.engine.kinds.kind import Kind, Placed
from gantline.engine.wanted import Wanted


class ExactGang(Kind):
    """A row that holds some of the named devices keeps those in place."""

    def change(self, w: Wanted, held: Holding, grant: Grant | None) -> Change:
        if grant is not None and (grant.workers or grant.fluid):
            return LEAVES
        if held.devices == tuple(w.item.devices):
            return STAYS
        common = tuple(device for device in held.devices if device in w.item.devices)
        return Change(Manner.KEEPS, self.books.gang(held.option, common, held.shared)) if common else LEAVES

    def fits(self, w: Wanted, change: Change | None) -> Placed | Reason:
        return Placed(self.books.gang(w.option, tuple(w.item.devices), w.shares))
