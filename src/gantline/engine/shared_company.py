"""Which gangs are beside which on shared devices, for speeds: what is asked of a device in all, and lists for models. Compiled."""

from __future__ import annotations

from typing import Final

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.engine.seats import GANG_FIRST, SEAT_BESIDE, SEAT_DEVICE, SEAT_NEXT, SEAT_ROW, SharedSeats

_NONE: Final = 1 << 60


@kernel
def _next_beside(seats: SharedSeats, device: int, row: int, last: int) -> int:
    """The next gang after `last` on a device, by rising row, without this one; `_NONE`: there is none."""
    found, seat = _NONE, seats.device[device]
    while seat >= 0:
        other = seats.seat[SEAT_ROW, seat]
        if other != row and other > last and other < found:
            found = other
        seat = seats.seat[SEAT_BESIDE, seat]
    return found


@kernel
def crowd_of(seats: SharedSeats, row: int, asked: Floats) -> float:
    """What is asked in all of the device of a gang that is asked most of; the others are added in rising order of rows."""
    seat, most = seats.gang[GANG_FIRST, row], 0.0
    while seat >= 0:
        device, total = seats.seat[SEAT_DEVICE, seat], 0.0
        other = _next_beside(seats, device, row, -1)
        while other != _NONE:
            total += asked[other]
            other = _next_beside(seats, device, row, other)
        most = max(most, asked[row] + total)
        seat = seats.seat[SEAT_NEXT, seat]
    return most


@kernel
def count_company(seats: SharedSeats, rows: Ints, sizes: Ints) -> None:
    """How many places and entries the company of these rows has; see `performance.sharing_columns.DeviceCompany`."""
    for k in range(rows.shape[0]):
        seat = seats.gang[GANG_FIRST, rows[k]]
        while seat >= 0:
            sizes[0] += 1
            other = seats.device[seats.seat[SEAT_DEVICE, seat]]
            while other >= 0:
                sizes[1] += int(seats.seat[SEAT_ROW, other] != rows[k])
                other = seats.seat[SEAT_BESIDE, other]
            seat = seats.seat[SEAT_NEXT, seat]


@kernel
def list_company(seats: SharedSeats, rows: Ints, places: Ints, entries: Ints) -> None:
    """Write down the places (gang, device) and the entries (place, row)."""
    place, entry = 0, 0
    for k in range(rows.shape[0]):
        seat = seats.gang[GANG_FIRST, rows[k]]
        while seat >= 0:
            device = seats.seat[SEAT_DEVICE, seat]
            places[0, place], places[1, place] = k, device
            other = _next_beside(seats, device, rows[k], -1)
            while other != _NONE:
                entries[0, entry], entries[1, entry] = place, other
                entry += 1
                other = _next_beside(seats, device, rows[k], other)
            place += 1
            seat = seats.seat[SEAT_NEXT, seat]
