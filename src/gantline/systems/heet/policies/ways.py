"""What every job may be given, device type by device type, and what is believed of its speed there.

With `profile=three` a new job is known in three cells: at its least size on two types, and at a larger size on one of them; which types and
sizes goes round, so that together jobs cover all. Every way that a job runs in is known from then on. The rest is estimated by
collaborative filtering over all jobs, those that have left included; how far off estimates were when they were put to the test is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.core.snapshot import Snapshot
from gantline.policies.elastic.pools import read_curves
from gantline.systems.heet.policies.elastic_filter import ElasticFilter

Way = tuple[int, int]  # device type, devices
_REMEMBERED = 100  # jobs that have left
_SWEEPS = 6  # of the filter, which is fitted at every decision; more gain little


@dataclass(frozen=True)
class HeetWays:
    """Per job (position in the snapshot) that may be changed now: believed speed of every way it may run."""

    speed: dict[int, dict[Way, float]]
    held: dict[int, Way]  # what they hold now
    left: dict[int, float]  # estimated work left
    free: list[int]  # devices per type that no other job has
    known: dict[int, set[Way]]  # ways whose speed was measured

    def time(self, job: int, way: Way) -> float:
        """Seconds to its end in that way."""
        return self.left[job] / self.speed[job][way]


def read_ways(snapshot: Snapshot, memory: dict[str, Any], profile: str) -> tuple[HeetWays, dict[str, Any]]:
    """All that is known and believed, and what to remember of it."""
    jobs, capacity = snapshot.jobs, snapshot.cluster.capacity
    phase = jobs.phase
    free_to_change = (phase == PENDING) | (((phase == STARTING) | (phase == RUNNING)) & ~jobs.locked)
    mine = np.flatnonzero(free_to_change & (jobs.gpus > 0))
    listed: dict[int, dict[Way, float]] = {int(job): {} for job in mine}
    for kind, room in enumerate(capacity.tolist()):
        curves = read_curves(snapshot, mine, kind, room)
        for k, job in enumerate(mine.tolist()):
            for entry in range(int(curves.first[k]), int(curves.first[k + 1])):
                listed[job][kind, int(curves.size[entry])] = float(curves.rate[entry])
    held = {job: (int(jobs.type[job]), int(jobs.held[job])) for job in listed if jobs.running[job] and jobs.held[job] > 0}
    held = {job: way for job, way in held.items() if way in listed[job]}
    free = capacity.copy()
    staying = [job for job in range(len(jobs)) if job not in held and jobs.running[job] and jobs.held[job] > 0]
    for job in staying:
        free[int(jobs.type[job])] -= int(jobs.held[job])
    rows = {job: str(int(jobs.rows[job])) for job in listed}
    known, remembered = _known(listed, held, rows, memory, profile)
    speed = listed if profile == "all" else _believed(listed, known, rows, remembered, snapshot)
    left = dict(zip(listed, np.maximum(jobs.remaining[mine], 1e-9).tolist()))
    return HeetWays(speed, held, left, [max(int(room), 0) for room in free], known), remembered


def _known(
    listed: dict[int, dict[Way, float]], held: dict[int, Way], rows: dict[int, str], memory: dict[str, Any], profile: str
) -> tuple[dict[int, set[Way]], dict[str, Any]]:
    """Which cells have been measured; memory keeps them by name, as texts 'type/count'."""
    if profile == "all":
        return {job: set(ways) for job, ways in listed.items()}, {}
    seen: dict[str, dict[str, float]] = memory.get("seen", {})
    errors = list(memory.get("errors", [0, 0.0]))
    believed = memory.get("believed", {})
    fresh: dict[str, dict[str, float]] = {}
    known: dict[int, set[Way]] = {}
    for job, ways in listed.items():
        cells = dict(seen.get(rows[job], {}))
        for way in _profiled(ways, int(rows[job])) if not cells else []:
            cells[_text(way)] = ways[way]
        if job in held and _text(held[job]) not in cells:
            guess = believed.get(rows[job], {}).get(_text(held[job]))
            if guess is not None:
                errors = [errors[0] + 1, errors[1] + abs(guess / ways[held[job]] - 1.0)]
            cells[_text(held[job])] = ways[held[job]]
        fresh[rows[job]] = cells
        known[job] = {way for way in ways if _text(way) in cells}
    gone = sorted((row for row in seen if row not in fresh), key=int)[-_REMEMBERED:]
    return known, {"seen": {row: seen[row] for row in gone} | fresh, "errors": errors}


def _profiled(ways: dict[Way, float], number: int) -> list[Way]:
    """The three short runs of a new job: its least size on two types and a larger one on the first of them; which ones goes round."""
    kinds = sorted({kind for kind, _ in ways})
    if not kinds:
        return []
    one, two = kinds[number % len(kinds)], kinds[(number + 1) % len(kinds)]
    least, *larger = sorted(count for kind, count in ways if kind == one)
    found = {(one, least), (two, min(count for kind, count in ways if kind == two))}
    return sorted(found | ({(one, larger[number % len(larger)])} if larger else set()))


def _believed(
    listed: dict[int, dict[Way, float]], known: dict[int, set[Way]], rows: dict[int, str], remembered: dict[str, Any], snapshot: Snapshot
) -> dict[int, dict[Way, float]]:
    """Measured speeds, and estimates for the rest."""
    seen: dict[str, dict[str, float]] = remembered["seen"]
    names = sorted(seen, key=int)
    counts = sorted(
        {int(cell.partition("/")[2]) for cells in seen.values() for cell in cells} | {n for ways in listed.values() for _, n in ways}
    )
    if not any(seen.values()):
        return listed
    place = {count: k for k, count in enumerate(counts)}
    table: Floats = np.full((len(names), len(snapshot.cluster.types), len(counts)), np.nan)
    for k, name in enumerate(names):
        for cell, speed in seen[name].items():
            kind, _, count = cell.partition("/")
            if int(kind) < table.shape[1]:
                table[k, int(kind), place[int(count)]] = speed
    filled = ElasticFilter(sweeps=_SWEEPS).complete(table)
    number = {name: k for k, name in enumerate(names)}
    return {
        job: {way: ways[way] if way in known[job] else float(filled[number[rows[job]], way[0], place[way[1]]]) for way in ways}
        for job, ways in listed.items()
    }


def put_to_the_test(ways: HeetWays, grants: dict[int, Way], rows: list[int]) -> dict[str, dict[str, float]]:
    """What is believed of the ways that jobs are given without having been measured in them."""
    return {str(rows[job]): {_text(way): ways.speed[job][way]} for job, way in grants.items() if way not in ways.known[job]}


def _text(way: Way) -> str:
    return f"{way[0]}/{way[1]}"
