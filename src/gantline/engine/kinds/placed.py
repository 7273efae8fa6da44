"""Devices of its own that the engine chooses, within the nodes, rack or pool that the plan allows.

The usual case, a gang without such requirements, is compiled (`gang_turns`); this is the same for the others.
"""

from __future__ import annotations

from gantline.core.columns import ASKED_TOGETHER, Job, Option
from gantline.core.grant import Grant
from gantline.core.reasons import Reason
from gantline.engine.changes import LEAVES, STAYS, Change, Manner
from gantline.engine.holdings import Holding
from gantline.engine.kinds.kind import Kind, Placed
from gantline.engine.placing import choose_devices, choose_node, extend, keeps_within, likes_together
from gantline.engine.wanted import Wanted


class PlacedGang(Kind):
    """It stays if it is of the right type, in the right place and of the right shape; if it grows, it may move as a whole."""

    def change(self, w: Wanted, held: Holding, grant: Grant | None) -> Change:
        if grant is not None and (grant.workers or grant.fluid):
            return LEAVES
        OI, nodes = self.state.tables.options.I, self.books.nodes(held.devices) or [held.node]
        need, spread = int(OI[Option.GPUS, w.option]), int(OI[Option.NODES, w.option])
        same_kind = OI[Option.TYPE, held.option] == OI[Option.TYPE, w.option] and (need == 0) == (held.node >= 0)
        if not same_kind or not keeps_within(self.state, nodes, w.item) or (spread and spread != len(nodes)):
            return LEAVES
        if need == len(held.devices):
            return STAYS
        if spread and self.state.tables.I[Job.CONSOLIDATE, w.row] != ASKED_TOGETHER:
            return LEAVES
        return Change(Manner.KEEPS, self.books.gang(held.option, held.devices[:need], held.shared))

    def fits(self, w: Wanted, change: Change | None) -> Placed | Reason:
        t, item = self.state.tables, w.item
        need = int(t.options.I[Option.GPUS, w.option])
        if need == 0:
            node = choose_node(self.state, w.row, w.option, item)
            return Placed(Holding(w.option, node=node)) if node >= 0 else Reason.RESOURCES
        if change is None or change.keep is None:
            chosen = choose_devices(self.state, w.row, w.option, item)
            return self.why_not(w) if chosen is None else self._at(w, chosen)
        chosen = extend(self.state, w.row, w.option, change.keep.devices, need, item)
        lacks = chosen is not None and not self._has_side(w, change.keep, chosen)
        if need > len(change.keep.devices) and (chosen is None or lacks or likes_together(self.state, w.row, item)):
            elsewhere = self._elsewhere(w, change.keep, None if lacks else chosen)
            if elsewhere is not None:
                return Placed(self.books.gang(w.option, tuple(elsewhere), shared=False), moved=True)
        if chosen is None:
            return self.why_not(w)
        return Reason.RESOURCES if lacks else self._at(w, chosen)

    def _has_side(self, w: Wanted, keep: Holding, chosen: list[int]) -> bool:
        """Whether the nodes have the CPUs and the memory too."""
        self.books.give_back(w.row)
        found = self.books.fits(self.books.gang(w.option, tuple(chosen), shared=False), w.company, keep)
        self.books.take(w.row, keep)
        return found

    def _at(self, w: Wanted, chosen: list[int]) -> Placed:
        return Placed(self.books.gang(w.option, tuple(chosen), shared=False))

    def _elsewhere(self, w: Wanted, keep: Holding, chosen: list[int] | None) -> list[int] | None:
        """A place for the whole gang on fewer nodes than growing where it is would need; None: there is none, or it may not move yet."""
        state = self.state
        if state.now < state.tables.F[Job.LAST_START, w.row] + state.min_run:
            return None
        spans = len(self.books.nodes(chosen)) if chosen is not None else len(state.tables.cluster.nodes) + 1
        if spans == 1:
            return None
        self.books.give_back(w.row)  # its own devices count as free
        found = choose_devices(state, w.row, w.option, w.item)
        self.books.take(w.row, keep)
        return found if found is not None and len(self.books.nodes(found)) < spans else None
