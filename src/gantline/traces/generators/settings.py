"""What a generated workload looks like, and how each setting is read from text or YAML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_type_hints

from gantline.core.errors import near
from gantline.traces.generators.durations import BySize, Duration, LogNormal, durations_of
from gantline.traces.generators.given import Mix, Reader, fault, mix_of, number, read_given, seconds, whole, word
from gantline.traces.schema import OUTCOMES


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


PATTERNS = ("poisson", "gamma", "weibull")
_ONE_GPU = Mix((1,), (1.0,))
_AN_HOUR_OR_SO: Duration = LogNormal(3600.0, 1.5)
_FLAT_DAY = (1.0,) * 24
_FLAT_WEEK = (1.0,) * 7


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkloadSettings:
    """Settings of the generic generator; times are seconds, times of day count from where the trace begins.

    How many jobs, how fast: two of ``jobs``, ``length`` and a rate. The rate is ``jobs_per_hour``, or ``load`` as a
    fraction of the ``gpus`` of a cluster (1.0 asks for exactly what the cluster can give).
    """

    jobs: int | None = None
    length: float | None = None
    jobs_per_hour: float | None = None
    load: float | None = None
    gpus: int | None = None

    sizes: Mix[int] = _ONE_GPU
    durations: Duration | BySize = _AN_HOUR_OR_SO
    shortest: float = 1.0
    longest: float = 365 * 86400.0

    interarrival: str = "poisson"
    variation: float = 1.0
    hours: tuple[float, ...] = _FLAT_DAY
    weekdays: tuple[float, ...] = _FLAT_WEEK
    start_hour: int = 0
    start_day: int = 0

    users: int | Mix[str] = 0
    user_skew: float = 1.0
    queues: int | Mix[str] = 0
    queue_skew: float = 1.0

    models: Mix[str] | None = None
    types: Mix[str] | None = None
    speeds: Mix[str] | None = None
    sensitivity: tuple[float, float] = (1.0, 1.0)
    priorities: Mix[float] | None = None
    outcomes: Mix[str] | None = None

    deadline_share: float = 0.0
    deadline_slack: tuple[float, float] = (1.5, 3.0)
    elastic_share: float = 0.0
    elastic_range: tuple[float, float] = (0.5, 2.0)
    cpus_per_gpu: float = 0.0
    memory_per_gpu: float = 0.0

    def __post_init__(self) -> None:
        _check_amount(self)
        _check_shape(self)

    @classmethod
    def read(cls, given: Mapping[str, object], base: WorkloadSettings | None = None) -> WorkloadSettings:
        """Settings from a mapping (YAML) or from ``key=value`` texts, on top of ``base``."""
        values = read_given(given, _READERS)
        return cls(**values) if base is None else replace(base, **(_displaced(values, base) | values))


_BY_TYPE: dict[object, Reader] = {
    int: whole,
    int | None: _optional(whole),
    float: number,
    float | None: _optional(number),
    str: word,
    tuple[float, ...]: _curve,
    tuple[float, float]: _span,
    Mix[int]: _mix(whole),
    Mix[float] | None: _mix(number),
    Mix[str] | None: _mix(word),
    int | Mix[str]: _count_or_mix,
    Duration | BySize: durations_of,
}
_TIMES: dict[str, Reader] = {"length": _optional(seconds), "shortest": seconds, "longest": seconds}
_READERS = {name: _BY_TYPE[kind] for name, kind in get_type_hints(WorkloadSettings).items()} | _TIMES


def _displaced(values: Mapping[str, object], base: WorkloadSettings) -> dict[str, None]:
    """Those of the base's jobs, length and rate that must go because others were given: two of three remain."""
    amounts, rates = ("jobs", "length"), ("jobs_per_hour", "load")
    new_amounts = [name for name in amounts if values.get(name) is not None]
    new_rates = [name for name in rates if values.get(name) is not None]
    old_rates = [name for name in rates if getattr(base, name) is not None]
    gone: list[str] = []
    if new_rates or (len(new_amounts) == 2 and old_rates):
        gone += [name for name in old_rates if name not in new_rates]
    if new_rates or (old_rates and len(new_amounts) == 1):
        kept = new_amounts or [name for name in amounts if getattr(base, name) is not None][:1]
        gone += [name for name in amounts if name not in kept]
    return dict.fromkeys(gone)


