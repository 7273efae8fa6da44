"""Columns for commits of gangs that share, kept from one commit to the next: a kernel is told once of arrays that stay the same."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Ints
from gantline.engine.group_turns import DEVICE_LINES, ENDED_LINES, GROUP_LINES, ReadTurns
from gantline.engine.shared_ask import Ask, CommitMoment, SharedTurns, Work
from gantline.engine.shared_gang import COMPANY_LINES, MayShare
from gantline.engine.state import State


class SharedRoom:
    """Room for as many turns, groups, devices and rows as any commit has needed so far."""

    def __init__(self) -> None:
        none = _room()
        self._turns = SharedTurns(_room(len(Ask)), _room(len(Work)), none, none, np.zeros(1, dtype=np.int64))
        self._company = MayShare(_room(COMPANY_LINES), none, none)
        self._read = ReadTurns(_room(GROUP_LINES), _room(ENDED_LINES), np.zeros(ENDED_LINES, dtype=np.int64), _room(DEVICE_LINES))
        self._moment: CommitMoment | None = None

    def turns(self, count: int, groups: int, named: Ints) -> SharedTurns:
        """Columns for so many turns, all zero, of so many groups that have no devices yet; `named` are devices that rows name."""
        room = self._turns
        if room.ask.shape[1] < count:
            room = room._replace(ask=_room(len(Ask), count), work=_room(len(Work), count))
        if len(room.pool) < groups:
            room = room._replace(pool=_room(0, groups))
        if len(room.named) < len(named):
            room = room._replace(named=_room(0, len(named)))
        self._turns = room
        room.ask[:, :count] = room.work[:, :count] = 0
        room.pool[:groups], room.named[: len(named)], room.size[0] = -1, named, count
        return room

    def company(self, rows: int, devices: int) -> MayShare:
        """Columns over all rows, zero between commits, and lists of so many devices."""
        room = self._company
        if room.row.shape[1] < rows:
            room = room._replace(row=_room(COMPANY_LINES, rows))
        if len(room.had) < devices:
            room = room._replace(had=_room(0, devices), gets=_room(0, devices))
        self._company = room
        return room

    def read_turns(self, groups: int, rows: int, devices: int) -> ReadTurns:
        """Room for the groups of a plan, lists of so many rows, and all devices."""
        room = self._read
        if room.group.shape[1] < groups:
            room = room._replace(group=_room(GROUP_LINES, groups))
        if room.ended.shape[1] < rows:
            room = room._replace(ended=_room(ENDED_LINES, rows))
        if room.device.shape[1] < devices:
            room = room._replace(device=_room(DEVICE_LINES, devices))
        self._read = room
        return room

    def moment(self, state: State) -> CommitMoment:
        """This instant."""
        known, log = self._moment, state.log.columns
        if known is None or known.rules is not state.rules or known.log is not log or known.scratch is not state.scratch:
            known = self._moment = CommitMoment(np.zeros(2), state.rules, log, state.scratch, state.out)
        known.times[:] = state.now, state.costs.of_switch
        return known


def _room(lines: int = 0, count: int = 0) -> Ints:
    """A column, or so many, twice as long as needed, so that they seldom grow."""
    return np.zeros((lines, 2 * count) if lines else 2 * count, dtype=np.int64)
