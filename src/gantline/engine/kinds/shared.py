"""Devices that a group holds together: named by the plan, or found by the engine among those of the group."""

from __future__ import annotations

from gantline.core.grant import Grant
from gantline.core.reasons import Reason
from gantline.engine.changes import LEAVES, STAYS, Change
from gantline.engine.holdings import Holding
from gantline.engine.kinds.exact import ExactGang
from gantline.engine.kinds.kind import Placed
from gantline.engine.wanted import Wanted


class SharedGang(ExactGang):
    """A row that is already with its group stays; otherwise it joins the group."""

    def change(self, w: Wanted, held: Holding, grant: Grant | None) -> Change:
        if grant is not None and (grant.workers or grant.fluid):
            return LEAVES
        if not w.pooled:
            return super().change(w, held, grant)
        return STAYS if w.row in self.desk.staying else LEAVES

    def fits(self, w: Wanted, change: Change | None) -> Placed | Reason:
        if not w.pooled:
            return super().fits(w, change)
        chosen = self.desk.pools.find(w)
        span = w.item.span
        if chosen is not None and span and len(self.books.nodes(chosen)) != span:
            return Reason.FRAGMENTED
        return self.why_not(w) if chosen is None else Placed(self.books.gang(w.option, tuple(chosen), shared=True))
