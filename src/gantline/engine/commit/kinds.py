"""Kinds of grants: what a plan means for a gang that holds something (`change`), where it would go (`fits`), how it gives back.

    gang           devices of its own that the engine chooses        shared          devices that a group holds together
    exact          devices of its own that the plan names            parts           workers of several roles
    share of time  so much of a type, and no device in particular

A new kind is one small class and one line at the end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import Enum

from gantline.core.columns import ASKED_TOGETHER, Job, Option
from gantline.core.grant import Grant, Worker
from gantline.core.reasons import Reason
from gantline.engine.commit.places import (
    Kept,
    Pools,
    choose_devices,
    choose_node,
    extend,
    keeps_within,
    kept_workers,
    likes_together,
    place_parts,
    side_of,
)
from gantline.engine.commit.requested import Requested
from gantline.engine.holdings import Holding, Holdings
from gantline.engine.state import State
from gantline.engine.time_shares import Fluid


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


# The interface of every kind of grant.


@dataclass(frozen=True)
class CommitContext:
    """What kinds of grants use while a plan is committed."""

    state: State
    holdings: Holdings
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

    def __init__(self, context: CommitContext) -> None:
        self.context, self.state, self.holdings = context, context.state, context.holdings

    def change(self, w: Requested, held: Holding, grant: Grant | None) -> Change:
        """What the plan means for a gang that holds something."""
        return LEAVES

    @abstractmethod
    def fits(self, w: Requested, change: Change | None) -> Placed | Reason:
        """Where the gang would go, or why it cannot."""

    def take(self, row: int, place: Placed) -> None:
        """Enter what the row holds from now on."""
        self.holdings.take(row, place.holding)

    def give_back(self, row: int, grant: Grant | None) -> Holding:
        """The row gives up everything. Returns what it held."""
        if grant is not None and grant.fluid:
            self.context.fluid.close(row)
        return self.holdings.give_back(row)

    def why_not(self, w: Requested) -> Reason:
        """Why devices were not found: there are too few, or not where they should be."""
        OI = self.state.tables.options.I
        free = self.holdings.free_of(int(OI[Option.TYPE, w.option]))
        return Reason.FRAGMENTED if free >= int(OI[Option.GPUS, w.option]) else Reason.RESOURCES


# Devices of its own that the plan names, in rank order.


class ExactGang(Kind):
    """A row that holds some of the named devices keeps those in place."""

    def change(self, w: Requested, held: Holding, grant: Grant | None) -> Change:
        if grant is not None and (grant.workers or grant.fluid):
            return LEAVES
        if held.devices == tuple(w.item.devices):
            return STAYS
        common = tuple(device for device in held.devices if device in w.item.devices)
        return Change(Manner.KEEPS, self.holdings.gang(held.option, common, held.shared)) if common else LEAVES

    def fits(self, w: Requested, change: Change | None) -> Placed | Reason:
        return Placed(self.holdings.gang(w.option, tuple(w.item.devices), w.shares))


# Devices of its own that the engine chooses, within the nodes, rack or pool that the plan allows.
#
# The usual case, a gang without such requirements, is compiled (`take_turns`); this is the same for the others.


class PlacedGang(Kind):
    """It stays if it is of the right type, in the right place and of the right shape; if it grows, it may move as a whole."""

    def change(self, w: Requested, held: Holding, grant: Grant | None) -> Change:
        if grant is not None and (grant.workers or grant.fluid):
            return LEAVES
        OI, nodes = self.state.tables.options.I, self.holdings.nodes(held.devices) or [held.node]
        need, spread = int(OI[Option.GPUS, w.option]), int(OI[Option.NODES, w.option])
        same_kind = OI[Option.TYPE, held.option] == OI[Option.TYPE, w.option] and (need == 0) == (held.node >= 0)
        if not same_kind or not keeps_within(self.state, nodes, w.item) or (spread and spread != len(nodes)):
            return LEAVES
        if need == len(held.devices):
            return STAYS
        if spread and self.state.tables.I[Job.CONSOLIDATE, w.row] != ASKED_TOGETHER:
            return LEAVES
        return Change(Manner.KEEPS, self.holdings.gang(held.option, held.devices[:need], held.shared))

    def fits(self, w: Requested, change: Change | None) -> Placed | Reason:
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
                return Placed(self.holdings.gang(w.option, tuple(elsewhere), shared=False), moved=True)
        if chosen is None:
            return self.why_not(w)
        return Reason.RESOURCES if lacks else self._at(w, chosen)

    def _has_side(self, w: Requested, keep: Holding, chosen: list[int]) -> bool:
        """Whether the nodes have the CPUs and the memory too."""
        self.holdings.give_back(w.row)
        found = self.holdings.fits(self.holdings.gang(w.option, tuple(chosen), shared=False), w.company, keep)
        self.holdings.take(w.row, keep)
        return found

    def _at(self, w: Requested, chosen: list[int]) -> Placed:
        return Placed(self.holdings.gang(w.option, tuple(chosen), shared=False))

    def _elsewhere(self, w: Requested, keep: Holding, chosen: list[int] | None) -> list[int] | None:
        """A place for the whole gang on fewer nodes than growing where it is would need; None: there is none, or it may not move yet."""
        state = self.state
        if state.now < state.tables.F[Job.LAST_START, w.row] + state.min_run:
            return None
        spans = len(self.holdings.nodes(chosen)) if chosen is not None else len(state.tables.cluster.nodes) + 1
        if spans == 1:
            return None
        self.holdings.give_back(w.row)  # its own devices count as free
        found = choose_devices(state, w.row, w.option, w.item)
        self.holdings.take(w.row, keep)
        return found if found is not None and len(self.holdings.nodes(found)) < spans else None


# Devices that a group holds together: named by the plan, or found by the engine among those of the group.


class SharedGang(ExactGang):
    """A row that is already with its group stays; otherwise it joins the group."""

    def change(self, w: Requested, held: Holding, grant: Grant | None) -> Change:
        if grant is not None and (grant.workers or grant.fluid):
            return LEAVES
        if not w.pooled:
            return super().change(w, held, grant)
        return STAYS if w.row in self.context.staying else LEAVES

    def fits(self, w: Requested, change: Change | None) -> Placed | Reason:
        if not w.pooled:
            return super().fits(w, change)
        chosen = self.context.pools.find(w)
        span = w.item.span
        if chosen is not None and span and len(self.holdings.nodes(chosen)) != span:
            return Reason.FRAGMENTED
        return self.why_not(w) if chosen is None else Placed(self.holdings.gang(w.option, tuple(chosen), shared=True))


# Workers of several roles (parameter servers and workers, base and extra workers): each is placed, or none.


class PartsGang(Kind):
    """Workers that are on a permitted node stay there."""

    def change(self, w: Requested, held: Holding, grant: Grant | None) -> Change:
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

    def fits(self, w: Requested, change: Change | None) -> Placed | Reason:
        workers = place_parts(self.state.tables, w.item.parts, (change.workers if change is not None else None) or {})
        if workers is None:
            return Reason.RESOURCES
        devices = tuple(device for worker in workers for device in worker.devices)
        return Placed(Holding(w.option, devices, -1 if devices else workers[0].node, side=side_of(workers)), workers)


# So much of the time on each of several types, on no device in particular (Gavel's ideal mechanism).


class TimeShare(Kind):
    """Shares are given out anew whenever one of them changes; there is nothing to keep in place."""

    def change(self, w: Requested, held: Holding, grant: Grant | None) -> Change:
        return STAYS if grant is not None and grant.fluid else LEAVES

    def fits(self, w: Requested, change: Change | None) -> Placed | Reason:
        return Placed(Holding(w.option))


KINDS: dict[str, type[Kind]] = {
    "gang": PlacedGang,
    "exact": ExactGang,
    "shared": SharedGang,
    "parts": PartsGang,
    "share of time": TimeShare,
}
