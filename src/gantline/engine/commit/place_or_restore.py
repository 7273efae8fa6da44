"""Carries out what a plan changes: all rows give up what it takes away, then each, in the order of the plan, gets its place; one that is
refused gets back what it gave up, if that is still free.
"""

from __future__ import annotations

import math

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import ASKED_TOGETHER, FREE, Device, Job, Node, Option
from gantline.core.grant import Grant
from gantline.core.phases import PENDING
from gantline.core.plan import Assignments
from gantline.core.reasons import Reason
from gantline.engine.commit.diff import GRANTED, IN_PART, NOT_GRANTED, note_granted
from gantline.engine.commit.places import (
    Claims,
    DeviceMemory,
    Pools,
    choose_place,
    keeps_within,
    kept_workers,
    likes_together,
    place_parts,
    side_of,
)
from gantline.engine.commit.request import GrantsOfPlan, PlanRequest
from gantline.engine.commit.turns import Course, GangTurn, GrantForm, read_turns
from gantline.engine.gang import begin, halt, settle
from gantline.engine.grants import Grants
from gantline.engine.holdings import Holding
from gantline.engine.runs import note_saves
from gantline.engine.shared_devices import log_stakes


class PlanChanges:
    """The assignments that their rows do not keep, and what becomes of each."""

    def __init__(self, grants: Grants, rows: Ints, table: Assignments, asked: PlanRequest, places: Ints) -> None:
        self.grants, self.state, self.t, self.I = grants, grants.state, grants.state.tables, grants.state.tables.I
        self.holdings, self.fluid = grants.holdings, grants.fluid
        self.rows, self.table, self.asked, self.places = rows, table, asked, places
        special = grants.by_row.rows()
        self.out = self.state.out
        self.sharing = special[self.holdings.sharing(special)]  # before anything changes, with their groups
        self.teams = grants.granted.columns.team[self.sharing].copy()
        open_before = self.sharing[(self.teams == 0) & ~grants.requests.names(self.sharing)]
        self.turns = read_turns(self.t, grants.options, rows, table, asked, places, open_before.tolist())
        self.had_grant = {turn.row for turn in self.turns if turn.row in grants.by_row}
        caps = table.column("memory_cap")
        self.memory = DeviceMemory(self.holdings, {turn.row: float(caps[turn.place]) for turn in self.turns if turn.option >= 0})
        self.rotations = table.rotations()
        self.pools = Pools(self.holdings, self.memory)
        self.wholes: dict[int, list[GangTurn]] = {}  # groups that start whole or not at all
        for turn in self.turns:
            if turn.whole >= 0:
                self.wholes.setdefault(turn.whole, []).append(turn)
        self.granted: dict[int, Grant | None] = {}  # rows that got what they were to have; None: just what the plan says
        self.kept_caps: dict[int, float] = {}  # of device memory
        self.in_part: set[int] = set()  # rows that got all but other CPUs or the like
        self.acts: dict[int, int] = {}  # what rows pay for

    def carry_out(self) -> set[int]:
        """Give up, take turns, and write down what each row was granted. Returns the rows that got what they were to have."""
        if any(turn.shares for turn in self.turns):
            self.grants.note_sharing()
        self._give_up()
        for turn in self.turns:
            if not turn.done:
                self._take_turn(turn)
        self._write_down()
        return set(self.granted)

    # --- what rows give up ----------------------------------------------------------------------------------------------
    def _give_up(self) -> None:
        """All of this comes first, so that the order of the plan does not decide which row may use what others leave."""
        holders = [turn for turn in self.turns if turn.course is not Course.WAITS and turn.option >= 0]
        if self.grants.used_fluid:
            self._keep_shares(holders)
        for turn in holders:
            turn.had = self.holdings.of(turn.row)
        sharing = np.array([turn.row for turn in holders if turn.had.shared], dtype=np.int64)
        self.grants.touched.update(self.holdings.beside_any(sharing).tolist() if len(sharing) else ())
        claims = Claims(self.holdings, holders)
        staying = self.pools.settle_in(holders, claims)
        for turn in holders:
            kept = self._keeps(turn, turn.had, turn.row in staying)
            turn.course = Course.LEAVES if kept is None else Course.STAYS if kept is turn.had else Course.KEEPS
            if turn.had.shared and turn.form is not GrantForm.JOINS and not claims.claim(turn, kept.devices if kept else ()):
                turn.course = Course.LEAVES
            if (turn.row in self.t.trials) != turn.trial:  # its processes have what they did in memory
                turn.course = Course.LEAVES
            if turn.course is Course.LEAVES and not self._past_minimum(turn.row):
                turn.course = Course.BOUND
            elif turn.course is not Course.STAYS:
                self._part_with(turn, kept if turn.course is Course.KEEPS else None)
            elif turn.form is not GrantForm.TIME:
                if turn.shares and not turn.had.shared:
                    self.holdings.share(turn.row)
                self._restyle(turn, only_less=True)

    def _keep_shares(self, holders: list[GangTurn]) -> None:
        """Shares that are not divided anew stay valid, as far as there are still devices behind them."""
        shares = [row for row, grant in self.grants.by_row.items() if grant.fluid]
        if not shares:
            return
        leave = {turn.row for turn in holders if turn.form is GrantForm.TIME or self._past_minimum(turn.row)}
        self.fluid.begin(leave.intersection(shares))
        for row in reversed(shares):
            if row not in leave and self.fluid.overdrawn():
                self.grants.stop(row, Reason.NODE_LOST)
                self.out[1] += 1

    def _past_minimum(self, row: int) -> bool:
        return bool(self.state.now >= self.t.F[Job.LAST_START, row] + self.state.min_run)

    def _has_time(self, row: int) -> bool:
        """Whether its last grant is a share of the time."""
        return self.grants.used_fluid and row in self.grants.by_row and bool(self.grants.by_row[row].fluid)

    def _keeps(self, turn: GangTurn, had: Holding, stays: bool) -> Holding | None:
        """What a gang keeps of what it has: all of it, a part, or nothing."""
        if turn.form is GrantForm.TIME or self._has_time(turn.row):
            return had if turn.form is GrantForm.TIME and self._has_time(turn.row) else None
        if turn.form is GrantForm.PARTS:
            return self._keeps_workers(turn, had)
        if turn.row in self.holdings.with_parts:
            return None
        if turn.form is GrantForm.JOINS:
            return had if stays else None
        if turn.form is GrantForm.NAMED:
            common = tuple(device for device in had.devices if device in turn.named)
            return had if had.devices == turn.named else had._replace(devices=common) if common else None
        OI, nodes = self.t.options.I, self.holdings.nodes(had.devices) or [had.node]
        need, spread = int(OI[Option.GPUS, turn.option]), int(OI[Option.NODES, turn.option])
        same_kind = OI[Option.TYPE, had.option] == OI[Option.TYPE, turn.option] and (need == 0) == (had.node >= 0)
        within = turn.item is None or keeps_within(self.state, nodes, turn.item)
        if not same_kind or not within or (spread and spread != len(nodes)):
            return None
        if need == len(had.devices):
            return had
        if spread and self.I[Job.CONSOLIDATE, turn.row] != ASKED_TOGETHER:
            return None
        return had._replace(devices=had.devices[:need])

    def _keeps_workers(self, turn: GangTurn, had: Holding) -> Holding | None:
        """Workers that are on a permitted node stay there."""
        grant, parts = self.grants.by_row.get(turn.row), turn.items[0].parts
        workers = () if grant is None else grant.workers
        kept = kept_workers(workers, parts)
        if len(kept) == len(workers) == sum(part.count for part in parts):
            return had
        devices = tuple(device for worker in kept.values() for device in worker.devices)
        return had._replace(devices=devices, side=side_of(list(kept.values()))) if kept else None

    def _part_with(self, turn: GangTurn, kept: Holding | None) -> None:
        row = turn.row
        note_saves(self.state, row)
        settle(self.t.F, self.I, row, self.state.now)  # while it still counts as holding everything
        if self._has_time(row):
            self.grants.touched.update(*self.grants.by_row[row].members)
            self.fluid.close(row)
        turn.kept = kept
        if kept != turn.had:
            self.holdings.give_back(row)
            if kept is not None:
                self.holdings.take(row, kept)

    # --- turns ----------------------------------------------------------------------------------------------------------
    def _take_turn(self, turn: GangTurn) -> None:
        """A row that is bound stays as it was."""
        if turn.whole >= 0:
            self._start_whole(self.wholes[turn.whole])
        elif turn.course is Course.BOUND:
            return
        elif turn.option < 0:
            self._refuse(turn, Reason.INFEASIBLE)
        elif turn.form is GrantForm.TIME:
            self._give_time(turn)
        elif turn.course is Course.STAYS:
            self._adjust(turn)
        elif (reason := self._take_place(turn)) is not None:
            self._refuse(turn, reason)
        else:
            self._begin(turn)

    def _start_whole(self, members: list[GangTurn]) -> None:
        """Every member that is not in place yet gets one, or none of them does."""
        joining = [turn for turn in members if turn.course is not Course.STAYS]
        placed: list[GangTurn] = []
        why, pool = None, self.pools.of(members[0])
        for turn in joining:
            bound = turn.course is Course.BOUND
            why = Reason.TOGETHER if bound else Reason.INFEASIBLE if turn.option < 0 else self._take_place(turn)
            if why is not None:
                break
            placed.append(turn)
        if why is not None:
            self.pools.restore(members[0], pool)
            for turn in placed:
                self.holdings.give_back(turn.row)
        for turn in members:
            turn.done = True
            if turn.course is Course.STAYS:
                self._adjust(turn)
        for number, turn in enumerate(joining):
            if why is None:
                self._begin(turn)
            elif turn.course is not Course.BOUND:
                self._refuse(turn, why if number == len(placed) else Reason.TOGETHER)

    def _take_place(self, turn: GangTurn) -> Reason | None:
        """The row takes a place; or why there is none."""
        found = self._find(turn)
        if isinstance(found, Reason):
            return found
        if turn.kept is not None:
            self.holdings.give_back(turn.row)
            turn.kept = None
        if not self._is_free(found, turn.partners, turn.had):
            return Reason.RESOURCES
        if short := self.memory.lacking(turn.row, found.devices):
            self.grants.short_of_memory[turn.row] = short
            return Reason.DEVICE_MEMORY
        self.holdings.take(turn.row, found)
        if turn.shares:
            self.pools.add(turn, found.devices)
        return None

    def _find(self, turn: GangTurn) -> Holding | Reason:
        """Where a gang would go, or why there is no such place."""
        option = turn.option
        if turn.form is GrantForm.NAMED:
            return Holding(option, turn.named, shared=turn.shares)
        if turn.form is GrantForm.PARTS:
            parts, grant = turn.items[0].parts, self.grants.by_row.get(turn.row)
            kept = {} if turn.kept is None or grant is None else kept_workers(grant.workers, parts)
            workers = place_parts(self.t, parts, kept)
            if workers is None:
                return Reason.RESOURCES
            turn.workers, devices = workers, tuple(device for worker in workers for device in worker.devices)
            return Holding(option, devices, -1 if devices else workers[0].node, side=side_of(workers))
        if turn.form is GrantForm.JOINS:
            shared, span = self.pools.find(turn), 0 if turn.item is None else turn.item.span
            if shared is not None and span and len(self.holdings.nodes(shared)) != span:
                return Reason.FRAGMENTED
            return self._why_not(turn) if shared is None else Holding(option, shared, shared=True)
        if turn.kept is not None:
            return self._find_beside(turn, turn.kept)
        return choose_place(self.holdings, turn.row, option, turn.item) or self._why_not(turn)

    def _why_not(self, turn: GangTurn) -> Reason:
        """Why devices were not found: there are too few, or not where they should be."""
        OI = self.t.options.I
        need, free = int(OI[Option.GPUS, turn.option]), self.holdings.free_of(int(OI[Option.TYPE, turn.option]))
        return Reason.FRAGMENTED if free >= need > 0 else Reason.RESOURCES

    def _find_beside(self, turn: GangTurn, kept: Holding) -> Holding | Reason:
        """A gang goes on with more or fewer devices, or, where that is not possible or likes fewer nodes, as a whole elsewhere."""
        state, row, need = self.state, turn.row, int(self.t.options.I[Option.GPUS, turn.option])
        found = choose_place(self.holdings, row, turn.option, turn.item, kept.devices)
        why_not = self._why_not(turn) if found is None else Reason.RESOURCES
        self.holdings.give_back(row)  # its own devices count as free
        turn.kept = None
        fits = found is not None and self.holdings.fits(found, turn.partners, kept)
        may_move = need > len(kept.devices) and self._past_minimum(row)
        if may_move and (not fits or likes_together(state, row, turn.item)):
            nodes = len(self.holdings.nodes(found.devices)) if fits and found is not None else len(self.t.cluster.nodes) + 1
            elsewhere = choose_place(self.holdings, row, turn.option, turn.item) if nodes > 1 else None
            if elsewhere is not None and len(self.holdings.nodes(elsewhere.devices)) < nodes:
                turn.course = Course.LEAVES
                return elsewhere
        return found if fits and found is not None else why_not

    def _is_free(self, target: Holding, partners: frozenset[int], home: Holding) -> bool:
        """Whether a place is free, and is not promised to shares of the time."""
        if not self.holdings.fits(target, partners, home):
            return False
        if not self.grants.used_fluid or not self.fluid.used.any():
            return True
        fresh = [device for device in target.devices if self.t.D[Device.HOLDER, device] == FREE]
        kinds = self.t.NI[Node.TYPE][self.t.D[Device.NODE][fresh]]
        return all(np.count_nonzero(kinds == kind) <= self.fluid.room(kind) + 1e-6 for kind in np.unique(kinds).tolist())

    def _begin(self, turn: GangTurn) -> None:
        """The row, which has taken its place, starts, starts again elsewhere, or goes on after a pause."""
        state, row, had, log = self.state, turn.row, turn.had, self.state.log
        returns = row in self.t.waits_for_turn and bool(self.rotations[turn.place] >= 0)
        if returns:
            self.t.waits_for_turn.discard(row)
        before, stays = (had.option, len(had.devices)), turn.course is Course.KEEPS
        log.reserve(8, self.t.D.shape[1] + 8)
        self.acts[row] = begin(state.matrices, row, *before, stays, returns, state.now, state.rules, state.costs.of_switch, log.columns)
        if turn.shares:
            log_stakes(self.I, self.holdings.shared_devices(), row, log.columns)
        self.out[0] += not stays
        self.out[1] += turn.course is Course.LEAVES
        self._record(turn)

    def _give_time(self, turn: GangTurn) -> None:
        """A row that gets a share of the time on each of several types."""
        row, stays = turn.row, turn.course is Course.STAYS
        given = self.fluid.give(row, turn.items, turn.members, turn.options)
        if given is None:
            self._refuse(turn, Reason.RESOURCES)
            if stays:
                self.grants.stop(row, Reason.RESOURCES)
                self.out[1] += 1
            return
        if not stays:
            self.holdings.take(row, Holding(turn.option))
            self._begin(turn)
            self.fluid.start(row)
        self.I[Job.OPTION, row] = turn.option
        self._record(turn, Grant(turn.items, turn.members, fluid=given))

    def _adjust(self, turn: GangTurn) -> None:
        """Change in place what needs no restart: CPUs, batch, lease, fraction, offset, and whether it shares."""
        row, grant = turn.row, self.grants.by_row.get(turn.row) if turn.form is GrantForm.PARTS or self.memory.counts else None
        whole, shared = self._restyle(turn, only_less=False), self.holdings.shares(row)
        if self.memory.counts and (short := self.memory.lacking(row, self.holdings.of(row).devices)):
            self.grants.short_of_memory[row], self.I[Job.REASON, row] = short, int(Reason.DEVICE_MEMORY)
            self.kept_caps[row] = math.inf if grant is None else grant.assignment.memory_cap  # it goes on with the memory that it has
            whole = False
        if shared and not turn.shares:
            self.holdings.own(row)
        if not (whole or shared):
            return  # as if the plan had not named it
        if grant is not None and turn.form is GrantForm.PARTS:
            turn.workers = grant.workers
        if not whole:
            self.in_part.add(row)
        self._record(turn)

    def _restyle(self, turn: GangTurn, only_less: bool) -> bool:
        """Another option on the same devices: CPUs and memory change without a restart, if every node has them (Synergy)."""
        if turn.form is GrantForm.PARTS or self.I[Job.OPTION, turn.row] == turn.option:
            return True
        fits = self.holdings.restyle(turn.row, turn.option, turn.partners, only_less)
        if not fits:
            self.I[Job.REASON, turn.row] = int(Reason.RESOURCES)
        return fits

    def _refuse(self, turn: GangTurn, reason: Reason) -> None:
        """The row gets nothing of this; what it gave up for it goes back to it if that is still free."""
        row, had = turn.row, turn.had
        self.I[Job.REASON, row] = int(reason)
        if had.option < 0 or turn.course is Course.STAYS:
            return
        if turn.kept is not None:
            self.holdings.give_back(row)
        if not self._has_time(row) and self._is_free(had, turn.partners | self._partners_before(turn), had):
            self.holdings.take(row, had)
            self.grants.touched.add(row)
            return
        halt(self.t.F, self.I, row, self.state.now, int(reason), self.state.log.columns)
        self.out[1] += 1

    def _partners_before(self, turn: GangTurn) -> frozenset[int]:
        """The rows that could be on its devices by their last grants."""
        if not turn.had.shared:
            return frozenset()
        return frozenset(self.sharing[self.teams == self.teams[self.sharing == turn.row]].tolist())

    # --- what rows were granted -----------------------------------------------------------------------------------------
    def _record(self, turn: GangTurn, grant: Grant | None = None) -> None:
        """The row has what it was to have; `grant`: where that is not just what the plan said, on what it holds."""
        row = turn.row
        self.granted[row] = grant
        usual = turn.plain and turn.course is not Course.STAYS and row not in self.had_grant
        if not usual or self.grants.speeds.about_gangs:  # else its speed is that of its option, and known
            self.grants.touched.add(row)

    def _write_down(self) -> None:
        """Keep what is special about the new grants, for the next plan, speeds, mates and policies; and ask what changes cost."""
        grants, mine, by_row = self.grants, self.rows[self.places], self.grants.by_row
        if grants.speeds.model is not None:
            self._touch_groups()
        by_row.drop([*mine[self.I[Job.PHASE][mine] == PENDING].tolist(), *self.granted])
        turns = [turn for turn in self.turns if turn.row in self.granted]
        special = [
            turn for turn in turns if not turn.plain or turn.shares or self.holdings.shares(turn.row) or turn.form is GrantForm.PARTS
        ]
        workers = {turn.row: turn.workers for turn in special if turn.workers}
        places = {turn.row: turn.place for turn in special}
        given = GrantsOfPlan(self.holdings, self.rows, self.table, places, workers, self.kept_caps)
        by_row.enter(list(places), given)
        for row, grant in self.granted.items():
            if grant is not None:
                by_row[row] = grant
        end = [IN_PART if row in self.in_part else GRANTED if row in self.granted else NOT_GRANTED for row in mine.tolist()]
        note_granted(grants.granted, self.table, self.asked, self.places, np.array(end, dtype=np.int64))
        acts = self.acts
        grants.speeds.pay(np.array(list(acts), dtype=np.int64), np.array(list(acts.values()), dtype=np.int64))

    def _touch_groups(self) -> None:
        """A model may mind that one of a group that shares links has changed."""
        team, special = self.grants.granted.columns.team, self.grants.by_row.rows()
        changed = [turn.row for turn in self.turns if turn.row in self.had_grant and self._has_changed(turn)]
        here = team[special]
        self.grants.touched.update(special[(here > 0) & np.isin(here, team[changed])].tolist())

    def _has_changed(self, turn: GangTurn) -> bool:
        """Whether it has another grant than before, or none any more."""
        return turn.row in self.granted or self.I[Job.PHASE, turn.row] == PENDING
