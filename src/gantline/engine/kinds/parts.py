"""Workers of several roles (parameter servers and workers, base and extra workers): each is placed, or none."""

from __future__ import annotations

from dataclasses import replace

from gantline.core.grant import Grant
from gantline.core.reasons import Reason
from gantline.engine.changes import LEAVES, STAYS, Change, Manner
from gantline.engine.holdings import Holding
from gantline.engine.kinds.kind import Kind, Placed
from gantline.engine.parts import kept_workers, place_parts, side_of
from gantline.engine.wanted import Wanted


class PartsGang(Kind):
    """Workers that are on a permitted node stay there."""

    def change(self, w: Wanted, held: Holding, grant: Grant | None) -> Change:
        if grant is not None and grant.fluid:
            return LEAVES
        workers = grant.workers if grant is not None else ()
        kept = kept_workers(workers, w.item.parts)
        if len(kept) == len(workers) == sum(part.count for part in w.item.parts):
            return STAYS
        if not kept:
            return LEAVES
        devices = tuple(device for worker in kept.values() for device in worker.devices)
        return Change(Manner.KEEPS, replace(held, devices=devices, side=side_of(list(kept.values()))), kept)

    def fits(self, w: Wanted, change: Change | None) -> Placed | Reason:
        workers = place_parts(self.state.tables, w.item.parts, (change.workers if change is not None else None) or {})
        if workers is None:
            return Reason.RESOURCES
        devices = tuple(device for worker in workers for device in worker.devices)
        return Placed(Holding(w.option, devices, -1 if devices else workers[0].node, side=side_of(workers)), workers)
