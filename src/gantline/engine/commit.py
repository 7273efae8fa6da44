"""Making a plan of assignments true, gang by gang: each whole or not at all, a refused one as if the plan had not named it.

    1. stop whom the plan does not name    2. everybody gives up what the plan takes away    3. turns, as the plan lists them    4. speeds

A gang that cannot get its new place goes back to the old one; only if somebody listed before it has taken that, it stops.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from gantline.core import columns as c
from gantline.core.grant import Grant, Worker
from gantline.core.phases import Phase
from gantline.core.plan import Assignment
from gantline.core.reasons import Reason
from gantline.engine import settings as s
from gantline.engine.changes import LEAVES, Change, Kind, read_change
from gantline.engine.checkpoints import note_saves
from gantline.engine.gang import halt, settle
from gantline.engine.holdings import Holding
from gantline.engine.parts import place_parts, side_of
from gantline.engine.placing import choose_devices, choose_node, extend
from gantline.engine.sharing import Claims, Pools
from gantline.engine.speeds import refresh
from gantline.engine.transitions import Transitions
from gantline.engine.wanted import Wanted

if TYPE_CHECKING:
    from gantline.engine.grants import Grants


class Commit:
    """One commit."""

    def __init__(self, grants: Grants, wanted: dict[int, Wanted]) -> None:
        self.grants, self.wanted = grants, wanted
        self.state, self.t = grants.state, grants.state.tables
        self.books, self.fluid = grants.holdings, grants.fluid
        self.pools = Pools(self.state, self.books)
        self.transitions = Transitions(self.state, self.books)
        self.changes: dict[int, Change] = {}  # of those that hold something and may be touched
        self.before: dict[int, tuple[Holding, Grant | None]] = {}  # of those that gave something up
        self.touched: set[int] = set()
        self.started = self.stopped = self.refused = 0

    def run(self) -> None:
        """All four steps; state.out gets [started, stopped, waiting left, refused]."""
        self._stop_unwanted()
        self._give_up()
        for w in self.wanted.values():
            self._turn(w)
        self.grants.speeds_until = refresh(self.state, sorted(self.touched | self.grants.by_row.keys()))
        waiting = 0
        for row in self.state.rows.tolist():
            if self.t.I[c.PHASE, row] == Phase.PENDING:
                waiting += 1
                if row not in self.wanted:
                    self.t.I[c.REASON, row] = int(Reason.DEFERRED)
        self.state.out[:] = (self.started, self.stopped, waiting, self.refused)

    # --- 1. whom the plan does not name ---------------------------------------------------------------------------------
    def _stop_unwanted(self) -> None:
        for row in self.state.rows.tolist():
            if row not in self.wanted and self._touchable(row) and self._past_minimum(row):
                over = self.t.F[c.UNTIL, row] <= self.state.now
                self.grants.stop(row, Reason.LEASE_ENDED if over else Reason.PREEMPTED)
                self.stopped += 1

    def _touchable(self, row: int) -> bool:
        """Whether a row holds something, and nothing about it is locked or in flight."""
        return int(self.t.I[c.PHASE, row]) in (Phase.STARTING, Phase.RUNNING) and not self.t.I[c.LOCKED, row]

    def _past_minimum(self, row: int) -> bool:
        return bool(self.state.now >= self.t.F[c.LAST_START, row] + self.state.min_run)

    # --- 2. who gives up what -------------------------------------------------------------------------------------------
    def _give_up(self) -> None:
        """All of this comes first, so that the order of the plan does not decide who may use what others leave."""
        holders = {row for row in self.wanted if self._touchable(row)}
        self._keep_shares([row for row, grant in self.grants.by_row.items() if grant.fluid and not self._divided_anew(row, holders)])
        claims = Claims(self.books, {row for row in self.grants.by_row if row not in holders or not self.wanted[row].sound})
        staying = self.pools.settle_in(self.wanted, holders, claims)
        for w in self.wanted.values():
            if w.row not in holders or not w.sound:
                continue
            held = self.books.of(w.row)
            change = read_change(self.state, self.books, w, held, self.grants.by_row.get(w.row), staying)
            stays = (change.keep or held).devices if change.kind is not Kind.LEAVES else ()
            if held.shared and not w.pooled and not claims.claim(w, stays):
                change = LEAVES
            self._give_up_one(w, change)

    def _divided_anew(self, row: int, holders: set[int]) -> bool:
        """Whether this commit may change the shares of a row."""
        return row in holders and self.wanted[row].sound and (self.wanted[row].fluid or self._past_minimum(row))

    def _keep_shares(self, rows: list[int]) -> None:
        """Shares that must not be touched stand, as far as there are still devices behind them."""
        self.fluid.begin()
        for row in rows:
            self.fluid.keep(row)
        for row in reversed(rows):
            if self.fluid.overdrawn():
                self.grants.stop(row, Reason.NODE_LOST)
                self.stopped += 1

    def _give_up_one(self, w: Wanted, change: Change) -> None:
        if change.kind is Kind.LEAVES and not self._past_minimum(w.row):
            self.refused += 1
            return
        if change.kind is not Kind.STAYS and self.state.SI[s.S_ASYNC] == 1:  # it must have stopped before it can start elsewhere
            self.grants.stop(w.row, Reason.MOVED)
            self.stopped += 1
            return
        self.changes[w.row] = change
        if change.kind is not Kind.STAYS:
            self._part_with(w.row, change)
        elif not w.fluid:
            if w.shares:
                self.books.share(w.row)
            self._restyle(w, only_less=True)

    def _part_with(self, row: int, change: Change) -> None:
        note_saves(self.state, row)
        settle(self.t.F, self.t.I, row, self.state.now)  # while it still counts as holding everything
        grant = self.grants.by_row.get(row)
        if grant is not None and grant.fluid:
            self.fluid.close(row)
        self.grants.by_row.pop(row, None)
        self.before[row] = (self.books.give_back(row), grant)
        if change.keep is not None:
            self.books.take(row, change.keep)

    # --- 3. turns -------------------------------------------------------------------------------------------------------
    def _turn(self, w: Wanted) -> None:
        change = self.changes.get(w.row)
        if change is None and self.t.I[c.PHASE, w.row] != Phase.PENDING:
            self.refused += int(not w.sound)  # locked, in flight, within its minimum run, or meaningless: it stays as it was
        elif not w.sound:
            self._refuse(w, Reason.INFEASIBLE)
        elif w.fluid:
            self._turn_of_share(w)
        elif change is not None and change.kind is Kind.STAYS:
            self._adjust(w)
        else:
            self._place(w, change)

    def _place(self, w: Wanted, change: Change | None) -> None:
        """Give the row its new place, or refuse it."""
        found = self._find(w, change)
        if isinstance(found, Reason):
            self._refuse(w, found)
            return
        target, workers = found
        home = self.before[w.row][0] if change is not None else None
        if change is not None and change.keep is not None:
            self.books.give_back(w.row)
            self.changes[w.row] = replace(change, keep=None)
        if not self._fits(target, w.group, home):
            self._refuse(w, Reason.RESOURCES)
            return
        if change is None or home is None:
            self.transitions.start(w.row, target)
            self.started += 1
        elif change.kind is Kind.KEEPS:
            self.transitions.go_on(w.row, home, target)
        else:
            self._start_elsewhere(w.row, target)
        if w.shares:
            self.pools.add(w, target.devices)
        self._record(w, target, workers)

    def _fits(self, target: Holding, group: frozenset[int], home: Holding | None) -> bool:
        """Whether a place is there to be taken, and is not what shares of the time were promised."""
        fresh: dict[int, int] = {}
        for device in target.devices:
            if self.t.D[c.D_HOLDER, device] == c.FREE:
                kind = int(self.t.NI[c.N_TYPE, self.t.D[c.D_NODE, device]])
                fresh[kind] = fresh.get(kind, 0) + 1
        return self.books.fits(target, group, home) and all(count <= self.fluid.room(kind) + 1e-6 for kind, count in fresh.items())

    def _start_elsewhere(self, row: int, target: Holding) -> None:
        self.transitions.start_elsewhere(row, self.before[row][0], target)
        self.started += 1
        self.stopped += 1

    def _find(self, w: Wanted, change: Change | None) -> tuple[Holding, tuple[Worker, ...]] | Reason:
        """Where the row would go."""
        t, item = self.t, w.item
        if item.parts:
            workers = place_parts(t, item.parts, (change.workers if change is not None else None) or {})
            if workers is None:
                return Reason.RESOURCES
            devices = tuple(device for worker in workers for device in worker.devices)
            return Holding(w.option, devices, -1 if devices else workers[0].node, side=side_of(workers)), workers
        need = int(t.options.I[c.O_GPUS, w.option])
        if need == 0:
            node = choose_node(self.state, w.row, w.option, item)
            return (Holding(w.option, node=node), ()) if node >= 0 else Reason.RESOURCES
        if item.devices:
            chosen: list[int] | None = list(item.devices)
        elif w.pooled:
            chosen = self.pools.find(w)
        elif change is not None and change.keep is not None:
            chosen = extend(self.state, w.row, w.option, change.keep.devices, need, item)
        else:
            chosen = choose_devices(self.state, w.row, w.option, item)
        if chosen is None:
            return Reason.FRAGMENTED if self.books.free_of(int(t.options.I[c.O_TYPE, w.option])) >= need else Reason.RESOURCES
        return self.books.gang(w.option, tuple(chosen), w.shares), ()

    def _turn_of_share(self, w: Wanted) -> None:
        """A row that gets a share of the time on each of several types."""
        given, row, stays = self.fluid.give(w), w.row, w.row in self.changes and w.row not in self.before
        if given is None:
            self._refuse(w, Reason.RESOURCES)
            if stays:
                self.grants.stop(row, Reason.RESOURCES)
                self.stopped += 1
            return
        if row in self.before:
            self._start_elsewhere(row, Holding(w.option))
        elif not stays:
            self.transitions.start(row, Holding(w.option))
            self.started += 1
        self.t.I[c.OPTION, row] = w.option
        self.grants.by_row[row] = Grant(w.items, w.members, fluid=given)
        self._renew(w)
        if not stays:
            self.fluid.start(row)

    def _adjust(self, w: Wanted) -> None:
        """Change in place what needs no restart: CPUs, batch, lease, fraction, offset, and whether it shares."""
        self._restyle(w, only_less=False)
        if not w.shares and w.row in self.books.special:
            self.books.own(w.row)
        held, grant = self.books.of(w.row), self.grants.by_row.get(w.row)
        self._record(w, held, grant.workers if grant is not None and w.item.parts else ())

    def _restyle(self, w: Wanted, only_less: bool) -> None:
        """Another option on the same devices: CPUs and memory change without a restart, if every node has them (Synergy)."""
        if self.t.I[c.OPTION, w.row] == w.option or w.item.parts:
            return
        held = self.books.of(w.row)
        fresh = self.books.gang(w.option, held.devices, held.shared) if held.node < 0 else replace(held, option=w.option)
        now, then = self.books.demand(held), self.books.demand(fresh)
        less = all(amount <= now.get(node, (0.0, 0.0))[k] for node, pair in then.items() for k, amount in enumerate(pair))
        if only_less and not less:
            return
        self.books.give_back(w.row)
        fits = self.books.fits(fresh, w.group, held)
        self.books.take(w.row, fresh if fits else held)
        self.refused += int(not fits)

    def _record(self, w: Wanted, held: Holding, workers: tuple[Worker, ...]) -> None:
        """Keep what is special about the grant, for speeds, mates and policies."""
        if held.shared or held.side or workers or not _plain(w.item):
            self.grants.by_row[w.row] = Grant(w.items, w.members, held.devices, held.shared, workers, held.side)
        else:
            self.grants.by_row.pop(w.row, None)
        self._renew(w)

    def _renew(self, w: Wanted) -> None:
        """The lease ends as the plan says, or at the limit of the run, which counts from its start."""
        self.t.F[c.UNTIL, w.row] = min(w.item.until, float(self.t.F[c.LAST_START, w.row]) + w.item.limit)
        self.touched.add(w.row)

    # --- refusals -------------------------------------------------------------------------------------------------------
    def _refuse(self, w: Wanted, reason: Reason) -> None:
        """The row gets nothing of this; whoever gave something up for it gets that back if it is still there."""
        row, t = w.row, self.t
        self.refused += 1
        if t.I[c.PHASE, row] == Phase.PENDING:
            t.I[c.REASON, row] = int(reason)
        if row not in self.before:
            return
        if self.changes[row].keep is not None:
            self.books.give_back(row)
        old, grant = self.before[row]
        group = w.group | (grant.members[0] if grant is not None else frozenset())
        if not (grant is not None and grant.fluid) and self._fits(old, group, old):
            self.books.take(row, old)
            if grant is not None:
                self.grants.by_row[row] = grant
            return
        halt(t.F, t.I, row, self.state.now, int(reason), self.state.SI, self.state.log.LI, self.state.log.LF)
        self.stopped += 1


def _plain(item: Assignment) -> bool:
    """Whether a grant says nothing beyond what the option in use and the lease say."""
    placed = item.devices or item.nodes or item.parts or item.within
    special = item.group >= 0 or item.mode or item.fraction != 1.0 or item.offset or item.batch or item.accumulation != 1
    limited = item.memory_cap != math.inf or item.limit != math.inf or item.purpose != "train" or item.share != 1.0
    return not (placed or special or limited) and math.isnan(item.cpus) and math.isnan(item.memory)
