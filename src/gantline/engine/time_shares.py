"""Shares of the time, as an ideal mechanism would give them (Gavel, OSDI 2020): so much of a type, and no device in particular.

Capacity is counted per type: devices on nodes that are up, less those that gangs hold, less the shares given so far. Members of
a group (packed pairs) use the same devices, so that their common share counts once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from gantline.core.grant import Grant
from gantline.core.plan import Assignment
from gantline.engine.state import State


class Fluid:
    """The accounts of time shares within one commit and over the run."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.used = np.zeros(len(state.tables.cluster.types))  # devices' worth given out, per type
        self.device_seconds = 0.0  # given over the whole run, shared ones once: what a log of devices cannot show
        self.held: dict[int, float] = {}  # row -> device-seconds given over the whole run
        self._groups: dict[tuple[frozenset[int], int, int], float] = {}  # (members, number, type) -> counted already
        self._charged: dict[int, dict[int, float]] = {}  # row -> type -> devices' worth that count
        self._since: dict[int, float] = {}  # row -> its GPU time (that it progressed in) is right up to here
        self._held_since: dict[int, float] = {}  # row -> what it held is right up to here

    def begin(self, anew: Iterable[int]) -> None:
        """A new commit: the shares of these rows are given out afresh, all others stay."""
        for row in anew:
            self._charged.pop(row, None)
        self._groups.clear()
        self.used = np.zeros(len(self.state.tables.cluster.types))
        for row, grant in self.state.tables.granted.items():
            if grant.fluid and row not in self._charged and row not in anew:
                self._charged[row] = self._in_full(grant)
        for charges in self._charged.values():
            for kind, amount in charges.items():
                self.used[kind] += amount

    def _in_full(self, grant: Grant) -> dict[int, float]:
        """What a grant takes that came with the tables."""
        charges: dict[int, float] = {}
        for option, amount in grant.fluid:
            kind = int(self.state.tables.options.type[option])
            charges[kind] = charges.get(kind, 0.0) + amount
        return charges

    def room(self, kind: int) -> float:
        """Devices' worth of a type that neither a gang nor a share has."""
        nodes = self.state.tables.nodes
        return float(nodes.free[nodes.type == kind].sum() - self.used[kind])

    def overdrawn(self) -> bool:
        """Whether more was given than there is, because a node has gone."""
        return any(self.room(kind) < -1e-6 for kind in np.flatnonzero(self.used).tolist())

    def give(
        self, row: int, items: Sequence[Assignment], members: Sequence[frozenset[int]], options: Sequence[int]
    ) -> tuple[tuple[int, float], ...] | None:
        """Book all shares of a row, or none of them: per share its group and option. Returns (option, devices' worth) of each."""
        charges: dict[int, float] = {}
        counted: dict[tuple[frozenset[int], int, int], float] = {}
        given = []
        for item, group, option in zip(items, members, options):
            kind, amount = int(self.state.tables.options.type[option]), item.share * int(self.state.tables.options.gpus[option])
            given.append((option, amount))
            charge = amount
            if item.group >= 0:
                account = (group, item.group, kind)
                before = max(self._groups.get(account, 0.0), counted.get(account, 0.0))
                charge = max(0.0, amount - before)
                counted[account] = max(before, amount)
            charges[kind] = charges.get(kind, 0.0) + charge
        if any(amount > self.room(kind) + 1e-6 for kind, amount in charges.items()):
            return None
        self._groups |= counted
        self._charge(row, charges)
        return tuple(given)

    def _charge(self, row: int, charges: dict[int, float]) -> None:
        self._charged[row] = charges
        for kind, amount in charges.items():
            self.used[kind] += amount

    def start(self, row: int) -> None:
        """The row holds its shares from now on, and its GPU time counts from its first progress on."""
        self._since[row] = float(self.state.tables.jobs.since[row])
        self._held_since.setdefault(row, self.state.now)

    def settle(self, row: int) -> None:
        """Bring the accounts of a row up to now, or to its end: the kernels count devices held, and it holds none."""
        t, now = self.state.tables, self.state.now
        end = now if math.isnan(t.jobs.finish[row]) else float(t.jobs.finish[row])
        since, held_since = (known.setdefault(row, float(t.jobs.since[row])) for known in (self._since, self._held_since))
        worth = sum(amount for _, amount in t.granted[row].fluid)
        if end > since:
            t.jobs.gputime[row] += (end - since) * worth
            self._since[row] = end
        if end > held_since:
            self.held[row] = self.held.get(row, 0.0) + (end - held_since) * worth
            self.device_seconds += (end - held_since) * sum(self._charged.get(row, {}).values())
            self._held_since[row] = end

    def close(self, row: int) -> None:
        """The row has no shares any more."""
        self.settle(row)
        self._since.pop(row, None)
        self._held_since.pop(row, None)
        for kind, amount in self._charged.pop(row, {}).items():
            self.used[kind] -= amount
