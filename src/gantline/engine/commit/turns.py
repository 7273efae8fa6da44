"""The changes of a commit as columns: what each row wants, in the order of the plan, and what is kept of it meanwhile. Compiled."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import kernel
from gantline.core.phases import PENDING
from gantline.core.plan import Mode
from gantline.core.tables import Matrices
from gantline.engine.commit.granted import LINES, MODE, TOGETHER, GrantedByRow
from gantline.engine.commit.request import GROUPS, PlanRequest
from gantline.engine.log import LogColumns
from gantline.engine.settings import EngineRules
from gantline.engine.shared_devices import (
    ALONE,
    BEFORE,
    CHANGES,
    COMPANY_LINES,
    GANG_FIRST,
    NOW,
    OPEN,
    SEAT_BESIDE,
    SEAT_DEVICE,
    SEAT_NEXT,
    SEAT_ROW,
    STRANGER,
    Partners,
    SharedDevices,
)
from gantline.engine.state import State

#: lines of `GangTurns.ask`: the row, its place in the plan and its option (below zero: impossible); what it wants; its group; the
#: devices that it names, in `named`; where its list of devices is in `gets`; whether its turn in its rotation comes again; whether its
#: group starts whole; the first member of its group and the next after it; and, on its own, the turns by size, the widest gang first
(
    A_ROW,
    A_PLACE,
    A_OPTION,
    A_WANTS,
    A_GROUP,
    A_FIRST,
    A_COUNT,
    A_GETS,
    A_RETURNS,
    A_WHOLE,
    A_LEAD,
    A_MATE,
    A_WIDEST,
    ASK_LINES,
) = range(14)
#: lines of `GangTurns.work`: what it does; what it held (option, number, place in `had`, shared); how many devices it keeps
#: meanwhile; what it pays for; how it ended
(W_CHANGE, W_OPTION, W_HELD, W_HAD, W_SHARED, W_KEPT, W_ACT, W_END, WORK_LINES) = range(9)

SOUGHT: Final = -2  # in place of an option: it follows from named devices
#: what is wanted
JOINS: Final = 0  # devices of its group
SHARES_NAMED: Final = 1  # named devices, shared
OWNS_NAMED: Final = 2  # named devices of its own
OWN_PLACE: Final = 3  # a place of its own, after devices that it shares, or with its group
PLACED: Final = 4  # a place of its own, by the rule; in place, if that can be
#: what a gang does
WAITS: Final = 0  # it holds nothing yet
STAYS: Final = 1  # keeps its devices
KEEPS: Final = 2  # keeps some of its devices in place
LEAVES: Final = 3  # gives up all of them
BOUND: Final = 4  # would have to leave within its minimum run, or asks for what cannot be
#: what it pays for, as in performance.model.Act; -1: nothing
NOTHING, START, RESUME, RESIZE, MOVE, SWITCH = -1, 0, 1, 2, 3, 4
#: how a turn ended
UNTOUCHED: Final = 0
GRANTED: Final = 1
IN_PART: Final = 2  # all but other CPUs or the like
RESTORED: Final = 3
HALTED: Final = 4
WAITED: Final = 5  # with its group

#: lines of `TurnRoom.group`: size and type that its members want, its first turn, its last so far
G_NEED, G_TYPE, G_LEAD, G_LAST, GROUP_LINES = range(5)
#: lines of `TurnRoom.ended`: turns whose grants are entered, rows whose grants are dropped, rows of which the speed may have changed
E_ENTER, E_DROP, E_TOUCHED, ENDED_LINES = range(4)
#: lines of `TurnRoom.device`: the group that names it, counted from one; the turn
B_GROUP, B_TURN, DEVICE_LINES = range(3)

_SIZE: Final = LINES["size"]
_EXCLUSIVE: Final = int(Mode.EXCLUSIVE)
_SPACE: Final = int(Mode.SPACE)
_INTERLEAVE: Final = int(Mode.INTERLEAVE)


class GangTurns(NamedTuple):
    """The gangs of a commit in the order of the plan, and what is kept of each meanwhile."""

    ask: Ints
    work: Ints
    named: Ints
    pool: Ints  # per group the turn whose devices it shares (-1: none yet)
    size: Ints  # how many turns there are; the columns may be longer


class TurnRoom(NamedTuple):
    """TurnRoom beside that of the turns."""

    group: Ints  # (G_NEED .. G_LAST, group)
    ended: Ints  # (E_ENTER .. E_TOUCHED, number)
    sizes: Ints  # of each of these lists
    device: Ints  # (B_GROUP and B_TURN, device): which named it first; zero between uses


class CommitMoment(NamedTuple):
    """When a commit takes place, what holds for every gang in it, and where it is written down."""

    times: Floats  # now, and the seconds that a turn costs
    rules: EngineRules
    log: LogColumns
    scratch: Ints
    out: Ints  # started, stopped


class TurnColumns:
    """TurnRoom for as many turns, groups, devices and rows as any commit has needed so far: a kernel is told once of arrays that stay."""

    def __init__(self) -> None:
        none = _room()
        self._turns = GangTurns(_room(ASK_LINES), _room(WORK_LINES), none, none, np.zeros(1, dtype=np.int64))
        self._company = Partners(_room(COMPANY_LINES), none, none)
        self._room = TurnRoom(_room(GROUP_LINES), _room(ENDED_LINES), np.zeros(ENDED_LINES, dtype=np.int64), _room(DEVICE_LINES))
        self._moment: CommitMoment | None = None

    def turns(self, count: int, groups: int, named: Ints) -> GangTurns:
        """Columns for so many turns, all zero, of so many groups that have no devices yet; `named` are devices that rows name."""
        room = self._turns
        if room.ask.shape[1] < count:
            room = room._replace(ask=_room(ASK_LINES, count), work=_room(WORK_LINES, count))
        if len(room.pool) < groups:
            room = room._replace(pool=_room(0, groups))
        if len(room.named) < len(named):
            room = room._replace(named=_room(0, len(named)))
        self._turns = room
        room.ask[:, :count] = room.work[:, :count] = 0
        room.pool[:groups], room.named[: len(named)], room.size[0] = -1, named, count
        return room

    def company(self, rows: int, devices: int) -> Partners:
        """Columns over all rows, zero between commits, and lists of so many devices."""
        room = self._company
        if room.row.shape[1] < rows:
            room = room._replace(row=_room(COMPANY_LINES, rows))
        if len(room.had) < devices:
            room = room._replace(had=_room(0, devices), gets=_room(0, devices))
        self._company = room
        return room

    def room(self, groups: int, rows: int, devices: int) -> TurnRoom:
        """TurnRoom for the groups of a plan, lists of so many rows, and all devices."""
        room = self._room
        if room.group.shape[1] < groups:
            room = room._replace(group=_room(GROUP_LINES, groups))
        if room.ended.shape[1] < rows:
            room = room._replace(ended=_room(ENDED_LINES, rows))
        if room.device.shape[1] < devices:
            room = room._replace(device=_room(DEVICE_LINES, devices))
        self._room = room
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


@kernel
def find_first_options(t: Matrices, turns: GangTurns) -> None:
    """Where an option is still sought for named devices: the first of the row, if that is for so many devices of this type."""
    ask = turns.ask
    for n in range(turns.size[0]):
        option, first, count = t.I[c.OPTION_FIRST, ask[A_ROW, n]], ask[A_FIRST, n], ask[A_COUNT, n]
        if ask[A_OPTION, n] != SOUGHT or t.OI[c.O_GPUS, option] != count or not _are_devices(t, turns, first, count):
            continue
        one_node = t.OI[c.O_NODES, option] == 1 and t.I[c.CONSOLIDATE, ask[A_ROW, n]] == c.ASKED_TOGETHER
        if not one_node and t.OI[c.O_TYPE, option] == _type_of(t, turns.named[first]):
            ask[A_OPTION, n] = option


@kernel
def _type_of(t: Matrices, device: int) -> int:
    return int(t.NI[c.N_TYPE, t.D[c.D_NODE, device]])


@kernel
def _are_devices(t: Matrices, turns: GangTurns, first: int, count: int) -> bool:
    """Whether these are different devices of one type."""
    for k in range(first, first + count):
        device = turns.named[k]
        if device < 0 or device >= t.D.shape[1] or _type_of(t, device) != _type_of(t, turns.named[first]):
            return False
        for other in range(first, k):
            if turns.named[other] == device:
                return False
    return True


@kernel
def read_turns(
    t: Matrices, seats: SharedDevices, granted: GrantedByRow, special: Ints, asked: PlanRequest, turns: GangTurns, room: TurnRoom
) -> int:
    """Write down what each row wants; how many devices the turns list. Below zero: some want what is given one by one; nothing is touched.

    Rows, places, options and named devices of the turns are there already.
    """
    for n in range(special.shape[0]):
        if seats.gang[GANG_FIRST, special[n]] >= 0 and granted.noted[special[n]] != t.I[c.EPOCH, special[n]]:
            return -1
    groups, total, ask = asked.found[GROUPS], 0, turns.ask
    room.group[:, : groups + 1] = -1
    for n in range(turns.size[0]):
        k, row, option = ask[A_PLACE, n], ask[A_ROW, n], ask[A_OPTION, n]
        if not _read_turn(t, seats, asked, turns, n):
            return -1
        code = asked.groups.code[k] if asked.groups.code[k] >= 0 else groups
        need = t.OI[c.O_GPUS, option] if option >= 0 else 0
        if ask[A_WANTS, n] == JOINS and option >= 0:
            kind = t.OI[c.O_TYPE, option]
            if room.group[G_NEED, code] < 0:
                room.group[G_NEED, code], room.group[G_TYPE, code] = need, kind
            elif room.group[G_NEED, code] != need or room.group[G_TYPE, code] != kind:
                return -1  # members of different sizes
        ask[A_GROUP, n], ask[A_GETS, n] = code, total
        total += max(need, t.I[c.HELD, row], ask[A_COUNT, n], 1)
        if ask[A_WHOLE, n] == 1:
            ask[A_MATE, n] = -1
            if room.group[G_LEAD, code] < 0:
                room.group[G_LEAD, code] = n
            else:
                ask[A_MATE, room.group[G_LAST, code]] = n
            ask[A_LEAD, n], room.group[G_LAST, code] = room.group[G_LEAD, code], n
    _list_widest_first(t, turns)
    return total if _tell_links_from_devices(t, asked, turns, room) else -1


@kernel
def _read_turn(t: Matrices, seats: SharedDevices, asked: PlanRequest, turns: GangTurns, n: int) -> bool:
    """What one row wants; False: it is given one by one."""
    ask = turns.ask
    k, row, option = ask[A_PLACE, n], ask[A_ROW, n], ask[A_OPTION, n]
    holds, mode, named = t.I[c.PHASE, row] != PENDING, int(asked.number[MODE, k]), asked.named[k]
    grouped = asked.group[k] >= 0 and mode != _EXCLUSIVE
    shares = (grouped and not _is_linked(asked, k)) or (named and mode == _SPACE and asked.group[k] < 0)
    ask[A_WHOLE, n] = int(asked.number[TOGETHER, k] == 1.0 and asked.group[k] >= 0)
    if named:
        ask[A_WANTS, n] = SHARES_NAMED if shares else OWNS_NAMED
    elif shares:
        ask[A_WANTS, n] = JOINS
    elif ask[A_WHOLE, n] == 1 or ask[A_RETURNS, n] == 1 or seats.gang[GANG_FIRST, row] >= 0:
        ask[A_WANTS, n] = OWN_PLACE
    else:
        ask[A_WANTS, n] = PLACED
        return True
    if option >= 0 and (t.OI[c.O_GPUS, option] == 0 or (ask[A_WANTS, n] == JOINS and asked.number[_SIZE, k] > 0.0)):
        return False
    if holds and (t.I[c.HELD, row] == 0 or t.I[c.NODE, row] >= 0 or not _holds_open_devices(t, seats, row)):
        return False
    if holds and option >= 0 and ask[A_WANTS, n] == OWN_PLACE and t.OI[c.O_GPUS, option] != t.I[c.HELD, row]:
        return False
    for place in range(ask[A_FIRST, n], ask[A_FIRST, n] + ask[A_COUNT, n]):
        if option >= 0 and not _is_open(t, turns.named[place]):
            return False
    return True


@kernel
def _tell_links_from_devices(t: Matrices, asked: PlanRequest, turns: GangTurns, room: TurnRoom) -> bool:
    """Members of an interleaved group that name their devices share those that another of them names, and else only links.

    False: a device is named by two such groups, which is done one by one.
    """
    ask, one_group = turns.ask, True
    for n in range(turns.size[0]):
        for place in range(ask[A_FIRST, n], ask[A_FIRST, n] + ask[A_COUNT, n]):
            device = turns.named[place]
            if not (_is_linked(asked, ask[A_PLACE, n]) and 0 <= device < t.D.shape[1]):
                continue
            group, first = room.device[B_GROUP, device], room.device[B_TURN, device]
            if group == 0:
                room.device[B_GROUP, device], room.device[B_TURN, device] = ask[A_GROUP, n] + 1, n
            elif group == ask[A_GROUP, n] + 1:
                ask[A_WANTS, n] = ask[A_WANTS, first] = SHARES_NAMED
            else:
                one_group = False
    for place in range(turns.named.shape[0]):
        if 0 <= turns.named[place] < t.D.shape[1]:
            room.device[B_GROUP, turns.named[place]] = 0
    return one_group


@kernel
def _is_linked(asked: PlanRequest, k: int) -> bool:
    """Whether a gang is in an interleaved group and names its devices."""
    return bool(asked.named[k] and asked.group[k] >= 0 and int(asked.number[MODE, k]) == _INTERLEAVE)


@kernel
def _is_open(t: Matrices, device: int) -> bool:
    """Whether a new gang may have the device: its node is up, and neither of them is cordoned."""
    return bool(t.NI[c.N_UP, t.D[c.D_NODE, device]] == 1 and t.D[c.D_CLOSED, device] == 0)


@kernel
def _holds_open_devices(t: Matrices, seats: SharedDevices, row: int) -> bool:
    """Whether other gangs may join it, and it may come back, wherever it is now."""
    seat, device = seats.gang[GANG_FIRST, row], t.I[c.HEAD, row]
    while seat >= 0:
        if not _is_open(t, seats.seat[SEAT_DEVICE, seat]):
            return False
        seat = seats.seat[SEAT_NEXT, seat]
    while device >= 0:
        if not _is_open(t, device):
            return False
        device = t.D[c.D_NEXT, device]
    return True


@kernel
def _list_widest_first(t: Matrices, turns: GangTurns) -> None:
    ask, listed, below = turns.ask, 0, 1 << 60
    while listed < turns.size[0]:
        widest = -1
        for n in range(turns.size[0]):
            need = t.OI[c.O_GPUS, ask[A_OPTION, n]] if ask[A_OPTION, n] >= 0 else 0
            widest = max(widest, need if need < below else -1)
        for n in range(turns.size[0]):
            need = t.OI[c.O_GPUS, ask[A_OPTION, n]] if ask[A_OPTION, n] >= 0 else 0
            if need == widest:
                ask[A_WIDEST, listed] = n
                listed += 1
        below = widest


@kernel
def meet(
    t: Matrices, seats: SharedDevices, granted: GrantedByRow, special: Ints, here: Bools, asked: PlanRequest, count: int, turns: GangTurns,
    company: Partners,
) -> None:  # fmt: skip
    """Which gangs may be together: by this plan, and by what is granted. `special` are the rows with grants, marked in `here`."""
    line, ask = company.row, turns.ask
    for n in range(special.shape[0]):
        row = special[n]
        team = granted.team[row]
        line[NOW, row], line[BEFORE, row] = STRANGER, team if team > 0 else ALONE
        if team == 0 and seats.gang[GANG_FIRST, row] >= 0:
            line[NOW, row] = line[BEFORE, row] = OPEN
    for k in range(count):
        row, mode = asked.rows[k], int(asked.number[MODE, k])
        if here[row]:
            openly = asked.named[k] and mode == _SPACE and asked.group[k] < 0
            line[NOW, row] = asked.group[k] if asked.group[k] >= 0 and mode != _EXCLUSIVE else OPEN if openly else ALONE
    for n in range(turns.size[0]):
        k, row = ask[A_PLACE, n], ask[A_ROW, n]
        shares = ask[A_WANTS, n] <= SHARES_NAMED
        line[NOW, row] = ALONE if not shares else asked.group[k] if asked.group[k] >= 0 else OPEN
        line[CHANGES, row] = int(t.I[c.PHASE, row] != PENDING and ask[A_OPTION, n] >= 0)


@kernel
def memory_suffices(t: Matrices, seats: SharedDevices, turns: GangTurns, need: Floats, has: Floats, load: Floats) -> bool:
    """Whether no gang can lack device memory, whatever becomes of the turns: all that are on a device, or are to be, are added up.

    `need` is by row, NaN where unknown; `has` by type, 0 where unknown; `load` is room for all devices and groups, zero.
    """
    ask, fits, groups = turns.ask, True, t.D.shape[1]
    for n in range(turns.size[0]):
        row, option = ask[A_ROW, n], ask[A_OPTION, n]
        if option < 0:
            continue
        limit = has[t.OI[c.O_TYPE, option]]
        if ask[A_WANTS, n] == JOINS:
            at = groups + ask[A_GROUP, n]
            load[at] += _amount(need, row)
            fits = fits and not (0.0 < limit < load[at])
        elif ask[A_WANTS, n] >= OWN_PLACE:
            fits = fits and not (0.0 < limit < _amount(need, row))
        for k in range(ask[A_FIRST, n], ask[A_FIRST, n] + ask[A_COUNT, n]):
            device = turns.named[k]
            if load[device] == 0.0:
                load[device] = _taken(seats, device, need)
            load[device] += 0.0 if _is_on(seats, device, row) else _amount(need, row)
            fits = fits and not (0.0 < limit < load[device])
    return fits


@kernel
def _amount(need: Floats, row: int) -> float:
    return float(need[row]) if need[row] > 0.0 else 0.0


@kernel
def _taken(seats: SharedDevices, device: int, need: Floats) -> float:
    seat, total = seats.device[device], 0.0
    while seat >= 0:
        total += _amount(need, seats.seat[SEAT_ROW, seat])
        seat = seats.seat[SEAT_BESIDE, seat]
    return total


@kernel
def _is_on(seats: SharedDevices, device: int, row: int) -> bool:
    seat = seats.device[device]
    while seat >= 0:
        if seats.seat[SEAT_ROW, seat] == row:
            return True
        seat = seats.seat[SEAT_BESIDE, seat]
    return False
