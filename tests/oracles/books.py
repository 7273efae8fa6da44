"""Do the books agree? An invariant check over devices, free counts, chains, tenants, CPUs, logs and due times, for tests and doubts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gantline.core.columns import FREE, HOST_RESOURCES, SHARED, Device, Job, Node
from gantline.core.host_resources import amounts_beside
from gantline.core.phases import Phase
from gantline.engine.grants import Grants
from gantline.engine.log import Interval
from gantline.engine.state import State

_OUT = frozenset({Phase.PENDING, Phase.HELD, Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED})  # where a gang that is there can end up

#: Which phase may follow which, as seen from outside: at a decision, and when a commit or a report has been taken in. Anything else is a
#: defect. On virtual time starts and stops are true at once, so that PENDING and RUNNING follow each other; with an executor they are
#: STARTING, and CHECKPOINTING and STOPPING, until they are acknowledged.
ALLOWED: dict[Phase, frozenset[Phase]] = {
    Phase.FUTURE: frozenset({Phase.HELD, Phase.PENDING, Phase.REJECTED, Phase.CANCELLED}),
    Phase.HELD: frozenset(
        {Phase.PENDING, Phase.CHECKPOINTING, Phase.STOPPING, Phase.REJECTED, Phase.CANCELLED}
    ),  # released while it still stops
    Phase.PENDING: frozenset({Phase.STARTING, Phase.RUNNING, Phase.REJECTED}) | (_OUT - {Phase.PENDING}),
    Phase.STARTING: frozenset({Phase.RUNNING, Phase.RESIZING, Phase.CHECKPOINTING, Phase.STOPPING}) | _OUT,  # still there where it was
    Phase.RUNNING: frozenset({Phase.STARTING, Phase.RESIZING, Phase.CHECKPOINTING, Phase.STOPPING}) | _OUT,  # STARTING: elsewhere
    Phase.CHECKPOINTING: frozenset({Phase.STOPPING}) | _OUT,
    Phase.RESIZING: frozenset({Phase.RUNNING, Phase.STARTING, Phase.CHECKPOINTING, Phase.STOPPING}) | _OUT,
    Phase.STOPPING: _OUT,
    Phase.COMPLETED: frozenset(),
    Phase.FAILED: frozenset({Phase.PENDING}),  # put back into the queue
    Phase.CANCELLED: frozenset({Phase.PENDING}),
    Phase.REJECTED: frozenset(),
}


def check_books(state: State, grants: Grants, *, shares: bool = True) -> list[str]:
    """Every contradiction between the tables, in words; an empty list is what one wants.

    Shares of the time may be too many when a node has just been lost: only the next commit divides anew.
    """
    parts = (_devices, _rows, _sides, _log, _due, *((_shares,) if shares else ()))
    return [told for part in parts for told in part(state, grants)]


class PhaseWatch:
    """Looks at a run again and again: every change of phase since the last look must be one of those that are allowed."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._before = state.tables.I[Job.PHASE].copy()

    def look(self) -> list[str]:
        """Changes that must not be, in words."""
        now, ids = self._state.tables.I[Job.PHASE].copy(), self._state.tables.ids
        before = np.zeros(len(now), dtype=now.dtype)
        before[: len(self._before)] = self._before
        self._before = now
        changed = [(row, Phase(int(before[row])), Phase(int(now[row]))) for row in np.flatnonzero(now != before).tolist()]
        return [f"job '{ids[row]}' went from {old.name} to {new.name}" for row, old, new in changed if new not in ALLOWED[old]]


def _holding_rows(state: State) -> list[int]:
    I = state.tables.I
    return [row for row in state.rows.tolist() if Phase(int(I[Job.PHASE, row])) in (Phase.STARTING, Phase.RUNNING, Phase.RESIZING)]


def _devices(state: State, grants: Grants) -> Iterator[str]:
    """Each device has the holder that the holder claims, and free counts are counts of free devices."""
    t, books = state.tables, grants.holdings
    claims: dict[int, list[int]] = {}
    for row in _holding_rows(state):
        held = books.of(row)
        for device in held.devices:
            claims.setdefault(device, []).append(row)
        if len(set(held.devices)) != len(held.devices):
            yield f"row {row} holds a device twice: {held.devices}"
    for device in range(t.D.shape[1]):
        holder, owners = int(t.D[Device.HOLDER, device]), claims.get(device, [])
        up = books.is_open(device)
        if holder == SHARED:
            if sorted(books.tenants(device)) != sorted(owners) or not owners:
                yield f"device {device} is shared by {books.tenants(device)}, but {owners} claim it"
        elif holder >= 0:
            if owners != [holder]:
                yield f"device {device} belongs to {holder}, but {owners} claim it"
        elif owners or books.tenants(device) or (holder == FREE) != up:
            yield f"device {device} has holder {holder} that is {'up' if up else 'down or cordoned'}, {owners} claim it"
    for node in range(t.NI.shape[1]):
        first, count = int(t.NI[Node.FIRST, node]), int(t.NI[Node.GPUS, node])
        free = int((t.D[Device.HOLDER, first : first + count] == FREE).sum())
        if t.NI[Node.CLOSED, node] != t.D[Device.CLOSED, first : first + count].sum():
            yield f"node {node} counts {t.NI[Node.CLOSED, node]} cordoned devices"
        if t.NI[Node.FREE, node] != free:
            yield f"node {node} counts {t.NI[Node.FREE, node]} free devices, {free} are"


