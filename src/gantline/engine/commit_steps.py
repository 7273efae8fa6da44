"""The steps in which a plan of assignments is committed: each gang whole or not at all, a refused one as if it were not named.

    1. find rows that keep what they have (in bulk; they are left alone)    2. stop rows that the plan does not name
    3. all other rows give up what the plan takes away                      4. turns, as the plan lists them    5. costs and speeds

A gang that cannot get its new place goes back to the old one; it stops only if a gang listed before it has taken that place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import DEVICE_MEMORY, Job
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.core.plan import TRIAL, Assignments, Mode
from gantline.core.reasons import Reason
from gantline.engine.commit_general import CommitGeneral
from gantline.engine.compiled_turns import CompiledTurns
from gantline.engine.grants import Grants
from gantline.engine.in_force import Groups
from gantline.engine.option_rows import IMPOSSIBLE
from gantline.engine.seats import GANG_FIRST
from gantline.engine.trial_runs import is_trial
from gantline.engine.wanted import divides_time, shares_openly, sound_numbers

if TYPE_CHECKING:
    from gantline.engine.commit_groups import CommitGroups
    from gantline.engine.commit_shared import CommitShared


class Commit:
    """One commit of the assignments of a plan; `rows` are the rows that they name, one each, and `named` all rows that may go on."""

    def __init__(
        self, grants: Grants, rows: Ints, table: Assignments, named: Bools, general: bool = False, read_by_groups: bool = False
    ) -> None:
        self.grants, self.rows, self.table, self.all_general = grants, rows, table, general
        self.state, self.t = grants.state, grants.state.tables
        self.out = self.state.out
        self.named = named
        self.read_by_groups = read_by_groups  # whether the group reader has just found all these rows to change
        self.special: frozenset[int] = frozenset()

    @cached_property
    def groups(self) -> Groups:
        return Groups(self.rows, self.table)

    @cached_property
    def fluid(self) -> Bools:
        return divides_time(self.rows, self.table)

    @cached_property
    def made_up(self) -> Bools:
        """Where the option follows from the devices or parts that are named."""
        return _filled(self.table, "devices", "parts")

    @cached_property
    def plain(self) -> Bools:
        return self.table.plain_rows()

    def run(self) -> bool:
        """All steps; state.out gets [started, stopped]. Returns whether every row already had what the plan gives it."""
        if not self.table.has("mode") and self.t.rate_changes is None:
            return self._take_steps()
        speed, counted = self.t.F[Job.RATE].copy(), 0 if self.t.rate_changes is None else self.t.rate_changes.copy()
        unmoved = self._take_steps()
        if self.t.rate_changes is not None:  # once per commit, whichever path the row took
            phase = self.t.I[Job.PHASE]
            goes_on = ((phase == STARTING) | (phase == RUNNING)) & (self.t.F[Job.LAST_START] < self.state.now)
            self.t.rate_changes[:] = counted + (goes_on & (self.t.F[Job.RATE] != speed))
        return unmoved

    def _take_steps(self) -> bool:
        self.out[:] = 0
        found = self._by_groups() if self.read_by_groups else None
        if found is not None:
            over = self._stop_unnamed()
            found.run()
            self._write_reasons(over)
            return False
        self.special = frozenset(self.grants.by_row)
        self.options = self.grants.options.of_table(self.rows, self.table)  # whichever rows change: new options are numbered as they come
        phase = self.t.I[Job.PHASE][self.rows]
        holds = (phase == STARTING) | (phase == RUNNING)
        free = (phase == PENDING) | (holds & (self.t.I[Job.LOCKED][self.rows] == 0))  # else locked or in flight: it stays as it was
        quiet = self._quiet(holds & free)
        self._renew(np.flatnonzero(quiet))
        over = self._stop_unnamed()
        unmoved = bool(quiet.all()) and not (self.out[1] or self.grants.left or self.grants.used_fluid)
        moving = np.flatnonzero(free & ~quiet)
        if len(moving) or self.grants.overdrawn():
            self._change(moving)
        self._refresh_speeds(set())
        self._write_reasons(over)
        return unmoved and bool(self.named[self.state.running_rows].all())

    def _write_reasons(self, over: list[int]) -> None:
        """Why rows wait that the plan does not name."""
        waiting = self.state.rows[self.t.I[Job.PHASE][self.state.rows] == PENDING]
        if len(waiting):
            self.t.I[Job.REASON, waiting[~self.named[waiting]]] = int(Reason.DEFERRED)
        if over:
            self.t.I[Job.REASON, over] = int(Reason.LEASE_ENDED)

    def _by_groups(self) -> CommitGroups | None:
        """The changes, where the columns that were compared say everything about them."""
        from gantline.engine.commit_groups import CommitGroups  # plain gangs need none of it

        return CommitGroups.made(self.grants, self.rows, self.table)

    # --- 1. rows that keep what they have ---------------------------------------------------------------------------
    def _quiet(self, able: Bools) -> Bools:
        """Which assignments equal what is in force already."""
        if not able.any():
            return able
        if not self.special:
            return np.asarray(able & self._same_option() & self.plain)
        special = self.grants.by_row.has(self.rows)
        force = self.grants.in_force
        quiet = able & np.where(special, force.same(self.rows, self.table, self.groups), self.plain)
        if not self.made_up.any():
            quiet &= self._same_option()
        elif self.made_up.all():
            quiet &= force.asked_alike(self.rows, self.table)
        else:
            quiet &= np.where(self.made_up, force.asked_alike(self.rows, self.table), self._same_option())
        if self.fluid.any() or self.grants.shares_in_force:
            quiet = np.where(self.fluid, able & self._same_shares(), quiet)
        self.groups.spoil(quiet)
        return np.asarray(quiet)

    def _same_option(self) -> Bools:
        return np.asarray((self.options == self.t.I[Job.OPTION][self.rows]) & (self.options != IMPOSSIBLE))

    def _same_shares(self) -> bool:
        """Whether all shares of the time are given as they were, so that none has to be looked at."""
        kept, now = self.grants.in_force.shares, self._shares()
        same = kept is not None and all(np.array_equal(a, b) for a, b in zip(kept, now))
        return same and set(self.rows[self.fluid].tolist()) == self.grants.rows_with_shares() and not self.grants.overdrawn()

    def _shares(self) -> tuple[Ints | Floats, ...]:
        """The shares of the time of this plan, as they can be compared with those of another."""
        at = np.flatnonzero(self.fluid)
        rows = self.rows[at]
        return (
            rows,
            self.options[at],
            self.table.column("share")[at],
            self.groups.team[at],
            self.t.I[Job.EPOCH][rows],
        )

    def _renew(self, at: Ints) -> None:
        """Leases end as the plan says, or at the limit of the run, which counts from its start."""
        if not len(at):
            return
        at = at[::-1]  # of several assignments of one row the first counts
        F, rows = self.t.F, self.rows[at]
        self.t.I[Job.REASON, rows] = 0
        if not (self.table.has("limit") or self.table.has("until")):
            F[Job.LIMIT_END, rows] = F[Job.UNTIL, rows] = np.inf
            return
        end = F[Job.LAST_START][rows] + self.table.column("limit")[at]
        F[Job.LIMIT_END, rows] = end
        F[Job.UNTIL, rows] = np.minimum(self.table.column("until")[at], end)

    # --- 2. rows that the plan does not name ------------------------------------------------------------------------
    def _stop_unnamed(self) -> list[int]:
        """Stop them; returns the rows of which the lease is over."""
        I, F, active, now = self.t.I, self.t.F, self.state.rows, self.state.now
        left_out = active[~self.named[active]]
        if not len(left_out):
            return []
        phase = I[Job.PHASE][left_out]
        holds = ((phase == STARTING) | (phase == RUNNING)) & (I[Job.LOCKED][left_out] == 0)
        past = now >= F[Job.LAST_START][left_out] + self.state.min_run
        stopped = left_out[holds & past]
        over: list[int] = stopped[F[Job.UNTIL][stopped] <= now].tolist()
        for row in stopped.tolist():
            turn = self._is_turn(row)
            why = Reason.LEASE_ENDED if row in over else Reason.TURN if turn else Reason.PREEMPTED
            self.grants.stop(row, why, turn)
            self.out[1] += 1
        return over

    def _is_turn(self, row: int) -> bool:
        """Whether others of its rotation go on, known by the number that the plan gives it: it only waits for its turn."""
        if self.grants.in_force.takes_no_turns(row):
            return False
        grant = self.grants.by_row.get(row)
        if grant is None or grant.assignment.rotation < 0:
            return False
        in_group = grant.assignment.mode == Mode.TIME and any(self.named[mate] for mate in grant.members[0])
        return in_group or grant.assignment.rotation in self.rotations

    @cached_property
    def rotations(self) -> frozenset[int]:
        """The rotations in which this plan gives a turn."""
        return frozenset(self.table.rotations().tolist())

    # --- 3. and 4. changes ------------------------------------------------------------------------------------------
    def _change(self, moving: Ints) -> None:
        """Compiled code handles unshared gangs; the rest, which is rare, is done one by one. Turns come as the plan lists them."""
        self.grants.speeds.fluid_in_use |= bool(self.fluid.any())
        easy = self._easy(moving)
        hard = moving[~easy]
        shared = None if self.all_general or not len(hard) else self._shared(hard)
        if shared is not None:
            hard = hard[:0]
        general = CommitGeneral(self.grants, self.rows, self.table, hard.tolist(), self._open_rows() if len(hard) else frozenset())
        compiled = CompiledTurns(self.grants, self.rows[moving[easy]], self.options[moving[easy]])
        general.give_up()
        compiled.give_up()
        if shared is not None:
            shared.give_up()
            for start, end, is_easy in _runs(easy):
                passed = int(easy[:start].sum())
                if is_easy:
                    compiled.turns(passed, passed + end - start)
                else:
                    shared.turns(start - passed, end - passed)
            shared.record(self.plain)
            self._enter(moving, shared, compiled)
            return
        before, begin = np.cumsum(easy), 0
        first: dict[int, int] = {}
        for place, row in enumerate(self.rows[moving].tolist()):
            first.setdefault(row, place)
        for row, w in general.wanted.items():
            end = int(before[first[row]])
            compiled.turns(begin, end)
            begin = end
            general.turn(w)
        compiled.turns(begin, int(easy.sum()))
        self._enter(moving, general, compiled)

    def _shared(self, hard: Ints) -> CommitShared | None:
        """These turns compiled, where all of them are of a kind that is."""
        from gantline.engine.commit_shared import CommitShared  # plain gangs need none of it

        return CommitShared.made(self.grants, self.rows, self.table, self.groups, hard, self.options)

    def _open_rows(self) -> frozenset[int]:
        """Rows that share without a group: by this plan, or by an earlier one if this plan does not name them."""
        openly = shares_openly(self.rows, self.table)
        if not openly.any() and not self.special:
            return frozenset()
        before = (row for row in self.special.difference(self.rows.tolist()) if row in self.grants.by_row)
        return frozenset(self.rows[openly].tolist()).union(row for row in before if self.grants.by_row[row].shares_openly)

    def _easy(self, moving: Ints) -> Bools:
        """Which rows want a gang that the engine places without further requirements, and hold nothing but such a gang."""
        if self.all_general or self.made_up[moving].all():
            return np.zeros(len(moving), dtype=np.bool_)
        shared = (self.groups.number >= 0) & ((self.table.column("mode") != Mode.EXCLUSIVE) | self.table.column("together"))
        if shared[moving].all():
            return np.zeros(len(moving), dtype=np.bool_)
        placed = self.made_up | _filled(self.table, "nodes", "within") | (self.table.column("turns") >= 0)
        found: Bools = (~(placed | shared | self.fluid | (self.options == IMPOSSIBLE)) & sound_numbers(self.table))[moving]
        if any(self.t.cluster.device_memory):  # it may be short on a type that is not among the job's options, or of what the plan allows
            if self.table.has("type") and DEVICE_MEMORY in self.t.metrics:
                found &= ~(self.t.metrics[DEVICE_MEMORY][self.rows[moving]] > 0.0)
            found &= self.table.column("memory_cap")[moving] == math.inf
        books = self.grants.holdings
        found &= books.seats().gang[GANG_FIRST][self.rows[moving]] < 0
        told = self.table.has("purpose") or self.t.trials or self.grants.used_fluid or books.with_parts
        purpose = self.table.entries("purpose") if told else ()
        for at, (place, row) in enumerate(zip(moving.tolist(), self.rows[moving].tolist())) if purpose else ():
            grant = self.grants.by_row.get(row)
            changes = self.t.I[Job.HELD, row] and is_trial(grant) != (purpose[place] == TRIAL)
            if changes or (grant is not None and (grant.shared or grant.side or grant.fluid or grant.workers)):
                found[at] = False
        return found

    # --- 5. costs and speeds ----------------------------------------------------------------------------------------
    def _enter(self, moving: Ints, general: CommitGeneral | CommitShared, compiled: CompiledTurns) -> None:
        """Keep what is special about the new grants, and ask for their costs and speeds."""
        got: Bools = np.zeros(self.t.F.shape[1], dtype=np.bool_)
        compiled_rows = compiled.granted()
        got[compiled_rows] = True
        touched = {*general.touched, *self._enter_gangs(moving, got)}
        got[list(general.granted)] = True
        self.grants.by_row.drop(self.rows[moving[self.t.I[Job.PHASE][self.rows[moving]] == PENDING]].tolist())  # they have been stopped
        mine = got[self.rows[moving]]
        self._renew(moving[mine])
        force = self.grants.in_force
        noted = got.copy()
        noted[list(general.in_part)] = True
        force.note(self.rows, self.table, self.groups, moving[noted[self.rows[moving]]])
        force.forget(self.rows[moving[~mine]])
        force.shares = self._shares() if self.fluid.any() and got[self.rows[self.fluid]].all() else None
        if self.grants.speeds.about_costs:
            self.grants.speeds.pay(*(np.concatenate(parts) for parts in zip(compiled.acts(), general.acts())))
        touched.update(compiled.restyled().tolist())
        if self.grants.speeds.about_gangs:
            touched.update(compiled_rows.tolist())
        self._refresh_speeds(touched)

    def _enter_gangs(self, moving: Ints, got: Bools) -> list[int]:
        """What unshared gangs have beyond an option: batch, limit, purpose, a group. Returns rows of which this may change the speed."""
        if not got.any() or (not self.special and self.plain.all()):
            return []
        at = moving[got[self.rows[moving]]]
        at = at[~self.plain[at] | np.fromiter(map(self.special.__contains__, self.rows[at].tolist()), np.bool_, len(at))]
        rows, plain = self.rows[at], self.plain[at]
        for row in rows.tolist() if self.grants.speeds.model is not None else ():
            if row in self.special:
                self.grants.left |= self.grants.company(row, self.grants.by_row[row])
        self.grants.by_row.drop(rows.tolist())
        if not plain.all():
            from gantline.engine.commit_shared import copied_grants

            self.grants.by_row.enter(rows[~plain].tolist(), copied_grants(self.grants.holdings, self.rows, self.table, at[~plain]))
        found: list[int] = rows.tolist()
        return found

    def _refresh_speeds(self, touched: set[int]) -> None:
        self.grants.refresh_with(np.array(sorted(touched), dtype=np.int64))


def _runs(mask: Bools) -> Iterator[tuple[int, int, bool]]:
    """Stretches of equal values: where each begins and ends, and its value."""
    bounds = [0, *(np.flatnonzero(mask[1:] != mask[:-1]) + 1).tolist(), len(mask)]
    return ((int(first), int(last), bool(mask[first])) for first, last in pairwise(bounds) if last > first)


def _filled(table: Assignments, *names: str) -> Bools:
    """Where one of these ragged columns has a value."""
    found: Bools = np.zeros(len(table), dtype=np.bool_)
    for name in names:
        if table.has(name):
            found |= np.fromiter(map(bool, table.entries(name)), dtype=np.bool_, count=len(table))
    return found
