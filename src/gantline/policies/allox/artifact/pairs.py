"""IRFsim's AlloXPlus: pairs compared by whole seconds of difference, in the order in which Java's sort compares them."""

from __future__ import annotations

import numpy as np

from gantline.policies.allox.artifact.queued import CPU, GPU, Queued, Start, room
from gantline.policies.allox.artifact.sort import java_sorted
from gantline.policies.allox.ways import Floats

Pair = tuple[int, int]


def allox_plus(queued: Queued, free: Floats, score: Floats, gain: Floats, now: float, age: float = 500.0) -> tuple[list[Start], Floats]:
    """What starts, and the scores afterwards; after every start the list of pairs is made and sorted anew.

    ``gain[row, device]`` is what a start adds to its user's score, by true times; the score must be a running sum, for its
    rounding decides between equal users.
    """
    free, score = free.copy(), score.copy()
    queues = [sorted(queued.jobs(queue), key=lambda row: float(queued.arrival[row])) for queue in queued.queues()]
    time, aged = queued.time.tolist(), (now - queued.arrival >= age).tolist()
    starts: list[Start] = []

    def compare(a: Pair, b: Pair) -> int:
        if aged[a[0]] != aged[b[0]]:
            return -1 if aged[a[0]] else 1
        return int(time[a[0]][a[1]] - time[b[0]][b[1]])

    while True:
        by_score = np.argsort(score[: len(queues)], kind="stable").tolist()
        pairs = [(row, device) for user in by_score for row in queues[user] for device in (CPU, GPU)]
        if not any(room(queued.need[pair], free) for pair in pairs):
            return starts, score
        row, device = next(pair for pair in java_sorted(pairs, compare) if room(queued.need[pair], free))
        user = int(queued.owner[row])
        queues[user].remove(row)
        free -= queued.need[row, device]
        score[user] += gain[row, device]
        starts.append(Start(row, device))