def _rows(state: State, grants: Grants) -> Iterator[str]:
    """Rows that hold something say how much; rows that do not hold nothing at all."""
    t, books = state.tables, grants.holdings
    holding = set(_holding_rows(state))
    for row in range(t.I.shape[1]):
        if row not in holding:
            if t.I[Job.HEAD, row] != -1 or t.I[Job.NODE, row] != -1 or row in grants.by_row or books.shares(row) or row in books.with_parts:
                yield f"row {row} is {Phase(int(t.I[Job.PHASE, row])).name} and still holds something"
            continue
        held = books.of(row)
        spread = len(books.nodes(held.devices)) if held.devices else int(held.node >= 0)
        if t.I[Job.HELD, row] != len(held.devices) or t.I[Job.SPREAD, row] != spread or t.I[Job.OPTION, row] != held.option:
            counted = f"{t.I[Job.HELD, row]} devices, {t.I[Job.SPREAD, row]} nodes, option {t.I[Job.OPTION, row]}"
            yield f"row {row} holds {held}, but counts {counted}"
        grant = grants.by_row.get(row)
        if grant is not None and (grant.devices, grant.shared, grant.side) != (held.devices, held.shared, books.side(held)):
            yield f"row {row} was granted {grant}, but holds {held}"
        if held.shared and state.tables.I[Job.HEAD, row] != -1:
            yield f"row {row} shares devices and has a chain"


def _sides(state: State, grants: Grants) -> Iterator[str]:
    """CPUs, memory and storage: what is free is what the node has less what is used."""
    t = state.tables
    used = np.zeros((HOST_RESOURCES, t.NI.shape[1]))
    for row in _holding_rows(state):
        for node, amounts in grants.holdings.demand(grants.holdings.of(row)).items():
            used[:, node] += amounts
    has = np.array([amounts_beside(node) for node in t.cluster.nodes]).T
    for kind, name in enumerate(("CPUs", "GB", "MB/s")):
        for node in np.flatnonzero(np.abs(has[kind] - used[kind] - t.NF[kind]) > 1e-6).tolist():
            yield f"node {node} has {has[kind, node]:g} {name}, {used[kind, node]:g} are used, but {t.NF[kind, node]:g} are free"
        for node in np.flatnonzero(t.NF[kind] < -1e-6).tolist():
            yield f"node {node} has {t.NF[kind, node]:g} {name} free"


def _shares(state: State, grants: Grants) -> Iterator[str]:
    """Time shares fit beside the gangs."""
    t = state.tables
    for kind in range(len(t.cluster.types)):
        if grants.fluid.used[kind] > 0 and grants.fluid.room(kind) < -1e-5:
            yield f"shares of type {kind} are worth {grants.fluid.used[kind]:g} devices, {-grants.fluid.room(kind):g} more than there are"


def _log(state: State, grants: Grants) -> Iterator[str]:
    """Whoever holds devices has an open interval that lists exactly them, in rank order."""
    t, log = state.tables, state.log
    holding = set(_holding_rows(state))
    for row in range(t.I.shape[1]):
        at = int(t.I[Job.INTERVAL, row])
        if (at >= 0) != (row in holding):
            yield f"row {row} is {Phase(int(t.I[Job.PHASE, row])).name} with interval {at}"
        elif at >= 0:
            offset, count = int(log.LI[Interval.OFFSET, at]), int(log.LI[Interval.COUNT, at])
            listed = tuple(log.LD[offset : offset + count].tolist())
            if int(log.LI[Interval.ROW, at]) != row or listed != grants.devices(row):
                yield f"row {row} holds {grants.devices(row)}, the log says {listed} of row {log.LI[Interval.ROW, at]}"


def _due(state: State, grants: Grants) -> Iterator[str]:
    """A running row is due when its speed says so."""
    F, I = state.tables.F, state.tables.I
    for row in state.rows.tolist():
        if I[Job.PHASE, row] != Phase.RUNNING:
            continue
        done, rate = float(F[Job.DONE, row]), float(F[Job.RATE, row])
        goals = [float(F[Job.WORK, row]), float(F[Job.ESTIMATE, row])]
        due = [float(F[Job.SINCE, row]) + (goal - done) / rate if rate > 0 else float("inf") for goal in goals]
        if not any(np.isclose(F[Job.DUE, row], when) or F[Job.DUE, row] == when for when in due):
            yield f"row {row} is due at {F[Job.DUE, row]:g}, its speed says {due[0]:g}"
