"""Makes a plan of assignments true: each gang whole or not at all, a refused one as if it were not named."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import Job
from gantline.core.phases import PENDING
from gantline.core.plan import Assignments, Mode
from gantline.core.reasons import Reason
from gantline.engine.commit.apply import PlanChanges
from gantline.engine.commit.diff import compare
from gantline.engine.commit.one_by_one import change_one_by_one, compare_shares_of_time
from gantline.engine.commit.request import PLACES, STOPS
from gantline.engine.commit.speeds import SpeedsBefore
from gantline.engine.grants import Grants

NO_ROWS: Ints = np.zeros(0, dtype=np.int64)


def commit_assignments(grants: Grants, rows: Ints, table: Assignments, keeps: Ints = NO_ROWS, slowly: bool = False) -> None:
    """Make the active rows hold exactly what the plan says, and count in `state.out` how many start and stop.

    `rows` are those of the plan's snapshot, and `keeps` go on as they are although it does not name them. With `slowly` all changes are
    done one by one; the result is the same.
    """
    state, planned = grants.state, rows[table.job]
    state.out[:] = 0
    speeds = SpeedsBefore(state)

    # 1. What does the plan ask for?
    asked = grants.requests.read(planned, table)

    # 2. Rows that hold just that keep it, for as long as the plan says.
    special, granted = grants.by_row.here(state.tables.F.shape[1]), grants.granted.columns
    compare_shares_of_time(grants, planned, table, asked)
    compare(state.matrices, state.lists, granted, special, asked, len(planned), keeps, grants.requests.plans, state.now, state.rules)
    places = asked.places[: asked.found[PLACES]].copy()

    # 3. Rows that the plan does not name stop.
    ended = _stop(grants, table, asked.stops[: asked.found[STOPS]].tolist())

    # 4. All others give up what the plan takes away, and then take their turns, as the plan lists them: in one compiled pass, or one by
    # one where a change is of a kind that the pass does not take.
    if len(places) or grants.overdrawn():
        changes = PlanChanges(grants, planned, table, asked, places)
        if changes.readable and not slowly:
            changes.run()
        else:
            grants.slow_commits += 1
            change_one_by_one(grants, planned, table, asked, places)

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
    if grants.granted.takes_no_turns(row):
        return False
    grant = grants.by_row.get(row)
    if grant is None or grant.assignment.rotation < 0:
        return False
    mates = np.array(sorted(grant.members[0]), dtype=np.int64)
    in_group = grant.assignment.mode == Mode.TIME and bool(grants.requests.names(mates).any())
    return in_group or grant.assignment.rotation in table.rotations()
