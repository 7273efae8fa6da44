"""Whether device memory suffices whatever becomes of the turns of a commit: then none of them has to be asked about it. Compiled.

All gangs that are on a device, or are to be, are added up; where that is more than the device has, `device_memory` looks turn by turn.
"""

from __future__ import annotations

from gantline.core.arrays import Floats
from gantline.core.columns import Option
from gantline.core.jit import kernel
from gantline.core.tables import Matrices
from gantline.engine.seats import SEAT_BESIDE, SEAT_ROW, SharedSeats
from gantline.engine.shared_ask import Ask, SharedTurns, Want


@kernel
def memory_suffices(t: Matrices, seats: SharedSeats, turns: SharedTurns, need: Floats, has: Floats, load: Floats) -> bool:
    """`need` is by row, NaN where unknown; `has` by type, 0 where unknown; `load` is room for all devices and groups, zero."""
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
            continue
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
def _taken(seats: SharedSeats, device: int, need: Floats) -> float:
    seat, total = seats.device[device], 0.0
    while seat >= 0:
        total += _amount(need, seats.seat[SEAT_ROW, seat])
        seat = seats.seat[SEAT_BESIDE, seat]
    return total


@kernel
def _is_on(seats: SharedSeats, device: int, row: int) -> bool:
    seat = seats.device[device]
    while seat >= 0:
        if seats.seat[SEAT_ROW, seat] == row:
            return True
        seat = seats.seat[SEAT_BESIDE, seat]
    return False
