"""The changes of a commit as columns: what each row wants, in the order of the plan, and what is kept of it meanwhile. Compiled."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import ASKED_TOGETHER, Device, Job, Node, Option
from gantline.core.constants import Constants
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


class Ask(Constants):
    """Lines of `GangTurns.ask`: the row, its place in the plan and its option (below zero: impossible); what it
    wants; its group; the devices that it names, in `named`; where its list of devices is in `gets`; whether its
    turn in its rotation comes again; whether its group starts whole; the first member of its group and the next
    after it; and, on its own, the turns by size, the widest gang first."""

    (
        ROW,
        PLACE,
        OPTION,
        WANTS,
        GROUP,
        FIRST,
        COUNT,
        GETS,
        RETURNS,
        WHOLE,
        LEAD,
        MATE,
        WIDEST,
    ) = range(13)


class Work(Constants):
    """Lines of `GangTurns.work`: what it does; what it held (option, number, place in `had`, shared); how many
    devices it keeps meanwhile; what it pays for; how it ended."""

    (CHANGE, OPTION, HELD, HAD, SHARED, KEPT, ACT, END) = range(8)


SOUGHT: Final = -2  # in place of an option: it follows from named devices


class Want(Constants):
    """What is wanted."""

    JOINS: Final = 0  # devices of its group
    SHARES_NAMED: Final = 1  # named devices, shared
    OWNS_NAMED: Final = 2  # named devices of its own
    OWN_PLACE: Final = 3  # a place of its own, after devices that it shares, or with its group
    PLACED: Final = 4  # a place of its own, by the rule; in place, if that can be


class Course(Constants):
    """What a gang does."""

    WAITS: Final = 0  # it holds nothing yet
    STAYS: Final = 1  # keeps its devices
    KEEPS: Final = 2  # keeps some of its devices in place
    LEAVES: Final = 3  # gives up all of them
    BOUND: Final = 4  # would have to leave within its minimum run, or asks for what cannot be


class Paid(Constants):
    """What it pays for, as in performance.model.Act; -1: nothing."""

    NOTHING, START, RESUME, RESIZE, MOVE, SWITCH = -1, 0, 1, 2, 3, 4


class End(Constants):
    """How a turn ended."""

    UNTOUCHED: Final = 0
    GRANTED: Final = 1
    IN_PART: Final = 2  # all but other CPUs or the like
    RESTORED: Final = 3
    HALTED: Final = 4
    WAITED: Final = 5  # with its group


class TurnGroup(Constants):
    """Lines of `TurnRoom.group`: size and type that its members want, its first turn, its last so far."""

    NEED, TYPE, LEAD, LAST = range(4)


class EndedTurns(Constants):
    """Lines of `TurnRoom.ended`: turns whose grants are entered, rows whose grants are dropped, rows of which the
    speed may have changed."""

    ENTER, DROP, TOUCHED = range(3)


class NamedDevice(Constants):
    """Lines of `TurnRoom.device`: the group that names it, counted from one; the turn."""

    GROUP, TURN = range(2)


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
    """Room beside that of the turns."""

    group: Ints  # (TurnGroup.NEED .. TurnGroup.LAST, group)
    ended: Ints  # (EndedTurns.ENTER .. EndedTurns.TOUCHED, number)
    sizes: Ints  # of each of these lists
    device: Ints  # (NamedDevice.GROUP and NamedDevice.TURN, device): which named it first; zero between uses


class CommitMoment(NamedTuple):
    """When a commit takes place, what holds for every gang in it, and where it is written down."""

    times: Floats  # now, and the seconds that a turn costs
    rules: EngineRules
    log: LogColumns
    scratch: Ints
    out: Ints  # started, stopped


class TurnColumns:
    """Room for as many turns, groups, devices and rows as any commit has needed so far: a kernel is told once of arrays that stay."""

    def __init__(self) -> None:
        none = _room()
        self._turns = GangTurns(_room(len(Ask)), _room(len(Work)), none, none, np.zeros(1, dtype=np.int64))
        self._company = Partners(_room(COMPANY_LINES), none, none)
        sizes: Ints = np.zeros(len(EndedTurns), dtype=np.int64)
        self._room = TurnRoom(_room(len(TurnGroup)), _room(len(EndedTurns)), sizes, _room(len(NamedDevice)))
        self._moment: CommitMoment | None = None

    def turns(self, count: int, groups: int, named: Ints) -> GangTurns:
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
        """Room for the groups of a plan, lists of so many rows, and all devices."""
        room = self._room
        if room.group.shape[1] < groups:
            room = room._replace(group=_room(len(TurnGroup), groups))
        if room.ended.shape[1] < rows:
            room = room._replace(ended=_room(len(EndedTurns), rows))
        if room.device.shape[1] < devices:
            room = room._replace(device=_room(len(NamedDevice), devices))
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
        option, first, count = t.I[Job.OPTION_FIRST, ask[Ask.ROW, n]], ask[Ask.FIRST, n], ask[Ask.COUNT, n]
        if ask[Ask.OPTION, n] != SOUGHT or t.OI[Option.GPUS, option] != count or not _are_devices(t, turns, first, count):
            continue
        one_node = t.OI[Option.NODES, option] == 1 and t.I[Job.CONSOLIDATE, ask[Ask.ROW, n]] == ASKED_TOGETHER
        if not one_node and t.OI[Option.TYPE, option] == _type_of(t, turns.named[first]):
            ask[Ask.OPTION, n] = option


@kernel
def _type_of(t: Matrices, device: int) -> int:
    return int(t.NI[Node.TYPE, t.D[Device.NODE, device]])


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
        if seats.gang[GANG_FIRST, special[n]] >= 0 and granted.noted[special[n]] != t.I[Job.EPOCH, special[n]]:
            return -1
    groups, total, ask = asked.found[GROUPS], 0, turns.ask
    room.group[:, : groups + 1] = -1
    for n in range(turns.size[0]):
        k, row, option = ask[Ask.PLACE, n], ask[Ask.ROW, n], ask[Ask.OPTION, n]
        if not _read_turn(t, seats, asked, turns, n):
            return -1
        code = asked.groups.code[k] if asked.groups.code[k] >= 0 else groups
        need = t.OI[Option.GPUS, option] if option >= 0 else 0
        if ask[Ask.WANTS, n] == Want.JOINS and option >= 0:
            kind = t.OI[Option.TYPE, option]
            if room.group[TurnGroup.NEED, code] < 0:
                room.group[TurnGroup.NEED, code], room.group[TurnGroup.TYPE, code] = need, kind
            elif room.group[TurnGroup.NEED, code] != need or room.group[TurnGroup.TYPE, code] != kind:
                return -1  # members of different sizes
        ask[Ask.GROUP, n], ask[Ask.GETS, n] = code, total
        total += max(need, t.I[Job.HELD, row], ask[Ask.COUNT, n], 1)
        if ask[Ask.WHOLE, n] == 1:
            ask[Ask.MATE, n] = -1
            if room.group[TurnGroup.LEAD, code] < 0:
                room.group[TurnGroup.LEAD, code] = n
            else:
                ask[Ask.MATE, room.group[TurnGroup.LAST, code]] = n
            ask[Ask.LEAD, n], room.group[TurnGroup.LAST, code] = room.group[TurnGroup.LEAD, code], n
    _list_widest_first(t, turns)
    return total if _tell_links_from_devices(t, asked, turns, room) else -1


@kernel
def _read_turn(t: Matrices, seats: SharedDevices, asked: PlanRequest, turns: GangTurns, n: int) -> bool:
    """What one row wants; False: it is given one by one."""
    ask = turns.ask
    k, row, option = ask[Ask.PLACE, n], ask[Ask.ROW, n], ask[Ask.OPTION, n]
    holds, mode, named = t.I[Job.PHASE, row] != PENDING, int(asked.number[MODE, k]), asked.named[k]
    grouped = asked.group[k] >= 0 and mode != _EXCLUSIVE
    shares = (grouped and not _is_linked(asked, k)) or (named and mode == _SPACE and asked.group[k] < 0)
    ask[Ask.WHOLE, n] = int(asked.number[TOGETHER, k] == 1.0 and asked.group[k] >= 0)
    if named:
        ask[Ask.WANTS, n] = Want.SHARES_NAMED if shares else Want.OWNS_NAMED
    elif shares:
        ask[Ask.WANTS, n] = Want.JOINS
    elif ask[Ask.WHOLE, n] == 1 or ask[Ask.RETURNS, n] == 1 or seats.gang[GANG_FIRST, row] >= 0:
        ask[Ask.WANTS, n] = Want.OWN_PLACE
    else:
        ask[Ask.WANTS, n] = Want.PLACED
        return True
    if option >= 0 and (t.OI[Option.GPUS, option] == 0 or (ask[Ask.WANTS, n] == Want.JOINS and asked.number[_SIZE, k] > 0.0)):
        return False
    if holds and (t.I[Job.HELD, row] == 0 or t.I[Job.NODE, row] >= 0 or not _holds_open_devices(t, seats, row)):
        return False
    if holds and option >= 0 and ask[Ask.WANTS, n] == Want.OWN_PLACE and t.OI[Option.GPUS, option] != t.I[Job.HELD, row]:
        return False
    for place in range(ask[Ask.FIRST, n], ask[Ask.FIRST, n] + ask[Ask.COUNT, n]):
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
        for place in range(ask[Ask.FIRST, n], ask[Ask.FIRST, n] + ask[Ask.COUNT, n]):
            device = turns.named[place]
            if not (_is_linked(asked, ask[Ask.PLACE, n]) and 0 <= device < t.D.shape[1]):
                continue
            group, first = room.device[NamedDevice.GROUP, device], room.device[NamedDevice.TURN, device]
            if group == 0:
                room.device[NamedDevice.GROUP, device], room.device[NamedDevice.TURN, device] = ask[Ask.GROUP, n] + 1, n
            elif group == ask[Ask.GROUP, n] + 1:
                ask[Ask.WANTS, n] = ask[Ask.WANTS, first] = Want.SHARES_NAMED
            else:
                one_group = False
    for place in range(turns.named.shape[0]):
        if 0 <= turns.named[place] < t.D.shape[1]:
            room.device[NamedDevice.GROUP, turns.named[place]] = 0
    return one_group


@kernel
def _is_linked(asked: PlanRequest, k: int) -> bool:
    """Whether a gang is in an interleaved group and names its devices."""
    return bool(asked.named[k] and asked.group[k] >= 0 and int(asked.number[MODE, k]) == _INTERLEAVE)


@kernel
def _is_open(t: Matrices, device: int) -> bool:
    """Whether a new gang may have the device: its node is up, and neither of them is cordoned."""
    return bool(t.NI[Node.UP, t.D[Device.NODE, device]] == 1 and t.D[Device.CLOSED, device] == 0)


@kernel
def _holds_open_devices(t: Matrices, seats: SharedDevices, row: int) -> bool:
    """Whether other gangs may join it, and it may come back, wherever it is now."""
    seat, device = seats.gang[GANG_FIRST, row], t.I[Job.HEAD, row]
    while seat >= 0:
        if not _is_open(t, seats.seat[SEAT_DEVICE, seat]):
            return False
        seat = seats.seat[SEAT_NEXT, seat]
    while device >= 0:
        if not _is_open(t, device):
            return False
        device = t.D[Device.NEXT, device]
    return True


@kernel
def _list_widest_first(t: Matrices, turns: GangTurns) -> None:
    ask, listed, below = turns.ask, 0, 1 << 60
    while listed < turns.size[0]:
        widest = -1
        for n in range(turns.size[0]):
            need = t.OI[Option.GPUS, ask[Ask.OPTION, n]] if ask[Ask.OPTION, n] >= 0 else 0
            widest = max(widest, need if need < below else -1)
        for n in range(turns.size[0]):
            need = t.OI[Option.GPUS, ask[Ask.OPTION, n]] if ask[Ask.OPTION, n] >= 0 else 0
            if need == widest:
                ask[Ask.WIDEST, listed] = n
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
        k, row = ask[Ask.PLACE, n], ask[Ask.ROW, n]
        shares = ask[Ask.WANTS, n] <= Want.SHARES_NAMED
        line[NOW, row] = ALONE if not shares else asked.group[k] if asked.group[k] >= 0 else OPEN
        line[CHANGES, row] = int(t.I[Job.PHASE, row] != PENDING and ask[Ask.OPTION, n] >= 0)


@kernel
def memory_suffices(t: Matrices, seats: SharedDevices, turns: GangTurns, need: Floats, has: Floats, load: Floats) -> bool:
    """Whether no gang can lack device memory, whatever becomes of the turns: all that are on a device, or are to be, are added up.

    `need` is by row, NaN where unknown; `has` by type, 0 where unknown; `load` is room for all devices and groups, zero.
    """
    ask, fits, groups = turns.ask, True, t.D.shape[1]
    for n in range(turns.size[0]):
        row, option = ask[Ask.ROW, n], ask[Ask.OPTION, n]
        if option < 0:
            continue
        limit = has[t.OI[Option.TYPE, option]]
        if ask[Ask.WANTS, n] == Want.JOINS:
            at = groups + ask[Ask.GROUP, n]
            load[at] += _amount(need, row)
            fits = fits and not (0.0 < limit < load[at])
        elif ask[Ask.WANTS, n] >= Want.OWN_PLACE:
            fits = fits and not (0.0 < limit < _amount(need, row))
        for k in range(ask[Ask.FIRST, n], ask[Ask.FIRST, n] + ask[Ask.COUNT, n]):
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
