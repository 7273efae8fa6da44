"""Which servers go back, so that the fewest jobs are stopped (Lyra, EuroSys 2023, section 4).

A job that can do without its workers on a server is scaled in there, and costs nothing. One that cannot is stopped as a whole; it counts
on each of its servers by one over their number, because once it is stopped its other servers are free of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

Seats = Mapping[int, Mapping[int, int]]  # job -> server -> devices


def cheapest(seats: Seats, least: Mapping[int, int], servers: Sequence[int], count: int) -> list[int]:
    """Servers by what they cost now, one after the other: the cheapest, then the one with the fewest devices in use, then the first."""
    left = {job: dict(held) for job, held in seats.items()}
    chosen: list[int] = []
    while len(chosen) < min(count, len(servers)):
        cost, used = dict.fromkeys(servers, 0.0), dict.fromkeys(servers, 0)
        for job, held in left.items():
            total = sum(held.values())
            for server, devices in held.items():
                if server in cost:
                    used[server] += devices
                    cost[server] += 0.0 if total - devices >= least[job] else 1.0 / len(held)
        rest = [server for server in servers if server not in chosen]
        best = min(rest, key=lambda server: (round(cost[server], 9), used[server], server))
        chosen.append(best)
        for job in [job for job, held in left.items() if best in held]:
            stays = {server: devices for server, devices in left[job].items() if server != best}
            left[job] = stays if sum(stays.values()) >= least[job] else {}
    return chosen


def fewest_jobs(seats: Seats, servers: Sequence[int], count: int) -> list[int]:
    """Servers with the fewest jobs on them."""
    jobs = {server: sum(server in held for held in seats.values()) for server in servers}
    return sorted(servers, key=lambda server: (jobs[server], server))[:count]


def at_random(servers: Sequence[int], count: int, draw: np.random.Generator) -> list[int]:
    """Any servers."""
    return [servers[place] for place in draw.permutation(len(servers))[:count].tolist()]
