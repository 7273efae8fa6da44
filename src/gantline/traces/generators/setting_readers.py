"""How each setting is read from YAML values or command-line text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gantline.traces.generators.duration_text import durations_of
from gantline.traces.generators.given import Reader
from gantline.traces.generators.mixes import Mix, mix_of
from gantline.traces.generators.quantities import fault, number, seconds, whole, word


def _mix(read: Callable[[object, str], object]) -> Reader:
    return lambda value, field: None if value is None else mix_of(value, field, read)  # type: ignore[type-var]


def _optional(read: Reader) -> Reader:
    return lambda value, field: None if value is None else read(value, field)


def _count_or_mix(value: object, field: str) -> object:
    """A number of people (their weights follow Zipf's law), or names with weights."""
    if isinstance(value, Mix | dict) or (isinstance(value, str) and not value.strip().isdigit()):
        return mix_of(value, field, word)
    return whole(value, field)


def _curve(value: object, field: str) -> tuple[float, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, Sequence):
        raise fault(field, f"{value!r} is not a list of numbers")
    return tuple(number(part, field) for part in parts)


def _span(value: object, field: str) -> tuple[float, float]:
    parts = value.replace("-", ",").split(",") if isinstance(value, str) else value
    found = _curve(parts, field) if isinstance(parts, Sequence) else (number(parts, field),) * 2
    if len(found) == 1:
        found *= 2
    if len(found) != 2:
        raise fault(field, f"{value!r} is not a range", "write low-high, as in 1.2-2")
    return found[0], found[1]


READERS: dict[str, Reader] = {
    "jobs": _optional(whole),
    "length": _optional(seconds),
    "jobs_per_hour": _optional(number),
    "load": _optional(number),
    "gpus": _optional(whole),
    "sizes": _mix(whole),
    "durations": durations_of,
    "shortest": seconds,
    "longest": seconds,
    "interarrival": word,
    "variation": number,
    "hours": _curve,
    "weekdays": _curve,
    "start_hour": whole,
    "start_day": whole,
    "users": _count_or_mix,
    "user_skew": number,
    "queues": _count_or_mix,
    "queue_skew": number,
    "models": _mix(word),
    "types": _mix(word),
    "speeds": _mix(word),
    "sensitivity": _span,
    "priorities": _mix(number),
    "outcomes": _mix(word),
    "deadline_share": number,
    "deadline_slack": _span,
    "elastic_share": number,
    "elastic_range": _span,
    "cpus_per_gpu": number,
    "memory_per_gpu": number,
}
"""One reader for each setting; a missing one is a mistake of ours that a test finds."""
