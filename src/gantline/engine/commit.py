"""Commits a plan of assignments: one that says again what the last one said, one that only starts gangs, and all others step by step."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.plan import Assignments
from gantline.engine.commit_steps import Commit
from gantline.engine.grants import Grants
from gantline.engine.only_starts import start_gangs, start_on_devices
from gantline.engine.same_grants import WhatChanges

_NONE_KEPT: Bools = np.zeros(0, dtype=np.bool_)


def commit_assignments(grants: Grants, rows: Ints, table: Assignments, general: bool = False, keeps: Ints | None = None) -> None:
    """Make the active rows hold exactly what the plan says; `rows` are those of the plan's snapshot, `keeps` go on as they are.

    With `general` no compiled code runs; the result is the same.
    """
    state, planned = grants.state, rows[table.job]
    if keeps is not None and len(keeps):
        Commit(grants, planned, table, _named(grants, np.concatenate([planned, keeps])), general).run()
        state.rebuild()
        grants.repeats.forget(np.concatenate([planned, keeps]))
        return
    if not grants.left and grants.repeats.seen(planned, table):
        state.out[:] = 0
        return
    difference, kept = (WhatChanges.NOT_READ, _NONE_KEPT) if general else _difference(grants, planned, table)
    if difference is WhatChanges.NOT_READ:
        unmoved = Commit(grants, planned, table, _named(grants, planned), general).run()
        state.rebuild()
        if unmoved:
            grants.repeats.note(planned, table)
        else:
            grants.repeats.forget(planned)
        return
    grants.repeats.forget(planned)  # comparing such a plan takes no longer than recognising it
    if difference is WhatChanges.CHANGES or (difference is WhatChanges.ONLY_STARTS and not _start(grants, planned, table)):
        _change(grants, planned, table, kept)
    state.rebuild()


def _difference(grants: Grants, planned: Ints, table: Assignments) -> tuple[WhatChanges, Bools]:
    """How the plan differs from what the rows have, where that is read in bulk, and which assignments their rows keep."""
    if grants.left or grants.used_fluid:
        return WhatChanges.NOT_READ, _NONE_KEPT
    grants.state.out[:] = 0
    reader = grants.plan_reader
    if not grants.by_row and grants.in_force.nothing_special and table.tells_at_most("option"):
        return reader.by_option(planned, table), reader.seen.kept
    if grants.by_row and grants.in_force.only_devices(table):
        return reader.by_devices(planned, table), reader.seen.kept
    return grants.group_reader.compare(planned, table), grants.group_reader.asked.kept


def _change(grants: Grants, planned: Ints, table: Assignments, kept: Bools) -> None:
    """The rows that do not keep what they have are to have what the plan says."""
    changes = ~kept[: len(planned)]
    rows, changed, by_groups = planned[changes], table.some(changes), kept is not grants.plan_reader.seen.kept
    if by_groups and grants.group_reader.none_stops:
        from gantline.engine.commit_groups import CommitGroups  # plain gangs need none of it

        found = CommitGroups.made(grants, rows, changed)
        if found is not None:
            found.run()
            return
    Commit(grants, rows, changed, _named(grants, planned), read_by_groups=by_groups).run()


def _start(grants: Grants, planned: Ints, table: Assignments) -> bool:
    """Waiting rows take their turns; False: they cannot be started here, because a model has to be asked about them."""
    if grants.speeds.model is not None:
        return False
    if grants.by_row:
        return start_on_devices(grants, planned, table)
    start_gangs(grants)
    return True


def _named(grants: Grants, planned: Ints) -> Bools:
    """Which rows of the tables the plan is about."""
    named: Bools = np.zeros(grants.state.tables.F.shape[1], dtype=np.bool_)
    named[planned] = True
    return named
