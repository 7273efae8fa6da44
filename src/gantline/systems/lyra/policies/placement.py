"""Which devices: base workers on the cluster's own servers if they can, extra ones on those on loan, where they are easy to take away.

All jobs of a pool are placed in one compiled call. *Shunned* devices are extra workers' that have not been taken from them yet: base
workers take them before they go to a server on loan, but not before what is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.jit import kernel


class ServerState(NamedTuple):
    """The servers while devices are given out, and what each job has."""

    server: Ints  # of every device
    lent: Bools  # per server: on loan
    first: Ints  # devices by server: those of server s are of[first[s]:first[s + 1]]
    of: Ints
    free: Bools  # per device
    shunned: Bools
    vacant: Ints  # per server: free devices
    spare: Ints  # and those of them that are not shunned
    begin: Ints  # devices of job j: placed[begin[j]:begin[j] + has[j]]
    placed: Ints
    has: Ints
    own: Bools  # scratch, per server
    tally: Ints


def place_jobs(device_node: Ints, lent: Bools, open_: Bools, held: Sequence[Sequence[int]], base: Ints, size: Ints) -> list[list[int]]:
    """The devices of every job, ascending, of those that are ``open_``: what it holds, if it is to have so many, and others.

    ``lent`` is per node. Base workers stay or find a place, own servers first; then extra ones stay if theirs are still free, or find
    another. Together the jobs want no more than is open.
    """
    nodes = len(lent)
    first = np.concatenate([[0], np.cumsum(np.bincount(device_node, minlength=nodes))]).astype(np.int64)
    count = np.bincount(device_node[open_], minlength=nodes).astype(np.int64)
    begin = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    none = np.zeros(len(device_node), dtype=np.bool_)
    order = np.argsort(device_node, kind="stable").astype(np.int64)
    empty, has = np.zeros(int(begin[-1]), dtype=np.int64), np.zeros(len(size), dtype=np.int64)
    own, tally = np.zeros(nodes, dtype=np.bool_), np.zeros(nodes, dtype=np.int64)
    node_of = np.ascontiguousarray(device_node, dtype=np.int64)
    floor = ServerState(node_of, lent, first, order, open_.copy(), none, count, count.copy(), begin, empty, has, own, tally)
    sits = np.concatenate([[0], np.cumsum([len(devices) for devices in held])]).astype(np.int64)
    listed = np.array([device for devices in held for device in devices], dtype=np.int64)
    _place(floor, sits, listed, listed.copy(), np.minimum(base, size).astype(np.int64), size.astype(np.int64))
    return [np.sort(floor.placed[at : at + had]).tolist() for at, had in zip(begin.tolist(), has.tolist())]


@kernel
def _place(f: ServerState, sits: Ints, held: Ints, list_: Ints, base: Ints, size: Ints) -> None:
    jobs = size.size
    for j in range(jobs):
        _keep(f, list_, sits[j], sits[j + 1], j, base[j])
    for k in range(held.size):
        if f.free[held[k]]:
            f.shunned[held[k]] = True
            f.spare[f.server[held[k]]] -= 1
    for j in range(jobs):
        _add(f, j, base[j] - f.has[j], False)
    for j in range(jobs):
        end = sits[j]
        for k in range(sits[j], sits[j + 1]):
            if f.free[held[k]]:
                list_[end] = held[k]
                end += 1
        _keep(f, list_, sits[j], end, j, size[j] - f.has[j])
    for k in range(held.size):
        f.shunned[held[k]] = False
    for s in range(f.vacant.size):
        f.spare[s] = f.vacant[s]
    for j in range(jobs):
        _add(f, j, size[j] - f.has[j], True)


@kernel
def _keep(f: ServerState, held: Ints, begin: int, end: int, job: int, count: int) -> None:
    """Of what a job holds, so many: own servers before those on loan, fuller ones first, so that it spans few."""
    for k in range(begin, end):
        f.tally[f.server[held[k]]] += 1
    for chosen in range(begin, min(begin + count, end)):
        best = chosen
        for k in range(chosen + 1, end):
            one, two = f.server[held[k]], f.server[held[best]]
            if f.lent[one] != f.lent[two]:
                better = f.lent[two]
            elif f.tally[one] != f.tally[two]:
                better = f.tally[one] > f.tally[two]
            else:
                better = held[k] < held[best]
            if better:
                best = k
        held[chosen], held[best] = held[best], held[chosen]
        _take(f, job, held[chosen])
    for k in range(begin, end):
        f.tally[f.server[held[k]]] = 0


@kernel
def _take(f: ServerState, job: int, device: int) -> None:
    f.free[device] = False
    f.vacant[f.server[device]] -= 1
    if not f.shunned[device]:
        f.spare[f.server[device]] -= 1
    f.placed[f.begin[job] + f.has[job]] = device
    f.has[job] += 1


@kernel
def _add(f: ServerState, job: int, count: int, extra: bool) -> None:
    """More devices, on servers of the preferred kind if there are any: best fit on one that holds all, else the emptiest in turn."""
    if count <= 0:
        return
    begin = f.begin[job]
    for s in range(f.own.size):
        f.own[s] = False
    for k in range(begin, begin + f.has[job]):
        f.own[f.server[f.placed[k]]] = True
    while count > 0:
        polite = True
        at = _choose(f, f.spare, count, extra)
        if at < 0:
            polite = False
            at = _choose(f, f.vacant, count, extra)
        if at < 0:
            at = _choose(f, f.vacant, count, not extra)
        if at < 0:
            return
        for k in range(f.first[at], f.first[at + 1]):
            device = f.of[k]
            if count > 0 and f.free[device] and not (polite and f.shunned[device]):
                _take(f, job, device)
                count -= 1


@kernel
def _choose(f: ServerState, room: Ints, count: int, lent: bool) -> int:
    """Best fit among servers that are lent or not, else the emptiest; those that the job has already come first; -1: there is no room."""
    best = -1
    for s in range(room.size):
        if f.lent[s] != lent or room[s] <= 0:
            continue
        if best < 0:
            best = s
            continue
        fits, fitted = room[s] >= count, room[best] >= count
        if fits != fitted:
            better = fits
        elif f.own[s] != f.own[best]:
            better = f.own[s]
        else:
            better = room[s] < room[best] if fits else room[s] > room[best]
        if better:
            best = s
    return best
