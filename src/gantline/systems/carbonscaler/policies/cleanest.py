"""The plan with which one elastic job emits least until its work is done: exact, by a search over states.

Every server of a slot works and draws for the whole slot, but for the last slot that a plan uses: the job ends there when its work is
done. Slot by slot, a state is the work that is done and the carbon that is emitted. Of two states the one that has done less for more
carbon is dropped, and so is every state from which even fractions of servers in the slots to come would emit as much as the best plan
known. That is the greedy plan first; among plans that emit the same it stands.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.systems.carbonscaler.policies.greedy import ServerProfile, greedy

_EQUAL = 1e-9  # plans that emit so nearly the same emit the same


class _Ways(NamedTuple):
    """What each number of servers does and emits in one slot, none first; `pause` is the part of it in which they draw and do not work."""

    adds: Floats
    costs: Floats
    pause: float

    def until_done(self, way: int | Ints, work: Floats | float) -> Floats | float:
        """What is emitted until so much work is done."""
        return self.costs[way] * (self.pause + (1.0 - self.pause) * work / self.adds[way])


def cleanest(profile: ServerProfile, work: float, carbon: Floats, seconds: Floats, room: Ints, lasts: Floats) -> list[int] | None:
    """As `greedy`; a server draws power for as long as the slot `lasts`, and works for the last `seconds` of it."""
    first = greedy(profile, work, carbon, seconds, room)
    if first is None or work <= 0.0:
        return first
    slots = []
    for most, works, level, long in zip(room.tolist(), seconds.tolist(), carbon.tolist(), lasts.tolist()):
        count = sum(size <= most for size in profile.servers) if works > 0 else 0
        adds, costs = np.array([0.0, *profile.throughput[:count]]) * works, np.array([0.0, *profile.power[:count]]) * level * long
        slots.append(_Ways(adds, costs, 1.0 - works / long if long > 0 else 0.0))
    places = {size: k + 1 for k, size in enumerate(profile.servers)} | {0: 0}
    known, emitted = _until_done([places[size] for size in first], slots, work)
    found = _search(slots, work, emitted) or known
    return [0 if k == 0 else profile.servers[k - 1] for k in found] + [0] * (len(first) - len(found))


def _until_done(plan: list[int], slots: list[_Ways], work: float) -> tuple[list[int], float]:
    """The plan up to the slot in which the work is done, and what it emits."""
    emitted = 0.0
    for slot, way in enumerate(plan):
        ways = slots[slot]
        if way and work <= ways.adds[way]:
            return plan[: slot + 1], emitted + float(ways.until_done(way, work))
        work, emitted = work - float(ways.adds[way]), emitted + float(ways.costs[way])
    return plan, emitted


def _search(slots: list[_Ways], work: float, known: float) -> list[int] | None:
    """The place in each slot's ways of the best plan; None: no plan is better than the known one."""
    best, most, bounds = None, known * (1.0 - _EQUAL), _Bounds(slots)
    done, grams = np.zeros(1), np.zeros(1)
    steps: list[tuple[Ints, Ints]] = []  # of each slot: the state before, and the way taken
    for slot, ways in enumerate(slots):
        for way in range(1, len(ways.adds)):
            emitted = np.where(work - done <= ways.adds[way], grams + ways.until_done(way, work - done), np.inf)
            state = int(np.argmin(emitted))
            if emitted[state] < most:
                most, best = float(emitted[state]) * (1.0 - _EQUAL), (*_path(steps, state), way)
        total, spent = (done[:, None] + ways.adds).ravel(), (grams[:, None] + ways.costs).ravel()
        open_ = np.flatnonzero((total < work) & (spent + bounds.least(slot + 1, work - total) < most))
        if not len(open_):
            break
        order = open_[np.lexsort((-total[open_], spent[open_]))]
        kept = order[np.flatnonzero(np.diff(np.maximum.accumulate(total[order]), prepend=-1.0) > 0.0)]
        steps.append((kept // len(ways.adds), kept % len(ways.adds)))
        done, grams = total[kept], spent[kept]
    return None if best is None else list(best)


def _path(steps: list[tuple[Ints, Ints]], state: int) -> tuple[int, ...]:
    """The ways that led to a state."""
    found = []
    for before, way in reversed(steps):
        found.append(int(way[state]))
        state = int(before[state])
    return tuple(reversed(found))


class _Bounds:
    """The least that work emits in the slots from one on, where servers may be had in fractions."""

    def __init__(self, slots: list[_Ways]) -> None:
        pieces = [(slot, *piece) for slot, ways in enumerate(slots) for piece in _hull(ways.adds, ways.costs)]
        table = np.array(sorted(pieces, key=lambda piece: piece[2] / piece[1])).reshape(-1, 3)
        self._slot, self._adds, self._costs = table.T

    def least(self, slot: int, work: Floats) -> Floats:
        """Infinity: the slots cannot do it."""
        later = self._slot >= slot
        reach = np.concatenate(([0.0], np.cumsum(self._adds[later])))
        emits = np.concatenate(([0.0], np.cumsum(self._costs[later])))
        slack = _EQUAL * reach[-1]
        found: Floats = np.where(work > reach[-1] + slack, np.inf, np.interp(work, reach, emits))
        return found


def _hull(adds: Floats, costs: Floats) -> list[tuple[float, float]]:
    """The steps of the convex curve below the ways of a slot, by what they add and cost."""
    found, at = [], 0
    while at + 1 < len(adds):
        slopes = (costs[at + 1 :] - costs[at]) / (adds[at + 1 :] - adds[at])
        best = at + 1 + int(len(slopes) - 1 - np.argmin(slopes[::-1]))
        found.append((float(adds[best] - adds[at]), float(costs[best] - costs[at])))
        at = best
    return found
