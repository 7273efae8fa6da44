"""When each node has how much free: the calendar that Slurm's backfill keeps, as arrays for a kernel.

A node's line is a list of instants with what is free from each of them on: devices, CPUs and memory. A job is promised the earliest instant
at which as many nodes as it spans have room for its whole time limit; the nodes are then booked for it. Among nodes with room the first in
the order of the cluster are taken, as Slurm does where all have one weight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import kernel

GPUS, CPUS, MEMORY = range(3)
AMOUNTS = 3
_SLACK = 1e-9
FULL = -1  # a line has no room for another instant: come again with longer lines


class NodeCalendar(NamedTuple):
    """Lines of all nodes; `length` says how much of each is in use."""

    at: Floats  # (node, place)
    free: Floats  # (node, place, amount)
    length: Ints
    type: Ints
    open: Bools  # whether new gangs may start there


class WaitingWays(NamedTuple):
    """The ways in which the waiting jobs may run; those of job k are `first[k]` to `first[k + 1]`."""

    first: Ints
    type: Ints
    option: Ints  # its number among the ways of its job
    need: Floats  # (way, amount), on each node
    span: Ints
    seconds: Floats
    queue: Ints  # of each job


class NodeBookings(NamedTuple):
    """What becomes of each waiting job: its start, its way, and the nodes from `first[k]` to `first[k + 1]` in `node`."""

    start: Floats
    way: Ints
    first: Ints
    node: Ints


class CalendarRoom(NamedTuple):
    """Room to work in."""

    instant: Floats
    node: Ints
    blocked: Bools  # by queue


def empty_calendar(now: float, free: Floats, kinds: Ints, is_open: Bools, places: int) -> NodeCalendar:
    """Lines on which nothing ends or begins."""
    nodes = len(kinds)
    at, amounts = np.full((nodes, places), np.inf), np.zeros((nodes, places, AMOUNTS))
    at[:, 0], amounts[:, 0] = now, free
    return NodeCalendar(at, amounts, np.ones(nodes, dtype=np.int64), kinds.astype(np.int64), is_open)


@kernel
def split(calendar: NodeCalendar, node: int, instant: float) -> int:
    """The place at which that instant stands on a node's line; it is put there where it is not."""
    used = calendar.length[node]
    place = 0
    while place < used and calendar.at[node, place] < instant:
        place += 1
    if place < used and calendar.at[node, place] == instant:
        return place
    if used == calendar.at.shape[1]:
        return FULL
    for k in range(used, place, -1):
        calendar.at[node, k] = calendar.at[node, k - 1]
        for amount in range(AMOUNTS):
            calendar.free[node, k, amount] = calendar.free[node, k - 1, amount]
    calendar.at[node, place] = instant
    for amount in range(AMOUNTS):
        calendar.free[node, place, amount] = calendar.free[node, place - 1, amount]
    calendar.length[node] = used + 1
    return place


@kernel
def book(calendar: NodeCalendar, node: int, start: float, end: float, need: Floats) -> int:
    """Take amounts out of a node's line from start to end (to the end of the line where that is infinite)."""
    first = split(calendar, node, start)
    if first == FULL:
        return FULL
    last = calendar.length[node]
    if end < np.inf:
        last = split(calendar, node, end)
        if last == FULL:
            return FULL
    for place in range(first, last):
        for amount in range(AMOUNTS):
            calendar.free[node, place, amount] -= need[amount]
    return 0


@kernel
def fits(calendar: NodeCalendar, node: int, start: float, seconds: float, need: Floats) -> bool:
    """Whether a node has that much free from start on, for so long."""
    used = calendar.length[node]
    for place in range(used):
        if calendar.at[node, place] >= start + seconds:
            break
        if place + 1 < used and calendar.at[node, place + 1] <= start:
            continue
        for amount in range(AMOUNTS):
            if calendar.free[node, place, amount] < need[amount] - _SLACK:
                return False
    return True


@kernel
def earliest(calendar: NodeCalendar, kind: int, need: Floats, span: int, seconds: float, found: Ints, instants: Floats) -> float:
    """The first instant at which so many nodes of a type have room; the nodes are written to `found`. Infinity: never."""
    count = 0
    nodes = calendar.type.size
    for node in range(nodes):  # room begins only where a line changes
        if calendar.type[node] != kind or not calendar.open[node]:
            continue
        for place in range(calendar.length[node]):
            enough = True
            for amount in range(AMOUNTS):
                enough = enough and calendar.free[node, place, amount] >= need[amount] - _SLACK
            if not enough or not fits(calendar, node, calendar.at[node, place], seconds, need):
                continue
            instants[count] = calendar.at[node, place]
            count += 1
            if span == 1:
                break  # its earliest
    while True:
        best = -1
        for k in range(count):
            if best < 0 or instants[k] < instants[best]:
                best = k
        if best < 0 or instants[best] == np.inf:
            return np.inf
        start = float(instants[best])
        have = 0
        for node in range(nodes):
            if have < span and calendar.type[node] == kind and calendar.open[node] and fits(calendar, node, start, seconds, need):
                found[have] = node
                have += 1
        if have == span:
            return start
        for k in range(count):
            if instants[k] == start:
                instants[k] = np.inf


@kernel
def plan_starts(
    now: float, calendar: NodeCalendar, ways: WaitingWays, fills: bool, window: float, booked: NodeBookings, scratch: CalendarRoom
) -> int:
    """Book the jobs in the order given; without filling, none passes a job of its own queue which must wait."""
    booked.first[0] = 0
    for job in range(booked.start.size):
        booked.start[job], booked.way[job] = np.inf, -1
        put = booked.first[job]
        booked.first[job + 1] = put
        if not fills and scratch.blocked[ways.queue[job]]:
            continue
        for way in range(ways.first[job], ways.first[job + 1]):
            span = ways.span[way]
            start = earliest(calendar, ways.type[way], ways.need[way], span, ways.seconds[way], scratch.node, scratch.instant)
            if start < booked.start[job]:
                booked.start[job], booked.way[job] = start, way
                for k in range(span):
                    booked.node[put + k] = scratch.node[k]
                booked.first[job + 1] = put + span
        if booked.start[job] > now:
            scratch.blocked[ways.queue[job]] = True
        if booked.start[job] > now + window:
            booked.first[job + 1] = put
            continue
        way = booked.way[job]
        for k in range(put, booked.first[job + 1]):
            done = book(calendar, booked.node[k], booked.start[job], booked.start[job] + ways.seconds[way], ways.need[way])
            if done == FULL:
                return FULL
    return 0
