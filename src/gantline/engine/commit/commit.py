"""Makes a plan of assignments true: each gang whole or not at all, a refused one as if it were not named."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.phases import PENDING
from gantline.core.plan import Assignments, Mode
from gantline.core.reasons import Reason
from gantline.engine.commit.diff import compare
from gantline.engine.commit.place_or_restore import PlanChanges
from gantline.engine.commit.request import OTHER, PLACES, SAME, STOPS, PlanRequest, divides_time
from gantline.engine.commit.speeds import SpeedsBefore
from gantline.engine.grants import Grants

NO_ROWS: Ints = np.zeros(0, dtype=np.int64)


def commit_assignments(grants: Grants, rows: Ints, table: Assignments, keeps: Ints = NO_ROWS) -> None:
    """Make the active rows hold exactly what the plan says, and count in `state.out` how many start and stop.

    `rows` are those of the plan's snapshot, and `keeps` go on as they are although it does not name them.
    """
    state, planned = grants.state, rows[table.job]
    state.out[:] = 0
    speeds = SpeedsBefore(state)

    # 1. What does the plan ask for?
    asked = grants.requests.read(planned, table)

    # 2. Rows that hold just that keep it, for as long as the plan says.
    special, granted = grants.by_row.here(state.tables.F.shape[1]), grants.granted.columns
    _compare_shares_of_time(grants, planned, table, asked)
    compare(state.matrices, state.lists, granted, special, asked, len(planned), keeps, grants.requests.plans, state.now, state.rules)
    places = asked.places[: asked.found[PLACES]].copy()

    # 3. Rows that the plan does not name stop.
    ended = _stop(grants, table, asked.stops[: asked.found[STOPS]].tolist())

    # 4. All others give up what the plan takes away, and then take their turns, as the plan lists them.
    if len(places) or grants.overdrawn():
        got = PlanChanges(grants, planned, table, asked, places).carry_out()
        shares = _shares_of_time(grants, planned, table, asked)
        grants.granted.shares = None if shares is None or not got.issuperset(shares[0].tolist()) else shares

    # 5. Speeds of what has changed, and of what is beside it.
    grants.refresh_touched()
    speeds.count_changes()

    # 6. Why rows wait that the plan does not name.
    waiting = state.rows[state.tables.I[Job.PHASE][state.rows] == PENDING]
    state.tables.I[Job.REASON, waiting[~grants.requests.names(waiting)]] = int(Reason.DEFERRED)
    state.tables.I[Job.REASON, ended] = int(Reason.LEASE_ENDED)
    state.rebuild()


def _stop(grants: Grants, table: Assignments, rows: list[int]) -> list[int]:
    """Stop these rows; returns those of which the lease is over."""
    state, ended = grants.state, []
    for row in rows:
        turn, over = _only_waits_for_turn(grants, table, row), bool(state.tables.F[Job.UNTIL, row] <= state.now)
        grants.stop(row, Reason.LEASE_ENDED if over else Reason.TURN if turn else Reason.PREEMPTED, turn)
        state.out[1] += 1
        ended += [row] * over
    return ended


def _only_waits_for_turn(grants: Grants, table: Assignments, row: int) -> bool:
    """Whether others of its rotation go on, known by the number that the plan gives it."""
    if row not in grants.by_row or not grants.granted.takes_turns(row):
        return False
    grant = grants.by_row[row]
    if grant.assignment.rotation < 0:
        return False
    mates = np.array(sorted(grant.members[0]), dtype=np.int64)
    in_group = grant.assignment.mode == Mode.TIME and bool(grants.requests.names(mates).any())
    return in_group or grant.assignment.rotation in table.rotations()


def _compare_shares_of_time(grants: Grants, rows: Ints, table: Assignments, asked: PlanRequest) -> None:
    """Shares of the time are given out anew unless all of them are as they were, so that none has to be looked at."""
    now = _shares_of_time(grants, rows, table, asked)
    if now is None:
        return
    kept, grants.speeds.fluid_in_use = grants.granted.shares, True
    same = kept is not None and all(np.array_equal(a, b) for a, b in zip(kept, now))
    same = same and set(now[0].tolist()) == grants.rows_with_shares() and not grants.overdrawn()
    asked.by[: len(rows)][divides_time(rows, table)] = SAME if same else OTHER


def _shares_of_time(grants: Grants, rows: Ints, table: Assignments, asked: PlanRequest) -> tuple[Ints | Floats, ...] | None:
    """The shares of the time of this plan, as they can be compared with those of another; None: it has none."""
    at = np.flatnonzero(divides_time(rows, table))
    if not len(at):
        return None
    mine, teams = rows[at], grants.requests.teams(len(rows))
    return mine, asked.option[at], table.column("share")[at], teams[at], grants.state.tables.I[Job.EPOCH][mine]
