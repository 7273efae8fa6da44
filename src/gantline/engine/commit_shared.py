"""The part of a commit in which many gangs share devices, or name their own: columns for the kernel, and its results entered in bulk."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import chain

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.columns import ASKED_TOGETHER, DEVICE_MEMORY, HOST_RESOURCE_NAMES, Device, Job, Node, Option
from gantline.core.grant import Grant
from gantline.core.phases import PENDING
from gantline.core.plan import Assignments, Mode
from gantline.engine.checkpoints import note_saves
from gantline.engine.gang_turns import Change
from gantline.engine.grants import Grants
from gantline.engine.holdings import Holdings
from gantline.engine.in_force import Groups
from gantline.engine.option_rows import IMPOSSIBLE
from gantline.engine.seats import GANG_FIRST
from gantline.engine.shared_ask import Ask, End, Want, Work
from gantline.engine.shared_gang import ALONE, BEFORE, CHANGES, NOW, OPEN, STRANGER, TOUCHED
from gantline.engine.shared_parting import decide_changes, part_with_shared
from gantline.engine.shared_turns import take_shared_turns
from gantline.engine.wanted import shares_openly, sound_numbers

#: what plans may say here; the rest is done one by one
_COLUMNS = frozenset(
    (
        "job",
        "option",
        "gpus",
        "type",
        *HOST_RESOURCE_NAMES,
        "group",
        "mode",
        "together",
        "turns",
        "fraction",
        "offset",
        "batch",
        "accumulation",
        "share",
        "until",
        "limit",
        "devices",
    )
)


def may_share_compiled(grants: Grants) -> bool:
    """Whether gangs that share are known to the kernels: none has parts, a share of the time or a trial."""
    return not (grants.used_fluid or grants.state.tables.trials or grants.holdings.with_parts)


def counts_memory(grants: Grants) -> bool:
    """Whether device memory may run short: the cluster states it, and it is known what some gangs take of it."""
    t = grants.state.tables
    return any(t.cluster.device_memory) and (DEVICE_MEMORY in t.metrics or grants.in_force.knows("memory_cap"))


class GrantsOfPlan:
    """The grants of many rows, as one plan gave them."""

    def __init__(self, books: Holdings, rows: Ints, group: Ints, table: Assignments, owners: Ints) -> None:
        """The plan named these `rows`, in these groups; `table` is what it gave the `owners`. Nothing writes to these arrays again."""
        self.books, self.rows, self.group, self.table, self.owners = books, rows, group, table, owners
        self._members: dict[int, frozenset[int]] = {}

    @cached_property
    def _place(self) -> dict[int, int]:
        return dict(zip(self.owners.tolist(), range(len(self.owners))))

    def grant(self, row: int) -> Grant:
        """The grant of a row, on what it holds now."""
        item, held = replace(self.table[self._place[row]], job=row), self.books.of(row)
        if item.group not in self._members:
            members = self.rows[self.group == item.group] if item.group >= 0 else self.rows[:0]
            self._members[item.group] = frozenset(members.tolist())
        return Grant((item,), (self._members[item.group],), held.devices, held.shared, (), held.side)


def copied_grants(books: Holdings, rows: Ints, table: Assignments, at: Ints) -> GrantsOfPlan:
    """The grants at some places of a plan, which may write to its arrays again."""
    return GrantsOfPlan(books, rows, table.column("group").copy(), table.some(at), rows[at])


class CommitShared:
    """The assignments at some places of a plan, all of a kind that is compiled; see `made`."""

    def __init__(self, grants: Grants, rows: Ints, table: Assignments, groups: Groups, at: Ints, options: Ints) -> None:
        self.grants, self.rows, self.table, self.at = grants, rows, table, at
        self.state, self.books = grants.state, grants.holdings
        self.mine = rows[at]
        self.mode, self.group = table.column("mode")[at], groups.number[at]
        self.options = options
        self.able = self._read(groups)

    @staticmethod
    def made(grants: Grants, rows: Ints, table: Assignments, groups: Groups, at: Ints, options: Ints) -> CommitShared | None:
        """The turns at these places; None: some of them are to be done one by one."""
        t = grants.state.tables
        names = {name for name, _ in table.filled_columns()}
        if not names <= _COLUMNS or not may_share_compiled(grants) or counts_memory(grants):
            return None
        if not t.NI[Node.UP].all() or t.NI[Node.CLOSED].any():
            return None
        found = CommitShared(grants, rows, table, groups, at, options[at])
        return found if found.able else None

    # --- reading --------------------------------------------------------------------------------------------------------
    def _read(self, groups: Groups) -> bool:
        t, mine = self.state.tables, self.mine
        self.seats = self.books.seats()
        special = self.grants.by_row.rows()
        if len(special) and not self.grants.in_force.describes(special[self.seats.gang[GANG_FIRST][special] >= 0]):
            return False
        holds = t.I[Job.PHASE][mine] != PENDING
        if (holds & ((t.I[Job.HELD][mine] == 0) | (t.I[Job.NODE][mine] >= 0))).any():
            return False
        if self.table.has("share") and len(np.unique(mine)) < len(mine):  # else a plan names a job once
            return False
        named = self._read_devices()
        if named is None:
            return False
        self.options = np.where(sound_numbers(self.table)[self.at], self.options, IMPOSSIBLE)
        sound = self.options != IMPOSSIBLE
        OI, some = t.options.I, np.maximum(self.options, 0)
        need = np.where(sound, OI[Option.GPUS][some], 0)
        if (sound & (need == 0)).any():
            return False
        grouped = (self.group >= 0) & (self.mode != int(Mode.EXCLUSIVE))
        linked = grouped & (self.mode == int(Mode.INTERLEAVE)) & named
        shares = (grouped & ~(linked & ~self._in_common(linked))) | shares_openly(self.rows, self.table)[self.at]
        wants = np.where(shares, np.where(named, Want.SHARES_NAMED, Want.JOINS), np.where(named, Want.OWNS_NAMED, Want.OWN_PLACE))
        if (holds & sound & (wants == Want.OWN_PLACE) & (need != t.I[Job.HELD][mine])).any():
            return False
        if not self._one_size(sound & (wants == Want.JOINS), need, OI[Option.TYPE][some]):
            return False
        if shares.any():
            self.grants.note_sharing()
        self._enter(groups, special, holds, sound, need, wants, shares)
        return True

    def _read_devices(self) -> Bools | None:
        """The devices that rows name, and the options that follow from them; None: written in an unusual way."""
        t, count = self.state.tables, len(self.at)
        if not self.table.has("devices"):
            self.flat, self.count = np.zeros(0, dtype=np.int64), np.zeros(count, dtype=np.int64)
            self.first = self.count
            return np.zeros(count, dtype=np.bool_)
        entries = self.table.entries("devices")
        asked = [entries[k] for k in self.at.tolist()]
        flat = np.array(list(chain.from_iterable(asked)), dtype=None)
        if len(flat) and flat.dtype.kind != "i":
            return None
        self.flat = flat.astype(np.int64)
        self.count = np.fromiter(map(len, asked), dtype=np.int64, count=count)
        self.first = np.cumsum(self.count) - self.count
        named: Bools = self.count > 0
        owner = np.repeat(np.arange(count), self.count)
        good: Bools = np.ones(count, dtype=np.bool_)
        inside = (self.flat >= 0) & (self.flat < t.D.shape[1])
        good[owner[~inside]] = False
        kinds = t.NI[Node.TYPE][t.D[Device.NODE][np.where(inside, self.flat, 0)]]
        kind = np.zeros(count, dtype=np.int64)
        kind[owner] = kinds
        good[owner[kind[owner] != kinds]] = False
        pairs = owner * t.D.shape[1] + np.where(inside, self.flat, 0)
        if len(np.unique(pairs)) < len(pairs):
            good &= np.array([len(set(devices)) == len(devices) for devices in asked])
        self.options = np.where(named, self._exact_options(named & good, kind), self.options)
        return named

    def _exact_options(self, good: Bools, kind: Ints) -> Ints:
        """The option of each row that has just the devices that it names."""
        t, table, at = self.state.tables, self.table, self.at
        gpus, type_asked = table.column("gpus")[at], table.column("type")[at]
        good = good & ((gpus < 0) | (gpus == self.count)) & ((type_asked < 0) | (type_asked == kind))
        found = np.full(len(at), IMPOSSIBLE)
        where = np.flatnonzero(good)
        rows = self.mine[where]
        asked = {name: table.column(name)[at][where] for name in ("option", *HOST_RESOURCE_NAMES) if table.has(name)}
        first = t.I[Job.OPTION_FIRST][rows]
        usual = (t.options.I[Option.TYPE][first] == kind[where]) & (t.options.I[Option.GPUS][first] == self.count[where])
        for name, column in asked.items():
            usual &= column < 0 if name == "option" else np.isnan(column)
        found[where[usual]] = first[usual]
        rest = ~usual
        if rest.any():
            asked = {name: column[rest] for name, column in asked.items()}
            sized = Assignments(np.zeros(int(rest.sum())), gpus=self.count[where][rest], type=kind[where][rest], **asked)
            found[where[rest]] = self.grants.options.of_table(rows[rest], sized)
        return np.where(self._torn(found), IMPOSSIBLE, found)

    def _torn(self, options: Ints) -> Bools:
        """Which rows name devices of several nodes though they must be on one."""
        t = self.state.tables
        torn: Bools = (
            (options != IMPOSSIBLE) & (t.options.I[Option.NODES][options] == 1) & (t.I[Job.CONSOLIDATE][self.mine] == ASKED_TOGETHER)
        )
        for k in np.flatnonzero(torn).tolist():
            nodes = t.D[Device.NODE][self.flat[self.first[k] : self.first[k] + self.count[k]]]
            torn[k] = len(np.unique(nodes)) > 1
        return torn

    def _in_common(self, linked: Bools) -> Bools:
        """Which rows of interleaved groups name a device that another member names."""
        common: Bools = np.zeros(len(linked), dtype=np.bool_)
        if linked.any():
            owner = np.repeat(np.arange(len(linked)), self.count)
            inside = linked[owner]
            key = self.group[owner[inside]] * self.state.tables.D.shape[1] + self.flat[inside]
            _, which, times = np.unique(key, return_inverse=True, return_counts=True)
            common[owner[inside][times[which] > 1]] = True
        return common

    def _one_size(self, joins: Bools, need: Ints, kind: Ints) -> bool:
        """Whether the members of each group want as many devices of one type."""
        at = np.flatnonzero(joins)
        if len(at) < 2:
            return True
        at = at[np.argsort(self.group[at], kind="stable")]
        same = self.group[at][1:] == self.group[at][:-1]
        return not (same & ((need[at][1:] != need[at][:-1]) | (kind[at][1:] != kind[at][:-1]))).any()

    # --- columns for the kernel -----------------------------------------------------------------------------------------
    def _enter(self, groups: Groups, special: Ints, holds: Bools, sound: Bools, need: Ints, wants: Ints, shares: Bools) -> None:
        state, t, count = self.state, self.state.tables, len(self.at)
        code = groups.code()[self.at]
        self.turns_of_all = self.grants.room.turns(count, groups.codes + 1, self.flat)
        ask, self.work = self.turns_of_all.ask[:, :count], self.turns_of_all.work[:, :count]
        ask[Ask.ROW], ask[Ask.OPTION], ask[Ask.WANTS], ask[Ask.GROUP] = self.mine, self.options, wants, code
        ask[Ask.FIRST], ask[Ask.COUNT] = self.first, self.count
        room = np.maximum(np.maximum(need, t.I[Job.HELD][self.mine]), self.count)
        ask[Ask.GETS] = np.cumsum(room) - room
        self.returns = self.table.rotations()[self.at] >= 0
        if t.waits_for_turn:
            ask[Ask.RETURNS] = self.returns & np.fromiter(map(t.waits_for_turn.__contains__, self.mine.tolist()), np.bool_, count)
        if self.table.has("together"):
            ask[Ask.WHOLE] = self.table.column("together")[self.at] & (self.group >= 0)
            order = np.argsort(code, kind="stable")
            same = code[order][1:] == code[order][:-1]
            ask[Ask.MATE, order] = np.append(np.where(same, order[1:], -1), -1)
            starts = np.concatenate([[True], ~same])
            ask[Ask.LEAD, order] = order[starts][np.cumsum(starts) - 1]
        ask[Ask.WIDEST] = np.argsort(-need, kind="stable")
        total = int(room.sum()) + 1
        self.company = self.grants.room.company(t.F.shape[1], total)
        self._enter_company(groups, special, shares)
        self.company.row[CHANGES, self.mine[holds & sound]] = 1
        self.seats = self.books.seats(2 * total)
        state.log.reserve(count + 8, total + 8)

    def _enter_company(self, groups: Groups, special: Ints, shares: Bools) -> None:
        """Which gangs may be together: by this plan, and by what is in force."""
        line, force = self.company.row, self.grants.in_force
        planned, mode = self.rows, self.table.column("mode")
        line[NOW, special] = line[BEFORE, special] = STRANGER
        seated = special[self.seats.gang[GANG_FIRST][special] >= 0]
        team = force.values("team", special)
        line[BEFORE, special] = np.where(team > 0, team, ALONE)
        alone = seated[force.values("team", seated) == 0]
        line[BEFORE, alone] = line[NOW, alone] = OPEN
        together = (groups.number >= 0) & (mode != int(Mode.EXCLUSIVE))
        line[NOW, planned] = np.where(together, groups.number, np.where(shares_openly(planned, self.table), OPEN, ALONE))
        line[NOW, self.mine[~shares]] = ALONE
        known = np.zeros(line.shape[1], dtype=np.bool_)
        known[planned] = known[special] = True
        self.known = np.flatnonzero(known)

    # --- the commit -----------------------------------------------------------------------------------------------------
    def give_up(self) -> None:
        """Every row gives up what the plan takes away."""
        state, t = self.state, self.state.tables
        decide_changes(state.matrices, self.seats, self.company, self.turns_of_all, state.now, state.min_run)
        change = self.work[Work.CHANGE]
        for row in self.mine[((change == Change.KEEPS) | (change == Change.LEAVES)) & (t.F[Job.CHECKPOINT][self.mine] > 0.0)].tolist():
            note_saves(state, row)
        part_with_shared(state.matrices, self.seats, self.company, self.turns_of_all, state.now)

    def turns(self, first: int, last: int) -> None:
        """The turns of those in [first, last)."""
        if last > first:
            moment = self.grants.room.moment(self.state)
            take_shared_turns(self.state.matrices, self.seats, self.company, self.turns_of_all, first, last, moment)

    def record(self, plain: Bools) -> None:
        """Keep what is special about the new grants."""
        end, by_row, t = self.work[Work.END], self.grants.by_row, self.state.tables
        recorded = (end == End.GRANTED) | (end == End.IN_PART)
        self.granted, self.in_part = self.mine[end == End.GRANTED].tolist(), self.mine[end == End.IN_PART].tolist()
        special = recorded & ((self.seats.gang[GANG_FIRST][self.mine] >= 0) | ~plain[self.at])
        by_row.drop(self.mine[recorded | (end == End.HALTED)].tolist())
        if special.any():
            by_row.enter(self.mine[special].tolist(), copied_grants(self.books, self.rows, self.table, self.at[special]))
        for row in self.mine[recorded & self.returns].tolist() if t.waits_for_turn else ():
            t.waits_for_turn.discard(row)
        part = self.at[end == End.IN_PART]
        limit = t.F[Job.LAST_START][self.rows[part]] + self.table.column("limit")[part]
        t.F[Job.LIMIT_END, self.rows[part]], t.F[Job.UNTIL, self.rows[part]] = limit, np.minimum(self.table.column("until")[part], limit)
        line = self.company.row
        if self.grants.speeds.model is not None:  # of a group that shares links: the others of its group
            codes = line[BEFORE, self.mine[recorded | (end == End.HALTED)]]
            line[TOUCHED, self.known[np.isin(line[BEFORE, self.known], codes[codes >= 0])]] = 1
        self.touched = self.known[line[TOUCHED, self.known] == 1].tolist()
        line[:, self.known] = 0

    def acts(self) -> tuple[Ints, Ints]:
        """Rows that pay for something, and what for."""
        acts = self.work[Work.ACT]
        return self.mine[acts >= 0], acts[acts >= 0]