def _check_amount(given: WorkloadSettings) -> None:
    for name in ("jobs", "length", "jobs_per_hour", "load", "gpus"):
        value = getattr(given, name)
        if value is not None and value <= 0:
            raise fault(name, f"{value} is not above zero")
    rates = [name for name in ("jobs_per_hour", "load") if getattr(given, name) is not None]
    if len(rates) == 2:
        raise fault("load", "a load and jobs_per_hour contradict each other", "give one of them")
    if "load" in rates and given.gpus is None:
        raise fault("gpus", "a load needs the number of GPUs that it is a fraction of", "give gpus=64, for instance")
    count = len(rates) + (given.jobs is not None) + (given.length is not None)
    if count != 2:
        variants = "give two of: jobs, length, and a rate (load with gpus, or jobs_per_hour)"
        raise fault("jobs", "the amount of work is not determined" if count < 2 else "the amount is given thrice", variants)


def _check_shape(given: WorkloadSettings) -> None:
    if min(given.sizes.values) < 1:
        raise fault("sizes", "a job needs at least one GPU")
    if given.gpus is not None and max(given.sizes.values) > given.gpus:
        most = max(given.sizes.values)
        raise fault("sizes", f"{most} GPUs can never fit into {given.gpus}", "raise gpus, or leave out that size")
    if isinstance(given.durations, BySize):
        bare = [size for size in given.sizes.values if given.durations.of(size) is None]
        if bare:
            raise fault("durations", f"no range of sizes covers {bare[0]} GPUs")
    if not 0 < given.shortest <= given.longest:
        raise fault("shortest", "must be above zero and not above longest")
    if given.interarrival not in PATTERNS:
        raise fault("interarrival", f"'{given.interarrival}' is not known", near(given.interarrival, PATTERNS))
    if not 0.01 <= given.variation <= 20:
        raise fault("variation", f"{given.variation} is not between 0.01 and 20")
    if given.interarrival == "poisson" and given.variation != 1:
        raise fault("variation", "a Poisson process has variation 1", "give interarrival=gamma or weibull with it")
    for name, count in (("hours", 24), ("weekdays", 7)):
        curve = getattr(given, name)
        if len(curve) != count or min(curve) < 0 or sum(curve) <= 0:
            raise fault(name, f"needs {count} weights of at least zero, not all zero")
    for name, last in (("start_hour", 23), ("start_day", 6)):
        if not 0 <= getattr(given, name) <= last:
            raise fault(name, f"{getattr(given, name)} is not between 0 and {last}")
    for name in ("deadline_share", "elastic_share"):
        if not 0 <= getattr(given, name) <= 1:
            raise fault(name, f"{getattr(given, name)} is not between 0 and 1")
    for name in ("deadline_slack", "elastic_range", "sensitivity"):
        low, high = getattr(given, name)
        if low < 0 or high < low:
            raise fault(name, f"{low}-{high} is not a range of numbers of at least zero")
    if given.elastic_range[0] > 1 or given.elastic_range[1] < 1:
        raise fault("elastic_range", "must contain 1, the size asked for")
    for name in ("users", "queues", "user_skew", "queue_skew", "cpus_per_gpu", "memory_per_gpu"):
        value = getattr(given, name)
        if not isinstance(value, Mix) and value < 0:
            raise fault(name, f"{value} is below zero")
    for outcome in given.outcomes.values if given.outcomes else ():
        if outcome not in OUTCOMES:
            raise fault("outcomes", f"'{outcome}' is not an outcome", near(outcome, OUTCOMES))
    if given.speeds and min(given.speeds.weights) <= 0:
        raise fault("speeds", "every type needs a speed above zero", "as in v100:1,p100:0.6,k80:0.25")
