"""Gangs that run, in a heap by the instant at which each is due."""

from __future__ import annotations

from gantline.core.jit import kernel_from_zero as kernel
from gantline.drivers.futures import heap_room as h
from gantline.drivers.futures.heap_room import HeapRoom


@kernel
def _rise(room: HeapRoom, place: int, due: float, row: float) -> None:
    """Put a gang into the gap at `place` or above it."""
    heap = room.heap
    while place > 1:
        above = place >> 1
        if heap[above, h.DUE] <= due:
            break
        heap[place, h.DUE], heap[place, h.ROW] = heap[above, h.DUE], heap[above, h.ROW]
        place = above
    heap[place, h.DUE], heap[place, h.ROW] = due, row


@kernel
def sink(room: HeapRoom, place: int, due: float, row: float) -> None:
    """Put a gang into the gap at `place` or below it."""
    heap, last = room.heap, room.n[h.RUNNING]
    while True:
        below = place << 1
        if below > last:
            break
        soonest = heap[below, h.DUE]
        if below < last and heap[below + 1, h.DUE] < soonest:
            below += 1
            soonest = heap[below, h.DUE]
        if due <= soonest:
            break
        heap[place, h.DUE], heap[place, h.ROW] = soonest, heap[below, h.ROW]
        place = below
    heap[place, h.DUE], heap[place, h.ROW] = due, row


@kernel
def push(room: HeapRoom, due: float, row: int) -> None:
    """One more gang runs."""
    room.n[h.RUNNING] += 1
    _rise(room, room.n[h.RUNNING], due, float(row))


@kernel
def drop(room: HeapRoom, place: int) -> None:
    """Remove the gang at that place; the last one fills the gap."""
    last = room.n[h.RUNNING]
    room.n[h.RUNNING] = last - 1
    if place == last:
        return
    due, row = room.heap[last, h.DUE], room.heap[last, h.ROW]
    if place > 1 and due < room.heap[place >> 1, h.DUE]:
        _rise(room, place, due, row)
    else:
        sink(room, place, due, row)
