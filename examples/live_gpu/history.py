"""What live runs say of profiles: starts, resumes and ends by size, speeds by kind, and how far single jobs lie from their kind.

A prediction of one policy uses the runs of the others in the same folder, as an operator who tries a new policy has the jobs of the old
one. Runs that did not note their steps say how far single jobs differ, and nothing else.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import workload
from gantline.performance.bundle import Bundle, Speed
from gantline.performance.life_spread import FEWEST, WholeLife, spread_of_lives

_ENOUGH = 3  # of a part, for its mean to be believed
_AT_ONCE = 0.1  # seconds between orders of one decision
_LONG = 1.0  # seconds of steps from which a speed is read

Run = Mapping[str, Any]


@dataclass
class Seen:
    """How far runs lay from the profiles."""

    seconds: dict[tuple[str, int], list[float]] = field(
        default_factory=dict
    )  # "start", "resume" or "end" and size: how much longer it took
    speeds: dict[str, list[float]] = field(default_factory=dict)  # by kind: speed over that of the profile in the same company

    def __iadd__(self, other: Seen) -> Seen:
        for mine, theirs in ((self.seconds, other.seconds), (self.speeds, other.speeds)):
            for key, values in theirs.items():
                mine.setdefault(key, []).extend(values)  # type: ignore[arg-type]
        return self

    def lines(self, name: str) -> list[str]:
        """A line for each part that was seen: its mean, and how often it was seen."""
        found = []
        for part in ("start", "resume", "end"):
            by_size = {size: values for (what, size), values in sorted(self.seconds.items()) if what == part}
            if by_size:
                said = ", ".join(f"{size}: {statistics.fmean(values):+.2f} s ({len(values)})" for size, values in by_size.items())
                found.append(f"{name:10} {part:6} beside the profile, by size: {said}")
        if self.speeds:
            said = ", ".join(f"{kind}: {statistics.fmean(values) - 1.0:+.1%} ({len(values)})" for kind, values in self.speeds.items())
            found.append(f"{name:10} speed  beside the profile, by kind: {said}")
        return found


def seen_in(run: Run, bundle: Bundle, types: Sequence[str]) -> Seen:
    """The parts of one run; `types` are those of the devices."""
    found = Seen()
    if not any(row.get("steps") for row in run["jobs"]):
        return found
    held = [one for job in range(len(run["jobs"])) for one in _holdings(run, job, bundle, types)]
    for job, row in enumerate(run["jobs"]):
        mine, lives = [one for one in held if one.job == job], row.get("steps", [])
        if len(lives) != len(mine):  # an incarnation ended before its first step
            continue
        for at, (one, (first, before, last, after)) in enumerate(zip(mine, lives)):
            speed = one.speed
            took = first - one.start - before * speed.line.seconds
            usual = (_resume(speed) if at else speed.line.startup - _leave(speed)) + speed.together * _starting(held, one)
            found.seconds.setdefault(("resume" if at else "start", one.size), []).append(took - usual)
            if last - first >= _LONG:
                expected = (1.0 - (1.0 - speed.crowded) * _busy(held, one, first, last, len(types))) / speed.line.seconds
                found.speeds.setdefault(row["kind"], []).append((after - before) / (last - first) / expected)
        found.seconds.setdefault(("end", mine[-1].size), []).append(row["arrival"] + row["jct"] - lives[-1][2] - _leave(mine[-1].speed))
    return found


def _leave(speed: Speed) -> float:
    return speed.leave or 0.0


def _resume(speed: Speed) -> float:
    return speed.line.startup - _leave(speed) if speed.resume is None else speed.resume


@dataclass(frozen=True)
class _Holding:
    """Devices that a job held."""

    job: int
    start: float
    end: float
    size: int
    speed: Speed


def _holdings(run: Run, job: int, bundle: Bundle, types: Sequence[str]) -> Iterator[_Holding]:
    row, orders = run["jobs"][job], [order for order in run["orders"] if order["job"] == job]
    for order, after in zip(orders, [*orders[1:], None]):
        if order["order"] == "start":
            speed = bundle[row["kind"]].alone[types[order["devices"][0]], len(order["devices"])]
            end = row["arrival"] + row["jct"] if after is None else after["time"] + _leave(speed)
            yield _Holding(job, order["time"], end, len(order["devices"]), speed)


def _starting(held: Sequence[_Holding], one: _Holding) -> int:
    """Other devices on which one began at the same time."""
    return sum(other.size for other in held if other.job != one.job and abs(other.start - one.start) < _AT_ONCE)


def _busy(held: Sequence[_Holding], one: _Holding, first: float, last: float, devices: int) -> float:
    """The part of the other devices that was busy, on average over a time."""
    used = sum(other.size * max(0.0, min(last, other.end) - max(first, other.start)) for other in held if other.job != one.job)
    return used / (last - first) / (devices - one.size) if devices > one.size else 0.0


def refined(bundle: Bundle, runs: Sequence[Run], works: Sequence[workload.Work], types: Sequence[str]) -> Bundle:
    """The profiles as these runs have shown them."""
    seen = Seen()
    for run in runs:
        seen += seen_in(run, bundle, types)
    if not seen.speeds:
        return replace(bundle, lives=_spread(runs, works, types))
    longer = {key: statistics.fmean(values) for key, values in seen.seconds.items() if len(values) >= _ENOUGH}
    faster = {kind: statistics.fmean(values) for kind, values in seen.speeds.items() if len(values) >= _ENOUGH}
    for kind, profile in bundle.jobs.items():
        alone = {(type, size): _changed(speed, size, faster.get(kind, 1.0), longer) for (type, size), speed in profile.alone.items()}
        bundle = bundle.with_profile(replace(profile, alone=alone))
    known = [(value / faster[kind]) for kind, values in seen.speeds.items() if kind in faster for value in values]
    if len(known) < FEWEST:
        return bundle
    wider = math.sqrt(len(known) / max(len(known) - len(faster), 1))  # the means have taken a part of the differences for themselves
    return replace(bundle, lives=tuple(1.0 + (value - 1.0) * wider for value in known))


def _changed(speed: Speed, size: int, faster: float, longer: Mapping[tuple[str, int], float]) -> Speed:
    line = speed.line
    later, resumed = longer.get(("start", size), 0.0) + longer.get(("end", size), 0.0), longer.get(("resume", size), 0.0)
    changed = replace(
        line,
        startup=max(line.startup + later, 0.0),
        **{name: getattr(line, name) / faster for name in ("seconds", "low", "high")},
    )
    samples = {
        **speed.samples,
        "start": tuple(max(one + later, 0.0) for one in speed.samples.get("start", ())),
        "resume": tuple(max(one + resumed, 0.0) for one in speed.samples.get("resume", ())),
    }
    return replace(speed, line=changed, resume=max(_resume(speed) + resumed, 0.0), samples=samples)


def _spread(runs: Sequence[Run], works: Sequence[workload.Work], types: Sequence[str]) -> tuple[float, ...]:
    lives = [[*_whole_lives(run, works, types)] for run in runs]
    return spread_of_lives(lives) if sum(map(len, lives)) >= FEWEST else ()


def _whole_lives(run: Run, works: Sequence[workload.Work], types: Sequence[str]) -> Iterator[WholeLife]:
    """The jobs of a run that had one start and no stop."""
    orders: dict[int, list[Mapping[str, Any]]] = {}
    for order in run["orders"]:
        orders.setdefault(order["job"], []).append(order)
    for place, (only, *more) in orders.items():
        if not more:
            work, job, held = works[place], run["jobs"][place], only["devices"]
            seconds = job["arrival"] + job["jct"] - only["time"]
            yield WholeLife(work.kind, len(held), work.seconds[types[held[0]], len(held)], seconds)
