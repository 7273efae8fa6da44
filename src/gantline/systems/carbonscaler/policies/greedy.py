"""CarbonScaler's plan of one elastic job: server by server to the slot in which it does most work per gram.

With work per watt that falls with every further server no other plan in whole server-slots does as much work for less carbon (Hanafy et
al., section 4). It may do more work than there is, so that another plan does the job for less (`cleanest`). Ties go to the earlier slot,
then to fewer servers; the authors' program leaves them to an unstable sort.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import NamedTuple

from gantline.core.arrays import Floats, Ints


class ServerProfile(NamedTuple):
    """What a job does and draws with each number of servers that it may have, in rising order."""

    servers: Sequence[int]
    throughput: Sequence[float]
    """Work per second."""
    power: Sequence[float]
    """Watts."""


def greedy(profile: ServerProfile, work: float, carbon: Floats, seconds: Floats, room: Ints) -> list[int] | None:
    """How many servers in each slot; None: even with all of them the work is not done by the last slot.

    `carbon` is the intensity in each slot, `seconds` how long the slot works, `room` how many servers it still has. A step of the
    profile is taken only after the one below it; a slot's first step is the least number of servers that the job may have.
    """
    if not profile.servers:
        return None
    steps = [0] * len(carbon)  # entries of the profile that each slot has taken
    heap = [(-_gain(profile, 0, carbon[slot]), slot, 0) for slot in range(len(carbon)) if seconds[slot] > 0]
    heapq.heapify(heap)
    done = [0.0] * len(carbon)
    while reduce(add, done, 0.0) < work:  # sum() makes up for lost digits from Python 3.12 on, and a plan may just suffice
        if not heap:
            return None
        _, slot, entry = heapq.heappop(heap)
        if profile.servers[entry] > room[slot]:
            continue
        steps[slot], done[slot] = entry + 1, profile.throughput[entry] * float(seconds[slot])
        if entry + 1 < len(profile.servers) and profile.throughput[entry + 1] > profile.throughput[entry]:
            heapq.heappush(heap, (-_gain(profile, entry + 1, carbon[slot]), slot, entry + 1))
    return [profile.servers[count - 1] if count else 0 for count in steps]


def _gain(profile: ServerProfile, entry: int, carbon: float) -> float:
    """Work per gram of a step; where nothing is emitted it comes first."""
    more_work = profile.throughput[entry] - (profile.throughput[entry - 1] if entry else 0.0)
    more_power = profile.power[entry] - (profile.power[entry - 1] if entry else 0.0)
    grams = more_power * carbon
    return more_work / grams if grams > 0 else float("inf")
