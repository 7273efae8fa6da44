"""The turns of gangs in groups or on named devices, read from the columns of a compared plan, and what is kept of them. Compiled.

`same_groups` has found the assignments that their rows do not keep. `read_turns` makes turns of them, which `shared_parting` and
`shared_turns` take; `note_turns` then enters what is in force from now on.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import ASKED_TOGETHER, Device, Job, Node, Option
from gantline.core.jit import kernel
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.core.plan import Mode
from gantline.core.tables import Matrices
from gantline.engine.group_numbers import team_of
from gantline.engine.in_force import LINES, RAW, NotedGrants
from gantline.engine.same_groups import AskedOfRows
from gantline.engine.seats import GANG_FIRST, SEAT_DEVICE, SEAT_NEXT, SharedSeats
from gantline.engine.shared_ask import Ask, End, SharedTurns, Want, Work
from gantline.engine.shared_gang import ALONE, BEFORE, CHANGES, COMPANY_LINES, NOW, OPEN, STRANGER, TOUCHED, MayShare

_MODE: Final = LINES["mode"]
_TOGETHER: Final = LINES["together"]
_FRACTION: Final = LINES["fraction"]
_OFFSET: Final = LINES["offset"]
_BATCH: Final = LINES["batch"]
_ACCUMULATION: Final = LINES["accumulation"]
_RAW_LINES = tuple(LINES[name] for name in RAW)
_EXCLUSIVE: Final = int(Mode.EXCLUSIVE)
_SPACE: Final = int(Mode.SPACE)
_INTERLEAVE: Final = int(Mode.INTERLEAVE)
_IMPOSSIBLE: Final = -1
#: lines of `ReadTurns.group`: size and type that its members want, its first turn, its last so far
G_NEED, G_TYPE, G_LEAD, G_LAST, GROUP_LINES = range(5)
#: lines of `ReadTurns.ended`: rows to be entered, rows whose grants are dropped, rows of which the speed may have changed
E_ENTER, E_DROP, E_TOUCHED, ENDED_LINES = range(4)
#: lines of `ReadTurns.device`: the group that names it, counted from one; the turn
B_GROUP, B_TURN, DEVICE_LINES = range(3)


class ReadTurns(NamedTuple):
    """Room beside that of the turns."""

    group: Ints  # (G_NEED .. G_LAST, group)
    ended: Ints  # (E_ENTER .. E_TOUCHED, number)
    sizes: Ints  # of each of these lists
    device: Ints  # (B_GROUP and B_TURN, device): which named it first; zero between uses


@kernel
def read_turns(
    t: Matrices, seats: SharedSeats, force: NotedGrants, special: Ints, asked: AskedOfRows, turns: SharedTurns, read: ReadTurns
) -> int:
    """Write down the turns; how many devices they list. Below zero: some are of a kind that is read elsewhere, and nothing is touched."""
    for n in range(special.shape[0]):
        if seats.gang[GANG_FIRST, special[n]] >= 0 and force.noted[special[n]] != t.I[Job.EPOCH, special[n]]:
            return -1
    groups, total, ask = asked.found[0], 0, turns.ask
    read.group[:, : groups + 1] = -1
    for n in range(turns.size[0]):
        k = asked.places[n]
        if not _read_turn(t, seats, asked, turns, n, k):
            return -1
        row, option = asked.rows[k], ask[Ask.OPTION, n]
        code = asked.groups.code[k] if asked.groups.code[k] >= 0 else groups
        need = t.OI[Option.GPUS, option] if option >= 0 else 0
        if ask[Ask.WANTS, n] == Want.JOINS and option >= 0:
            kind = t.OI[Option.TYPE, option]
            if read.group[G_NEED, code] < 0:
                read.group[G_NEED, code], read.group[G_TYPE, code] = need, kind
            elif read.group[G_NEED, code] != need or read.group[G_TYPE, code] != kind:
                return -1
        ask[Ask.ROW, n], ask[Ask.GROUP, n], ask[Ask.GETS, n] = row, code, total
        total += max(need, t.I[Job.HELD, row], ask[Ask.COUNT, n])
        if asked.number[_TOGETHER, k] == 1.0 and code < groups:
            ask[Ask.WHOLE, n], ask[Ask.MATE, n] = 1, -1
            if read.group[G_LEAD, code] < 0:
                read.group[G_LEAD, code] = n
            else:
                ask[Ask.MATE, read.group[G_LAST, code]] = n
            ask[Ask.LEAD, n], read.group[G_LAST, code] = read.group[G_LEAD, code], n
    _list_widest_first(t, turns)
    return total if _tell_links_from_devices(asked, turns, read) else -1


@kernel
def _tell_links_from_devices(asked: AskedOfRows, turns: SharedTurns, read: ReadTurns) -> bool:
    """Members of an interleaved group that name their devices share those that another of them names, and else only links.

    False: a device is named by two such groups, which is read elsewhere.
    """
    ask, one_group = turns.ask, True
    for n in range(turns.size[0]):
        if not _is_linked(asked, asked.places[n]) or ask[Ask.OPTION, n] < 0:
            continue
        for place in range(ask[Ask.FIRST, n], ask[Ask.FIRST, n] + ask[Ask.COUNT, n]):
            device = turns.named[place]
            group, first = read.device[B_GROUP, device], read.device[B_TURN, device]
            if group == 0:
                read.device[B_GROUP, device], read.device[B_TURN, device] = ask[Ask.GROUP, n] + 1, n
            elif group == ask[Ask.GROUP, n] + 1:
                ask[Ask.WANTS, n] = ask[Ask.WANTS, first] = Want.SHARES_NAMED
            else:
                one_group = False
    for n in range(turns.size[0]):
        if _is_linked(asked, asked.places[n]) and ask[Ask.OPTION, n] >= 0:
            for place in range(ask[Ask.FIRST, n], ask[Ask.FIRST, n] + ask[Ask.COUNT, n]):
                read.device[B_GROUP, turns.named[place]] = 0
    return one_group


@kernel
def _is_linked(asked: AskedOfRows, k: int) -> bool:
    """Whether a gang is in an interleaved group and names its devices."""
    return bool(asked.names[k] and asked.group[k] >= 0 and int(asked.number[_MODE, k]) == _INTERLEAVE)


@kernel
def _read_turn(t: Matrices, seats: SharedSeats, asked: AskedOfRows, turns: SharedTurns, n: int, k: int) -> bool:
    """The option of a turn and what it wants; False: it is to be read elsewhere."""
    ask, row = turns.ask, asked.rows[k]
    phase, mode, named = t.I[Job.PHASE, row], int(asked.number[_MODE, k]), asked.names[k]
    able = phase == STARTING or phase == RUNNING
    if phase != PENDING and not (able and t.I[Job.LOCKED, row] == 0 and t.I[Job.HELD, row] > 0 and t.I[Job.NODE, row] < 0):
        return False
    if phase != PENDING and not _holds_open_devices(t, seats, row):
        return False
    grouped = asked.group[k] >= 0 and mode != _EXCLUSIVE
    shares = (grouped and not _is_linked(asked, k)) or (named and mode == _SPACE and asked.group[k] < 0)
    option = asked.option[k]
    if named:
        option = t.I[Job.OPTION_FIRST, row]
        if not _are_devices(t, turns, ask[Ask.FIRST, n], ask[Ask.COUNT, n]):
            option = _IMPOSSIBLE
        elif t.OI[Option.GPUS, option] != ask[Ask.COUNT, n] or t.OI[Option.TYPE, option] != _type_of(t, turns.named[ask[Ask.FIRST, n]]):
            return False
        elif t.OI[Option.NODES, option] == 1 and t.I[Job.CONSOLIDATE, row] == ASKED_TOGETHER:
            return False  # a gang that must be on one node
    elif not shares:
        return False  # a gang that the engine places
    if not _is_sound(asked, k):
        option = _IMPOSSIBLE
    if option >= 0 and t.OI[Option.GPUS, option] == 0:
        return False
    for place in range(ask[Ask.FIRST, n], ask[Ask.FIRST, n] + ask[Ask.COUNT, n]):
        if option >= 0 and not _is_open(t, turns.named[place]):
            return False
    ask[Ask.OPTION, n] = option
    ask[Ask.WANTS, n] = (Want.SHARES_NAMED if named else Want.JOINS) if shares else Want.OWNS_NAMED
    return True


@kernel
def _type_of(t: Matrices, device: int) -> int:
    return int(t.NI[Node.TYPE, t.D[Device.NODE, device]])


@kernel
def _are_devices(t: Matrices, turns: SharedTurns, first: int, count: int) -> bool:
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
def _is_open(t: Matrices, device: int) -> bool:
    """Whether a new gang may have the device: its node is up, and neither of them is cordoned."""
    return bool(t.NI[Node.UP, t.D[Device.NODE, device]] == 1 and t.D[Device.CLOSED, device] == 0)


@kernel
def _holds_open_devices(t: Matrices, seats: SharedSeats, row: int) -> bool:
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
def _is_sound(asked: AskedOfRows, k: int) -> bool:
    """Whether its numbers can be meant, as `wanted.sound_numbers` says."""
    number = asked.number
    if not (0.0 < number[_FRACTION, k] <= 1.0 and np.isfinite(number[_OFFSET, k])):
        return False
    return bool(number[_BATCH, k] >= 0.0 and number[_ACCUMULATION, k] >= 1.0)


@kernel
def _list_widest_first(t: Matrices, turns: SharedTurns) -> None:
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
    t: Matrices, seats: SharedSeats, force: NotedGrants, special: Ints, asked: AskedOfRows, turns: SharedTurns, company: MayShare
) -> None:
    """Which gangs may be together: by this plan, and by what is in force."""
    line, ask = company.row, turns.ask
    for n in range(special.shape[0]):
        row = special[n]
        team = force.team[row]
        line[NOW, row], line[BEFORE, row] = STRANGER, team if team > 0 else ALONE
        if team == 0 and seats.gang[GANG_FIRST, row] >= 0:
            line[NOW, row] = line[BEFORE, row] = OPEN
    for n in range(turns.size[0]):
        k, row = asked.places[n], ask[Ask.ROW, n]
        shares = ask[Ask.WANTS, n] <= Want.SHARES_NAMED
        line[NOW, row] = ALONE if not shares else asked.group[k] if asked.group[k] >= 0 else OPEN
        line[CHANGES, row] = int(t.I[Job.PHASE, row] != PENDING and ask[Ask.OPTION, n] >= 0)


@kernel
def note_turns(
    t: Matrices, force: NotedGrants, special: Ints, asked: AskedOfRows, turns: SharedTurns, company: MayShare, read: ReadTurns
) -> None:
    """Enter what rows have been granted, and list those whose grants are entered, dropped, or may have another speed."""
    work, line = turns.work, company.row
    read.sizes[:] = 0
    for n in range(turns.size[0]):
        row, end = turns.ask[Ask.ROW, n], work[Work.END, n]
        recorded = end == End.GRANTED or end == End.IN_PART
        if recorded:
            _note(t, force, asked, asked.places[n], row, asked.found[2])
            _list(read, E_ENTER, n)
        if recorded or end == End.HALTED or t.I[Job.PHASE, row] == PENDING:
            _list(read, E_DROP, row)
        if end == End.GRANTED:
            t.I[Job.REASON, row] = 0
        else:
            force.epoch[row] = -1
    for n in range(special.shape[0] + turns.size[0]):
        row = special[n] if n < special.shape[0] else turns.ask[Ask.ROW, n - special.shape[0]]
        if line[TOUCHED, row] == 1:
            _list(read, E_TOUCHED, row)
        for which in range(COMPANY_LINES):
            line[which, row] = 0


@kernel
def touch_teams(special: Ints, turns: SharedTurns, company: MayShare) -> None:
    """Of a group that shares links, the others: a model may mind that one of them has changed."""
    line = company.row
    for n in range(turns.size[0]):
        row, end = turns.ask[Ask.ROW, n], turns.work[Work.END, n]
        team = line[BEFORE, row]
        if team <= 0 or not (end == End.GRANTED or end == End.IN_PART or end == End.HALTED):
            continue
        for m in range(special.shape[0]):
            if line[BEFORE, special[m]] == team:
                line[TOUCHED, special[m]] = 1


@kernel
def _note(t: Matrices, force: NotedGrants, asked: AskedOfRows, k: int, row: int, lines: int) -> None:
    t.F[Job.LIMIT_END, row], t.F[Job.UNTIL, row] = np.inf, np.inf
    force.epoch[row] = force.noted[row] = t.I[Job.EPOCH, row]
    force.team[row] = team_of(asked.groups, k)
    for n in range(lines):
        force.number[asked.lines[n], row] = asked.number[asked.lines[n], k]
    for n in range(len(_RAW_LINES)):
        if asked.names[k]:
            force.number[_RAW_LINES[n], row] = asked.usual[_RAW_LINES[n]]


@kernel
def _list(read: ReadTurns, which: int, value: int) -> None:
    read.ended[which, read.sizes[which]] = value
    read.sizes[which] += 1
