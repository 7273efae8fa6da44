"""So much of the time on each of several types, on no device in particular (Gavel's ideal mechanism)."""

from __future__ import annotations

from gantline.core.grant import Grant
from gantline.core.reasons import Reason
from gantline.engine.changes import LEAVES, STAYS, Change
from gantline.engine.holdings import Holding
from gantline.engine.kinds.kind import Kind, Placed
from gantline.engine.wanted import Wanted


class TimeShare(Kind):
    """Shares are given out anew whenever one of them changes; there is nothing to keep in place."""

    def change(self, w: Wanted, held: Holding, grant: Grant | None) -> Change:
        return STAYS if grant is not None and grant.fluid else LEAVES

    def fits(self, w: Wanted, change: Change | None) -> Placed | Reason:
        return Placed(Holding(w.option))
