"""Windows between a policy and the cluster: they bind whatever the policy answers, because the engine applies them.

From the moment at which a window is reserved its devices are cordoned (`settle`), so that no plan can use them; `fill` then gives what is
idle of them to jobs that may have it: those that will be over when the window begins, and those for which it was reserved. What else still
runs there when the window begins is stopped and saved. Jobs that run on these devices alone are locked while a policy decides (`lock`):
it can neither move nor resize them. Runs without windows never come here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.cluster import Cluster
from gantline.core.columns import DOWN, FREE, SHARED, Device, Job, Node, Option
from gantline.core.errors import NotFoundError, RefusedError, near
from gantline.core.inputs import NodeEvent, Reserve, Unreserve
from gantline.core.phases import PENDING, RESIZING, RUNNING, STARTING
from gantline.core.plan import Assignments
from gantline.core.reasons import Reason
from gantline.core.windows import AdvanceWindow
from gantline.engine.commit.commit import commit_assignments
from gantline.engine.gates.quotas import QuotaGate
from gantline.engine.grants import Grants
from gantline.engine.host_resources import LACKING
from gantline.engine.state import State

_NO_ROOM = (
    int(Reason.NONE),
    int(Reason.ARRIVED),
    int(Reason.RESOURCES),
    int(Reason.PRIORITY),
    int(Reason.FRAGMENTED),
    int(Reason.DEFERRED),
    *map(int, LACKING),
)


class WindowGate:
    """Applies the windows of one run."""

    def __init__(self, state: State, grants: Grants, quotas: QuotaGate) -> None:
        self.state, self.grants, self.quotas = state, grants, quotas
        self._locked: list[int] = []  # rows, while a decision is made

    # --- what is reserved -----------------------------------------------------------------------------------------------
    def check(self, value: Reserve | Unreserve) -> AdvanceWindow:
        """The window that is meant, with the places that it would have; raises where there is none."""
        known = self.state.tables.windows
        if isinstance(value, Reserve):
            return resolved(self.state, value.window, value.time, self.over_at)
        if value.name not in known:
            raise NotFoundError(f"no window '{value.name}'", where="reserve", fix=near(value.name, known) if known else "none is reserved")
        return known[value.name]

    def apply(self, value: Reserve | Unreserve) -> None:
        """There is one more from now on, or one less."""
        window, known = self.check(value), self.state.tables.windows
        if isinstance(value, Reserve):
            known[window.name] = window
        else:
            del known[window.name]
        self.settle()

    def settle(self) -> bool:
        """Bring the devices to what the windows say by now; whether anything has changed."""
        t, now = self.state.tables, self.state.now
        ended = [name for name, window in t.windows.items() if window.end <= now]
        for name in ended:
            del t.windows[name]
        wanted = {device for window in t.windows.values() for device in devices_of(t.cluster, window.places)}
        opened = t.kept_free - wanted
        closed = {device for device in wanted if t.D[Device.CLOSED, device] == 0}
        for device in opened | closed:
            t.cordon(device, closed=device in closed)
        t.kept_free = (t.kept_free - opened) | closed
        if not t.windows:
            self.unlock()  # the last one may end while a decision is made
        return bool(self._clear()) or bool(ended or opened or closed)

    def next_change(self, since: float) -> float:
        """The first instant after `since` at which a window begins or ends."""
        edges = (edge for window in self.state.tables.windows.values() for edge in (window.start, window.end) if edge > since)
        return min(edges, default=math.inf)

    def _clear(self) -> int:
        """Stop what runs in a window that has begun and is not for it; how many."""
        t, I = self.state.tables, self.state.tables.I
        begun = [(window, devices_of(t.cluster, window.places)) for window in t.windows.values() if window.start <= self.state.now]
        stopped = 0
        for row in self.state.running_rows.tolist() if begun else ():
            if int(I[Job.PHASE, row]) not in (STARTING, RUNNING, RESIZING):
                continue
            held = self.grants.devices(row)
            if any(not self._is_for(row, window) and not devices.isdisjoint(held) for window, devices in begun):
                self.grants.stop(row, Reason.WINDOW)
                I[Job.PREEMPTIONS, row] -= 1  # nothing that ranks higher has come
                stopped += 1
        if stopped:
            self.grants.refresh()
            self.state.rebuild()
        return stopped

    # --- which rows may use the devices ----------------------------------------------------------------------------------
    def _is_for(self, row: int, window: AdvanceWindow) -> bool:
        t = self.state.tables
        return window.admits(t.users[int(t.I[Job.USER, row])], t.queues[int(t.I[Job.QUEUE, row])])

    def may_use(self, row: int, window: AdvanceWindow) -> bool:
        """Whether a row may start on the devices now: the window is for it, or it will be over before it begins."""
        return self._is_for(row, window) or self.over_at(row) <= window.start

    def over_at(self, row: int) -> float:
        """When a row will be over if it starts, or goes on, now; infinity: unknown."""
        state, t = self.state, self.state.tables
        if row in t.unestimated:
            return math.inf
        first, count = int(t.I[Job.OPTION_FIRST, row]), int(t.I[Job.OPTION_COUNT, row])
        rates = t.options.F[Option.RATE, first : first + count]
        running = int(t.I[Job.PHASE, row]) == RUNNING and t.F[Job.RATE, row] > 0.0
        rate = float(t.F[Job.RATE, row]) if running else float(rates[rates > 0.0].min(initial=math.inf))
        if math.isinf(rate):
            return math.inf
        done = float(t.F[Job.DONE, row]) + (rate * max(0.0, state.now - float(t.F[Job.SINCE, row])) if running else 0.0)
        costs, gpus = state.costs, int(t.I[Job.GPUS, row])
        begins = 0.0 if running else costs.scaled(costs.resume if t.F[Job.SERVICE, row] > 0.0 else costs.start, gpus)
        return state.now + begins + max(0.0, float(t.F[Job.ESTIMATE, row]) - done) / rate

    def lock(self) -> None:
        """What runs on kept devices, and on no others, stays as it is through the decision that follows."""
        t = self.state.tables
        held = {row: self.grants.devices(row) for row in self.state.running_rows.tolist() if t.I[Job.LOCKED, row] == 0}
        self._locked = [row for row, devices in held.items() if devices and t.kept_free.issuperset(devices)]
        t.I[Job.LOCKED, self._locked] = 1

    def unlock(self) -> None:
        """The decision has been made."""
        if self._locked:
            self.state.tables.I[Job.LOCKED, self._locked] = 0
            self._locked = []

    # --- after an answer ------------------------------------------------------------------------------------------------
    def fill(self, order: Ints, strict: bool) -> Iterator[None]:
        """Start rows that wait on idle devices of windows, in this order; yields after each, so that it can be counted.

        Where the order is `strict`, none passes a row that may not use them, but for those that the window is for.
        """
        t, I, rows = self.state.tables, self.state.tables.I, self.state.rows.copy()
        reasons = I[Job.REASON][rows].copy()
        for window in list(t.windows.values()):
            kept = [device for device in sorted(devices_of(t.cluster, window.places)) if device in t.kept_free]
            if not any(self._is_idle(device) for device in kept):
                continue
            able = self._able(window, kept, order, strict)
            free = np.flatnonzero(t.D[Device.HOLDER] == FREE).tolist()
            for beside in ([], free):  # its own devices first; with others only where these do not suffice
                for row, opened in able:
                    if int(I[Job.PHASE, row]) == PENDING:
                        with self._cordoned(set(free) - set(beside), opened):
                            yield from self._start(row)
        waits = I[Job.PHASE][rows] == PENDING
        I[Job.REASON, rows[waits]] = reasons[waits]

    def _able(self, window: AdvanceWindow, kept: Sequence[int], order: Ints, strict: bool) -> list[tuple[int, list[int]]]:
        """Rows that wait and may start in a window now, each with those of its devices that no other window denies it."""
        t = self.state.tables
        found, blocked = [], False
        others = [(other, devices_of(t.cluster, other.places).intersection(kept)) for other in t.windows.values() if other is not window]
        for row in order[t.I[Job.PHASE][order] == PENDING].tolist():
            denied = set().union(*(devices for other, devices in others if devices and not self.may_use(row, other)))
            opened = [device for device in kept if device not in denied]
            if opened and (self._is_for(row, window) or (not blocked and self.may_use(row, window))):
                found.append((row, opened))
            else:
                blocked = strict
        return found

    def _is_idle(self, device: int) -> bool:
        t = self.state.tables
        return bool(t.D[Device.HOLDER, device] == DOWN and t.NI[Node.UP, t.D[Device.NODE, device]] == 1)

    @contextmanager
    def _cordoned(self, closed: set[int], opened: Sequence[int]) -> Iterator[None]:
        """For a moment no row may have these devices, and every row may have those."""
        t = self.state.tables
        for device in (*closed, *opened):
            t.cordon(device, closed=device in closed)
        try:
            yield
        finally:
            for device in (*closed, *opened):
                t.cordon(device, closed=device not in closed)

    def _start(self, row: int) -> Iterator[None]:
        """Start a row with the first of its options that fits."""
        state, t, rows = self.state, self.state.tables, self.state.rows
        free = np.bincount(t.NI[Node.TYPE], weights=t.NI[Node.FREE], minlength=len(t.cluster.types))
        first, place = int(t.I[Job.OPTION_FIRST, row]), int(np.flatnonzero(rows == row)[0])
        for option in range(int(t.I[Job.OPTION_COUNT, row])):
            size, kind = int(t.options.I[Option.GPUS, first + option]), int(t.options.I[Option.TYPE, first + option])
            if not 0 < size <= free[kind] or not self.quotas.may_grow(row, size):
                continue
            state.log.reserve(2 * t.D.shape[1] + len(rows) + 8, 4 * t.D.shape[1] + 8)
            table = Assignments(np.array([place], dtype=np.int64), option=np.array([option], dtype=np.int64))

            commit_assignments(self.grants, rows.copy(), table, keeps=state.running_rows.copy())
            yield
            if int(t.I[Job.PHASE, row]) != PENDING:
                return

    def write_reasons(self, order: Ints) -> None:
        """Write the reason of rows that would have a place were it not for a window."""
        t, I = self.state.tables, self.state.tables.I
        kept = [device for device in t.kept_free if t.D[Device.HOLDER, device] == DOWN]
        kinds = t.NI[Node.TYPE][t.D[Device.NODE, kept]] if kept else np.zeros(0, dtype=np.int64)
        idle = np.bincount(kinds, minlength=len(t.cluster.types))
        left = idle + np.bincount(t.NI[Node.TYPE], weights=t.NI[Node.FREE], minlength=len(idle)).astype(np.int64)
        for row in order[I[Job.PHASE][order] == PENDING].tolist():
            if not (idle > 0).any():
                return
            kind = int(t.options.I[Option.TYPE, I[Job.OPTION_FIRST, row]])
            size = int(I[Job.SMALLEST, row])
            if idle[kind] > 0 and size <= left[kind] and int(I[Job.REASON, row]) in _NO_ROOM:
                I[Job.REASON, row] = int(Reason.WINDOW)
                left[kind] -= size
                idle[kind] = min(idle[kind], left[kind])

    def words(self, row: int, moment: Callable[[float], str] | None = None) -> str:
        """Which windows keep a row waiting; `moment` formats an instant; without it, instants are given relative to now."""
        now = self.state.now

        def when(one: AdvanceWindow) -> str:
            return one.when(now) if moment is None else f"from {moment(one.start)} to {moment(one.end)}"

        windows = [window for window in self.state.tables.windows.values() if not self.may_use(row, window)]
        if not windows:
            return "devices that it could have are reserved"
        text = "; ".join(f"{', '.join(one.places)} reserved as '{one.name}' {when(one)}" for one in windows)
        why = (
            "its length is not known, so that it might not be over by then"
            if row in self.state.tables.unestimated
            else "it would not be over by then"
        )
        return f"{text}: {why if any(one.start > now for one in windows) else 'it may not use them'}"


# Which devices a window gets: those that it names, or those that are most likely to be free when it begins.


def devices_of(cluster: Cluster, places: Iterable[str]) -> set[int]:
    """Numbers of the devices at these places: nodes, or single devices such as node0:3."""
    names, found = {node.name: number for number, node in enumerate(cluster.nodes)}, set[int]()
    for place in places:
        device = NodeEvent(0.0, place, "drain").device(cluster)
        if device is not None:
            found.add(device)
        elif place in names:
            first = int(cluster.first_device[names[place]])
            found.update(range(first, first + cluster.nodes[names[place]].gpus))
        else:
            raise NotFoundError(f"no node '{place}'", where="reserve", fix=near(place, names))
    return found


def resolved(state: State, window: AdvanceWindow, now: float, over_at: Callable[[int], float]) -> AdvanceWindow:
    """The window with a name and with the places that it gets if it is reserved now; refused where there are none."""
    t, known = state.tables, state.tables.windows
    name = window.name or next(name for name in (f"window-{number}" for number in range(1, len(known) + 2)) if name not in known)
    if name in known:
        raise RefusedError(f"there is a window '{name}' already", where="reserve", fix="cancel it first, or use another name")
    if window.end <= now:
        raise RefusedError(f"window '{name}' would be over already", where="reserve", fix="let it begin later, or last longer")
    window = replace(window, name=name, start=max(window.start, now))
    taken = {device: one.name for one in known.values() if one.overlaps(window) for device in devices_of(t.cluster, one.places)}
    if window.places:
        twice = next((taken[device] for device in sorted(devices_of(t.cluster, window.places)) if device in taken), None)
        if twice is not None:
            raise RefusedError(f"window '{twice}' has some of these devices then", where="reserve", fix="choose others, or another time")
        return window
    units = _nodes(t.cluster) if window.nodes else _single_devices(t.cluster)
    free = {place: devices for place, devices in units.items() if taken.keys().isdisjoint(devices) and _open(state, devices)}
    wanted, what = (window.nodes, "nodes") if window.nodes else (window.gpus, "devices")
    if wanted > len(free):
        raise RefusedError(
            f"{wanted} {what} are asked for, and {len(free)} are up and not reserved then", where="reserve", fix="ask for less"
        )
    places = list(free)
    in_the_way = {place: _in_the_way(state, free[place], window.start, over_at) for place in places}
    best = sorted(places, key=lambda place: (*in_the_way[place], -places.index(place)))[:wanted]
    return replace(window, nodes=0, gpus=0, places=tuple(sorted(best, key=places.index)))


def _nodes(cluster: Cluster) -> dict[str, set[int]]:
    return {node.name: devices_of(cluster, [node.name]) for node in cluster.nodes if node.gpus}


def _single_devices(cluster: Cluster) -> dict[str, set[int]]:
    return {
        f"{node.name}:{place}": {int(first) + place}
        for node, first in zip(cluster.nodes, cluster.first_device)
        for place in range(node.gpus)
    }


def _open(state: State, devices: set[int]) -> bool:
    """Whether any row may have all of them, but for windows at other times."""
    t = state.tables
    return all(
        t.NI[Node.UP, t.D[Device.NODE, device]] == 1 and (t.D[Device.CLOSED, device] == 0 or device in t.kept_free) for device in devices
    )


def _in_the_way(state: State, devices: set[int], start: float, over_at: Callable[[int], float]) -> tuple[int, int]:
    """Devices that gangs will not have given up by then, and devices that are held now."""
    holders = [int(state.tables.D[Device.HOLDER, device]) for device in devices]
    held = [row for row in holders if row >= 0 or row == SHARED]
    return sum(row == SHARED or over_at(row) > start for row in held), len(held)
