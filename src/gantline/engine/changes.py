"""What a plan means for a gang that holds something already: it stays, keeps some of its devices in place, or leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from gantline.core import columns as c
from gantline.core.grant import Grant
from gantline.engine.holdings import Holding, Holdings
from gantline.engine.parts import Kept, kept_workers, side_of
from gantline.engine.placing import keeps_within
from gantline.engine.wanted import Wanted

if TYPE_CHECKING:
    from gantline.engine.state import State


class Kind(Enum):
    """How much of what it holds a gang gives up."""

    STAYS = "keeps its devices"
    KEEPS = "keeps some of its devices in place"
    LEAVES = "gives up all of them"


@dataclass(frozen=True, slots=True)
class Change:
    """A gang's part in a commit, before its turn comes."""

    kind: Kind
    keep: Holding | None = None  # what it holds on to meanwhile
    workers: Kept | None = None  # who stays, of a grant with parts


STAYS, LEAVES = Change(Kind.STAYS), Change(Kind.LEAVES)


def read_change(state: State, books: Holdings, w: Wanted, held: Holding, grant: Grant | None, staying: set[int]) -> Change:
    """What the plan means for one gang; `staying` are members of groups that are together already."""
    item = w.item
    if w.fluid or (grant is not None and grant.fluid):
        return STAYS if w.fluid and grant is not None and grant.fluid else LEAVES
    if item.parts:
        return _change_of_parts(w, held, grant)
    if grant is not None and grant.workers:
        return LEAVES
    if w.pooled:
        return STAYS if w.row in staying else LEAVES
    if item.devices:
        if held.devices == tuple(item.devices):
            return STAYS
        common = tuple(device for device in held.devices if device in item.devices)
        return Change(Kind.KEEPS, books.gang(held.option, common, held.shared)) if common else LEAVES
    return _change_of_gang(state, books, w, held)


def _change_of_parts(w: Wanted, held: Holding, grant: Grant | None) -> Change:
    workers = grant.workers if grant is not None else ()
    kept = kept_workers(workers, w.item.parts)
    if len(kept) == len(workers) == sum(part.count for part in w.item.parts):
        return STAYS
    if not kept:
        return LEAVES
    devices = tuple(device for worker in kept.values() for device in worker.devices)
    return Change(Kind.KEEPS, replace(held, devices=devices, side=side_of(list(kept.values()))), kept)


def _change_of_gang(state: State, books: Holdings, w: Wanted, held: Holding) -> Change:
    """The same for a gang that the engine places: it stays if it is of the right type, in the right place and of the right shape."""
    OI, nodes = state.tables.options.I, books.nodes(held.devices) or [held.node]
    need, spread = int(OI[c.O_GPUS, w.option]), int(OI[c.O_NODES, w.option])
    same_kind = OI[c.O_TYPE, held.option] == OI[c.O_TYPE, w.option] and (need == 0) == (held.node >= 0)
    if not same_kind or not keeps_within(state, nodes, w.item) or (spread and spread != len(nodes)):
        return LEAVES
    if need == len(held.devices):
        return STAYS
    if spread:
        return LEAVES
    return Change(Kind.KEEPS, books.gang(held.option, held.devices[:need], held.shared))
