"""Jobs and maps of free GPUs for the plain reading of ElasticFlow's simulator."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

Map = dict[float, int]  # GPUs from each breakpoint on


@dataclass(eq=False)
class Job:
    submit: float
    left: float
    deadline: float  # infinity: best effort
    speed: dict[int, float]
    top: int
    gpus: int = 0
    end: float = math.nan
    exact: float = math.nan
    lost: float = 0.0
    plan: Map = field(default_factory=dict)
    start: float = math.nan
    rejected: bool = False
    seen: float = math.nan  # the round that saw its end
    next_gpus: int = 0
    next_end: float = math.nan
    history: list[tuple[float, int]] = field(default_factory=list)

    def level(self, gpus: float) -> int:
        return max((size for size in self.speed if size <= min(gpus, self.top)), default=0)

    def above(self) -> int | None:
        return min((size for size in self.speed if self.gpus < size <= self.top), default=None)


def canonical(given: Map) -> Map:
    found: Map = {}
    for time in sorted(given):
        if not found or given[time] != found[max(found)]:
            found[time] = given[time]
    return found


def value_at(given: Map, time: float) -> int:
    return given[max(t for t in given if t <= time)]
