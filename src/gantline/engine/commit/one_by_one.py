"""Changes that are done one by one, whatever they are: parts, shares of the time, trials, gangs with requirements on nodes.

The compiled pass does the same for most plans. A new kind of grant begins here.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import FREE, Device, Job, Node
from gantline.core.grant import Grant, Worker
from gantline.core.host_resources import amounts_beside
from gantline.core.phases import Phase
from gantline.core.plan import Assignment, Assignments
from gantline.core.reasons import Reason
from gantline.engine.commit.apply import note_granted
from gantline.engine.commit.kinds import KINDS, LEAVES, Change, CommitContext, Manner, Placed
from gantline.engine.commit.places import Claims, DeviceMemory, Pools
from gantline.engine.commit.request import OTHER, SAME, PlanRequest
from gantline.engine.commit.requested import Requested, divides_time, read_entries, shares_openly
from gantline.engine.commit.transitions import Transitions
from gantline.engine.commit.turns import End
from gantline.engine.gang import halt, settle
from gantline.engine.grants import Grants
from gantline.engine.holdings import NOTHING, Holding
from gantline.engine.runs import begins_again, note_saves


def change_one_by_one(grants: Grants, rows: Ints, table: Assignments, asked: PlanRequest, places: Ints) -> None:
    """The assignments at these places give up what the plan takes away, take their turns, and are granted what they got."""
    fluid, t = divides_time(rows, table), grants.state.tables
    turns = OneByOne(grants, rows, table, places.tolist(), _open_rows(grants, rows, table) if len(places) else frozenset())
    turns.give_up()
    for w in turns.wanted.values():
        turns.turn(w)
    mine = rows[places]
    grants.by_row.drop(mine[t.I[Job.PHASE][mine] == Phase.PENDING].tolist())  # they have been stopped
    end = [End.GRANTED if row in turns.granted else End.IN_PART if row in turns.in_part else End.UNTOUCHED for row in mine.tolist()]
    note_granted(grants, table, asked, places, np.array(end, dtype=np.int64))
    grants.granted.shares = _shares(grants, rows, table, asked, fluid) if turns.granted.issuperset(rows[fluid].tolist()) else None
    grants.speeds.pay(*turns.acts())
    grants.touched |= turns.touched


def compare_shares_of_time(grants: Grants, rows: Ints, table: Assignments, asked: PlanRequest) -> None:
    """Shares of the time are given out anew unless all of them are as they were, so that none has to be looked at."""
    fluid = divides_time(rows, table)
    if not fluid.any():
        return
    grants.speeds.fluid_in_use = True
    kept, now = grants.granted.shares, _shares(grants, rows, table, asked, fluid)
    same = kept is not None and all(np.array_equal(a, b) for a, b in zip(kept, now))
    same = same and set(rows[fluid].tolist()) == grants.rows_with_shares() and not grants.overdrawn()
    asked.by[: len(rows)][fluid] = SAME if same else OTHER


def _shares(grants: Grants, rows: Ints, table: Assignments, asked: PlanRequest, fluid: Bools) -> tuple[Ints | Floats, ...]:
    """The shares of the time of this plan, as they can be compared with those of another."""
    at = np.flatnonzero(fluid)
    mine, teams = rows[at], grants.requests.teams(len(rows))
    return mine, asked.option[at], table.column("share")[at], teams[at], grants.state.tables.I[Job.EPOCH][mine]


def _open_rows(grants: Grants, rows: Ints, table: Assignments) -> frozenset[int]:
    """Rows that share without a group: by this plan, or by an earlier one if this plan does not name them."""
    before = grants.by_row.keys() - set(rows.tolist())
    return frozenset(rows[shares_openly(rows, table)].tolist()).union(row for row in before if grants.by_row[row].shares_openly)


class OneByOne:
    """The assignments at some places of a plan; `granted` are the rows that got all that they were to have."""

    def __init__(self, grants: Grants, rows: Ints, table: Assignments, at: list[int], open_rows: frozenset[int]) -> None:
        self.grants = grants
        self.state, self.t, self.out = grants.state, grants.state.tables, grants.state.out
        self.holdings, self.fluid = grants.holdings, grants.fluid
        self.wanted = read_entries(self.t, grants.options, rows, table, at, open_rows) if at else {}
        self.teams = grants.teams() if at else {}
        self.had_turn: set[int] = set()
        self.whole = _starting_whole(self.wanted)
        self.granted: set[int] = set()
        self.in_part: set[int] = set()  # rows that got all but other CPUs or the like
        self.touched: set[int] = set()
        self.changes: dict[int, Change] = {}  # of those that hold something and may be touched
        self.before: dict[int, tuple[Holding, Grant | None]] = {}  # of those that gave something up
        self.transitions = Transitions(self.state, self.holdings)
        if self.wanted:
            self.memory = DeviceMemory(self.t, self.holdings.tenants, {w.row: w.item for w in self.wanted.values() if w.sound})
            self.pools = Pools(self.state, self.holdings, self.memory)
            context = CommitContext(self.state, self.holdings, self.fluid, self.pools, set())
            self.kinds = {name: kind(context) for name, kind in KINDS.items()}
            self.staying = context.staying
            if any(w.shares for w in self.wanted.values()):
                grants.note_sharing()

    def acts(self) -> tuple[Ints, Ints]:
        """Rows that pay for something, and what for."""
        acts = self.transitions.acts
        return np.array(list(acts), dtype=np.int64), np.array([int(act) for act in acts.values()], dtype=np.int64)

    # --- what rows give up ----------------------------------------------------------------------------------------------
    def give_up(self) -> None:
        """All of this comes first, so that the order of the plan does not decide which row may use what others leave."""
        holders = {row for row in self.wanted if self._touchable(row)}
        if self.grants.shares_in_force:
            self._keep_shares(holders)
        if not self.wanted:
            return
        mine = {row for row in holders if self.wanted[row].sound}
        claims = Claims(self.holdings, mine)
        self.staying |= self.pools.settle_in(self.wanted, holders, claims)
        for w in self.wanted.values():
            if w.row not in mine:
                continue
            held, grant = self.holdings.of(w.row), self.grants.by_row.get(w.row)
            change = self.kinds[w.kind].change(w, held, grant)
            stays = (change.keep or held).devices if change.manner is not Manner.LEAVES else ()
            if held.shared and not w.pooled and not claims.claim(w, stays):
                change = LEAVES
            if begins_again(grant, w.item):
                change = LEAVES
            self._give_up_one(w, change)

    def _touchable(self, row: int) -> bool:
        """Whether a row holds something, and nothing about it is locked or in flight."""
        return int(self.t.I[Job.PHASE, row]) in (Phase.STARTING, Phase.RUNNING) and not self.t.I[Job.LOCKED, row]

    def _past_minimum(self, row: int) -> bool:
        return bool(self.state.now >= self.t.F[Job.LAST_START, row] + self.state.min_run)

    def _keep_shares(self, holders: set[int]) -> None:
        """Shares that are not divided anew stay valid, as far as there are still devices behind them."""
        shares = [row for row, grant in self.grants.by_row.items() if grant.fluid]
        anew = {row for row in shares if row in holders and self.wanted[row].sound and (self.wanted[row].fluid or self._past_minimum(row))}
        self.fluid.begin(anew)
        for row in reversed(shares):
            if row not in anew and self.fluid.overdrawn():
                self.grants.stop(row, Reason.NODE_LOST)
                self.out[1] += 1

    def _give_up_one(self, w: Requested, change: Change) -> None:
        if change.manner is Manner.LEAVES and not self._past_minimum(w.row):
            return
        self.changes[w.row] = change
        if change.manner is not Manner.STAYS:
            self._part_with(w, change)
        elif not w.fluid:
            if w.shares:
                self.holdings.share(w.row)
            self._restyle(w, only_less=True)

    def _part_with(self, w: Requested, change: Change) -> None:
        row = w.row
        note_saves(self.state, row)
        settle(self.t.F, self.t.I, row, self.state.now)  # while it still counts as holding everything
        grant = self.grants.by_row.get(row)
        if grant is not None:
            self.grants.left |= self.grants.company(row, grant)
        self.before[row] = (self.kinds[w.kind].give_back(row, grant), grant)  # shares are settled by what was granted
        self.grants.by_row.pop(row, None)
        if change.keep is not None:
            self.holdings.take(row, change.keep)

    # --- turns ----------------------------------------------------------------------------------------------------------
    def turn(self, w: Requested) -> None:
        """One row's turn."""
        change = self.changes.get(w.row)
        if w.row in self.had_turn or (change is None and self.t.I[Job.PHASE, w.row] != Phase.PENDING):
            return  # with its group; or locked, in flight, within its minimum run, or meaningless: it stays as it was
        if w.row in self.whole:
            self._turn_together(self.whole[w.row])
        elif not w.sound:
            self._refuse(w, Reason.INFEASIBLE)
        elif w.fluid:
            self._turn_of_share(w)
        elif change is not None and change.manner is Manner.STAYS:
            self._adjust(w)
        else:
            self._place(w, change)

    def _place(self, w: Requested, change: Change | None) -> None:
        """Give the row its new place, or refuse it."""
        found = self._find(w, change)
        if isinstance(found, Reason):
            self._refuse(w, found)
        else:
            self._begin(w, found)

    def _find(self, w: Requested, change: Change | None) -> Placed | Reason:
        """Its new place, which is free; or why there is none."""
        found = self.kinds[w.kind].fits(w, change)
        if isinstance(found, Reason):
            return found
        home = self.before[w.row][0] if change is not None else None
        if change is not None and change.keep is not None:
            self.holdings.give_back(w.row)
            self.changes[w.row] = replace(change, keep=None)
        if not self._free(found.holding, w.company, home):
            return Reason.RESOURCES
        if short := self.memory.lacking(w.row, found.holding.devices):
            self.grants.short_of_memory[w.row] = short
            return Reason.DEVICE_MEMORY
        return found

    def _turn_together(self, members: list[Requested]) -> None:
        """Every member that is not in place yet gets one, or none of them does."""
        self.had_turn.update(w.row for w in members)
        staying = [w for w in members if w.row in self.changes and self.changes[w.row].manner is Manner.STAYS]
        joining = [w for w in members if w not in staying]
        found: list[Placed] = []
        why, pool = Reason.TOGETHER, self.pools.of(members[0])
        for w in joining:
            change = self.changes.get(w.row)
            bound = change is None and self.t.I[Job.PHASE, w.row] != Phase.PENDING
            place = Reason.TOGETHER if bound else self._find(w, change) if w.sound else Reason.INFEASIBLE
            if isinstance(place, Reason):
                why = place
                break
            self.holdings.take(w.row, place.holding)  # so that the next one finds another
            self.pools.add(w, place.holding.devices)
            found.append(place)
        for w, _ in zip(joining, found):
            self.holdings.give_back(w.row)
        for w in staying:
            self._adjust(w)
        if len(found) == len(joining):
            for w, place in zip(joining, found):
                self._begin(w, place)
            return
        self.pools.restore(members[0], pool)
        for number, w in enumerate(joining):
            if w.row in self.changes or self.t.I[Job.PHASE, w.row] == Phase.PENDING:
                self._refuse(w, why if number == len(found) else Reason.TOGETHER)

    def _begin(self, w: Requested, found: Placed) -> None:
        """The row takes a place that is free."""
        change = self.changes.get(w.row)
        home = self.before[w.row][0] if change is not None else None
        if w.item.rotation >= 0 and w.row in self.state.tables.waits_for_turn:
            self.transitions.turns.add(w.row)
            self.state.tables.waits_for_turn.discard(w.row)
        if change is None or home is None:
            self.transitions.start(w.row, found.holding)
            self.out[0] += 1
        elif change.manner is Manner.KEEPS and not found.moved:
            self.transitions.go_on(w.row, home, found.holding)
        else:
            self._start_elsewhere(w.row, found.holding)
        if w.shares:
            self.pools.add(w, found.holding.devices)
        self._record(w, found.holding, found.workers)

    def _free(self, target: Holding, company: frozenset[int], home: Holding | None) -> bool:
        """Whether a place is free, and is not promised to shares of the time."""
        if not self.fluid.used.any():
            return self.holdings.fits(target, company, home)
        fresh: dict[int, int] = {}
        for device in target.devices:
            if self.t.D[Device.HOLDER, device] == FREE:
                kind = int(self.t.NI[Node.TYPE, self.t.D[Device.NODE, device]])
                fresh[kind] = fresh.get(kind, 0) + 1
        return self.holdings.fits(target, company, home) and all(count <= self.fluid.room(kind) + 1e-6 for kind, count in fresh.items())

    def _start_elsewhere(self, row: int, target: Holding) -> None:
        self.transitions.start_elsewhere(row, self.before[row][0], target)
        self.out[0] += 1
        self.out[1] += 1

    def _turn_of_share(self, w: Requested) -> None:
        """A row that gets a share of the time on each of several types."""
        given, row, stays = self.fluid.give(w), w.row, w.row in self.changes and w.row not in self.before
        if given is None:
            self._refuse(w, Reason.RESOURCES)
            if stays:
                self.grants.stop(row, Reason.RESOURCES)
                self.out[1] += 1
            return
        if row in self.before:
            self._start_elsewhere(row, Holding(w.option))
        elif not stays:
            self.transitions.start(row, Holding(w.option))
            self.out[0] += 1
        self.t.I[Job.OPTION, row] = w.option
        self.grants.by_row[row] = Grant(w.items, w.members, fluid=given)
        self._done(w)
        if not stays:
            self.fluid.start(row)

    def _adjust(self, w: Requested) -> None:
        """Change in place what needs no restart: CPUs, batch, lease, fraction, offset, and whether it shares."""
        whole, shared = self._restyle(w, only_less=False), self.holdings.shares(w.row)
        if short := self.memory.lacking(w.row, self.holdings.of(w.row).devices):
            w, whole = self._keep_cap(w, short), False
        if not w.shares and shared:
            self.holdings.own(w.row)
        held, grant = self.holdings.of(w.row), self.grants.by_row.get(w.row)
        if not (whole or shared):
            return  # as if the plan had not named it
        self._record(w, held, grant.workers if grant is not None and w.item.parts else ())
        if not whole:
            self.granted.discard(w.row)
            self.in_part.add(w.row)

    def _keep_cap(self, w: Requested, short: str) -> Requested:
        """Its cap would exceed what is left on its devices: it goes on with the memory that it has."""
        grant = self.grants.by_row.get(w.row)
        self.grants.short_of_memory[w.row] = short
        self.t.I[Job.REASON, w.row] = int(Reason.DEVICE_MEMORY)
        return replace(w, items=(replace(w.item, memory_cap=math.inf if grant is None else grant.assignment.memory_cap),))

    def _restyle(self, w: Requested, only_less: bool) -> bool:
        """Another option on the same devices: CPUs and memory change without a restart, if every node has them (Synergy)."""
        if self.t.I[Job.OPTION, w.row] == w.option or w.item.parts:
            return True
        held = self.holdings.of(w.row)
        fresh = self.holdings.gang(w.option, held.devices, held.shared) if held.node < 0 else replace(held, option=w.option)
        now, then = self.holdings.demand(held), self.holdings.demand(fresh)
        less = all(amount <= now.get(node, NOTHING)[k] for node, pair in then.items() for k, amount in enumerate(pair))
        if only_less and not less:
            return True
        self.holdings.give_back(w.row)
        fits = self.holdings.fits(fresh, w.company, held)
        self.holdings.take(w.row, fresh if fits else held)
        if not fits:
            self.t.I[Job.REASON, w.row] = int(Reason.RESOURCES)
        return fits

    def _record(self, w: Requested, held: Holding, workers: tuple[Worker, ...]) -> None:
        """Keep what is special about the grant, for speeds, mates and policies."""
        old = self.grants.by_row.pop(w.row, None)
        if old is not None:
            self.grants.left |= self.grants.company(w.row, old)
        if held.shared or held.side or workers or not is_plain(w.item):
            self.grants.by_row[w.row] = Grant(w.items, w.members, held.devices, held.shared, workers, held.side)
        self._done(w)

    def _done(self, w: Requested) -> None:
        end = float(self.t.F[Job.LAST_START, w.row]) + w.item.limit
        self.t.F[Job.LIMIT_END, w.row], self.t.F[Job.UNTIL, w.row] = end, min(w.item.until, end)
        self.touched.add(w.row)
        self.granted.add(w.row)

    # --- refusals -------------------------------------------------------------------------------------------------------
    def _refuse(self, w: Requested, reason: Reason) -> None:
        """The row gets nothing of this; what others gave up for it goes back to them if it is still free."""
        row, t = w.row, self.t
        t.I[Job.REASON, row] = int(reason)
        if row not in self.before:
            return
        if self.changes[row].keep is not None:
            self.holdings.give_back(row)
        old, grant = self.before[row]
        company = w.company | self._company_before(grant)
        if not (grant is not None and grant.fluid) and self._free(old, company, old):
            self.holdings.take(row, old)
            if grant is not None:
                self.grants.by_row[row] = grant
            self.touched.add(row)
            return
        halt(t.F, t.I, row, self.state.now, int(reason), self.state.log.columns)
        self.out[1] += 1

    def _company_before(self, grant: Grant | None) -> frozenset[int]:
        """The rows that could be on its devices by their last grants."""
        return frozenset(self.teams.get(grant.members[0], ())) if grant is not None and grant.shared else frozenset()


def _starting_whole(wanted: dict[int, Requested]) -> dict[int, list[Requested]]:
    """By row: the members of its group, where these start together or not at all."""
    groups: dict[int, list[Requested]] = {}
    for w in wanted.values():
        if w.item.together and w.item.group >= 0 and not w.fluid:
            groups.setdefault(w.item.group, []).append(w)
    return {w.row: members for members in groups.values() for w in members}


def is_plain(item: Assignment) -> bool:
    """Whether a grant says nothing beyond what the option in use and the lease say."""
    placed = item.devices or item.nodes or item.parts or item.within
    special = item.group >= 0 or item.mode or item.fraction != 1.0 or item.offset or item.batch or item.accumulation != 1
    shared = item.share != 1.0 or item.size or item.turns >= 0
    limited = item.memory_cap != math.inf or item.limit != math.inf or item.purpose != "train"
    return not (placed or special or shared or limited) and all(map(math.isnan, amounts_beside(item)))
