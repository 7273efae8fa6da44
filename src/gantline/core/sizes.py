"""The sizes that a job may have, with the speed that is believed of each: the same on both clocks, whoever described the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gantline.core.options import Option


class JobSize(NamedTuple):
    """One size of a job on one device type; `Assignment(job, type=size.type, gpus=size.gpus)` gives it."""

    type: int
    gpus: int
    rate: float  # work per second, as it is believed


def sizes_of_job(name: str, ways: Sequence[Option], least: int, most: int, model: Any = None) -> list[JobSize]:
    """Sizes per type in rising order. A job that lists several sizes has those within its bounds; one that lists a single size and a range
    has every size in it, as fast as the performance model says, else in proportion (which is what the engine assumes, too)."""
    found: list[JobSize] = []
    for kind in dict.fromkeys(way.type for way in ways if way.gpus > 0):
        listed = {way.gpus: way.rate for way in sorted(ways, key=lambda way: way.rate) if way.type == kind and way.gpus > 0}
        if len(listed) > 1 or least >= most:
            own = {gpus: rate for gpus, rate in listed.items() if len(listed) == 1 or least <= gpus <= most}
        else:
            ((one, rate),) = listed.items()
            own = {gpus: rate * gpus / one for gpus in range(max(least, 1), most + 1)}
            for gpus in own:
                told = None if model is None or gpus == one else model.rate(name, kind, gpus)
                own[gpus] = own[gpus] if told is None else float(told)
        found += [JobSize(kind, gpus, own[gpus]) for gpus in sorted(own) if own[gpus] > 0.0]
    return found
