"""Which assignments give their rows just what these have, read from grants and assignments one by one."""

from __future__ import annotations

from dataclasses import replace

from tests.oracles.one_by_one import is_plain

from gantline.core.columns import Job
from gantline.core.host_resources import amounts_beside
from gantline.core.phases import RUNNING, STARTING
from gantline.core.plan import Assignment, Assignments
from gantline.engine.grants import Grants


def kept_assignments(grants: Grants, items: list[Assignment]) -> list[bool]:
    """In the order of the plan; the `job` of an assignment is its row."""
    kept = [_keeps(grants, items, item) for item in items]
    changed = {item.group for item, same in zip(items, kept) if not same and item.group >= 0}
    return [same and item.group not in changed for item, same in zip(items, kept)]


def _keeps(grants: Grants, items: list[Assignment], item: Assignment) -> bool:
    t, row = grants.state.tables, item.job
    if t.I[Job.PHASE, row] not in (STARTING, RUNNING) or t.I[Job.LOCKED, row]:
        return False
    made_up = bool(item.devices or item.parts)
    option = grants.options.find(row, item.option, item.gpus, item.type, amounts_beside(item), item.span)
    if not made_up and (option < 0 or option != t.I[Job.OPTION, row]):
        return False
    grant = grants.by_row.get(row)
    if grant is None:
        return is_plain(item)
    members = frozenset(other.job for other in items if other.group == item.group >= 0)
    granted_since = grants.granted.columns.epoch[row] == t.I[Job.EPOCH, row]  # and not refused after that
    return bool(granted_since and grant.members == (members,) and _says(item, made_up) == _says(grant.assignment, made_up))


def _says(item: Assignment, made_up: bool) -> str:
    """What is compared: neither the lease, nor the number of the group, nor, unless the option is made up, what it follows from.

    NaN is like NaN here.
    """
    item = replace(item, until=0.0, group=-1)
    if not made_up:
        item = replace(item, option=-1, gpus=-1, type=-1, span=0, cpus=0.0, memory=0.0, storage=0.0)
    return repr(Assignments.of([item])[0])
