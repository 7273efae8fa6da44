"""How many devices an assignment gives, and the same assignment with another number."""

from __future__ import annotations

from dataclasses import replace

from gantline.core.columns import Job, Option
from gantline.core.plan import Assignment
from gantline.core.tables import Tables


def size_of(t: Tables, row: int, item: Assignment) -> int:
    """How many devices an assignment gives."""
    if item.parts:
        return sum(part.count * part.gpus for part in item.parts)
    if item.devices:
        return len(item.devices)
    if item.gpus >= 0:
        return item.gpus
    return int(t.options.I[Option.GPUS, t.I[Job.OPTION_FIRST, row] + max(item.option, 0)])


def smaller_way(t: Tables, row: int, item: Assignment, most: int) -> Assignment | None:
    """The same with at most so many devices: one of its own options if it has several sizes, else any number from its least on."""
    if item.parts or item.group >= 0:
        return None
    first, count = int(t.I[Job.OPTION_FIRST, row]), int(t.I[Job.OPTION_COUNT, row])
    own = {int(size) for size in t.options.I[Option.GPUS, first : first + count]}
    fitting = (
        [size for size in own if 0 < size <= most] if len(own) > 1 else ([most] if most >= max(1, int(t.I[Job.MIN_GPUS, row])) else [])
    )
    if not fitting:
        return None
    if item.devices:
        return replace(item, devices=item.devices[: max(fitting)], gpus=-1, option=-1)
    kind = item.type if item.option < 0 else int(t.options.I[Option.TYPE, first + item.option])
    return replace(item, option=-1, gpus=max(fitting), type=kind)


def larger_way(t: Tables, row: int, item: Assignment, least: int) -> Assignment | None:
    """The same with at least so many devices, which the engine places."""
    if item.parts or item.group >= 0:
        return None
    first = int(t.I[Job.OPTION_FIRST, row])
    kind = item.type if item.option < 0 else int(t.options.I[Option.TYPE, first + item.option])
    return replace(item, devices=(), nodes=(), option=-1, gpus=least, type=kind)
