"""Rounds of a job on the same servers, joined to one spell with devices of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gantline.engine.imitations.intervals import DeviceSeats
from gantline.systems.synergy.imitation.jobs import Sku, SynergyJob
from gantline.systems.synergy.policies.servers import Seats


class ServerSpell(NamedTuple):
    """A job held these devices from begin to end."""

    row: int
    begin: float
    end: float
    devices: list[int]


def joined(rounds: Sequence[tuple[float, SynergyJob, Seats]], length: float, sku: Sku, servers: int) -> list[ServerSpell]:
    """Spells in the order in which they begin. The original counts GPUs by server; here each spell keeps the devices it began with."""
    last: dict[int, int] = {}
    found: list[tuple[int, float, float, Seats]] = []
    for begin, job, seats in rounds:
        at = last.get(job.row)
        if at is not None and found[at][2] == begin and found[at][3] == seats:
            found[at] = (job.row, found[at][1], begin + length, seats)
        else:
            last[job.row] = len(found)
            found.append((job.row, begin, begin + length, seats))
    free = DeviceSeats(sku.gpus * servers)
    return [
        ServerSpell(
            row, begin, end, [one for server, gpus in seats.items() for one in free.take(gpus, begin, end, server * sku.gpus, sku.gpus)]
        )
        for row, begin, end, seats in found
    ]
