"""IRFsim's sample pass: the first thing in every event."""

from __future__ import annotations

from gantline.policies.allox.artifact.queued import Queued, Start, room
from gantline.policies.allox.ways import Floats


def start_samples(queued: Queued, free: Floats) -> tuple[list[Start], bool]:
    """Which samples start, and whether full jobs may be scheduled in this event.

    Round r looks at each user's r-th sample among those still queued, so every start makes the next round step over one.
    The first sample that does not fit closes its kind; with both kinds closed, the event is over.
    """
    free = free.copy()
    waiting = [[row for row in queue if queued.sample[row] >= 0] for queue in queued.queues()]
    closed: set[int] = set()
    starts: list[Start] = []
    r = 0
    while any(r < len(rows) for rows in waiting):
        for rows in waiting:
            if r >= len(rows):
                continue
            row, kind = rows[r], int(queued.sample[rows[r]])
            if kind in closed:
                continue
            if room(queued.need[row, kind], free):
                free -= queued.need[row, kind]
                starts.append(Start(row, kind))
                del rows[r]
            else:
                closed.add(kind)
        r += 1
    return starts, len(closed) < 2
