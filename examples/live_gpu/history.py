"""What live runs say of profiles: starts, resumes and ends by size, speeds by kind, and how far single jobs lie from their kind.

A prediction of one policy uses the runs of the others in the same folder, as an operator who tries a new policy has the jobs of the old
one. Runs that did not note their steps say how far single jobs differ, and nothing else.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import workload

from gantline.core.slices import whole_and_percent
from gantline.models.profiles.bundle import Bundle, SampledLine, Speed
from gantline.models.profiles.colocation_fit import FEWEST, WholeLife, spread_of_lives

_ENOUGH = 3  # of a part, for its mean to be believed
_AS_ITS_SIZE = 5  # a kind starts as all gangs of its size do, with the weight of so many starts of its own
_AT_ONCE = 0.1  # seconds between orders of one decision
_LONG = 1.0  # seconds of steps from which a speed is read

Run = Mapping[str, Any]


class Part(NamedTuple):
    """A start, a resume or an end that was seen, and what the profile says of it."""

    what: str
    kind: str
    size: int
    seconds: float
    usual: float
    beside: int = 0  # other devices on which one began at the same time


@dataclass
class Seen:
    """What runs have shown, beside the profiles."""

    parts: list[Part] = field(default_factory=list)
    speeds: dict[str, list[float]] = field(default_factory=dict)  # by kind: speed over that of the profile beside the same others

    def __iadd__(self, other: Seen) -> Seen:
        self.parts += other.parts
        for kind, values in other.speeds.items():
            self.speeds.setdefault(kind, []).extend(values)
        return self

    def lines(self, name: str) -> list[str]:
        """A line for each part that was seen: its mean, and how often it was seen."""
        found = []
        for what in ("start", "resume", "end"):
            sizes = sorted({part.size for part in self.parts if part.what == what})
            longer = {size: [part.seconds - part.usual for part in self.parts if (part.what, part.size) == (what, size)] for size in sizes}
            if longer:
                said = ", ".join(f"{size}: {statistics.fmean(values):+.2f} s ({len(values)})" for size, values in longer.items())
                found.append(f"{name:10} {what:6} beside the profile, by size: {said}")
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
    whole = sum(map(_part, types))
    for job, row in enumerate(run["jobs"]):
        mine, lives, kind = [one for one in held if one.job == job], row.get("steps", []), row["kind"]
        if len(lives) != len(mine):  # an incarnation ended before its first step
            continue
        for at, (one, (first, before, last, after)) in enumerate(zip(mine, lives)):
            speed = one.speed
            took, beside = first - one.start - before * speed.line.seconds, _starting(held, one)
            usual = (resume_of(speed) if at else speed.line.startup - leave_of(speed)) + speed.together * beside
            found.parts.append(Part("resume" if at else "start", kind, one.size, took, usual, beside))
            if last - first >= _LONG:
                near = _busy(held, one, first, last, whole)
                expected = (1.0 - (1.0 - speed.crowded) * near) / speed.line.seconds
                found.speeds.setdefault(kind, []).append((after - before) / (last - first) / expected)
        ended = row["arrival"] + row["jct"] - lives[-1][2]
        found.parts.append(Part("end", kind, mine[-1].size, ended, leave_of(mine[-1].speed)))
    return found


def leave_of(speed: Speed) -> float:
    """Seconds that a stop takes."""
    return speed.leave or 0.0


def resume_of(speed: Speed) -> float:
    """Seconds that a start from what was saved takes until the first step."""
    return speed.line.startup - leave_of(speed) if speed.resume is None else speed.resume


@dataclass(frozen=True)
class _Holding:
    """Devices that a job held."""

    job: int
    start: float
    end: float
    size: int
    part: int  # of the GPU, in percent
    speed: Speed


def _part(type: str) -> int:
    return whole_and_percent(type)[1]


def _holdings(run: Run, job: int, bundle: Bundle, types: Sequence[str]) -> Iterator[_Holding]:
    row, orders = run["jobs"][job], [order for order in run["orders"] if order["job"] == job]
    for order, after in zip(orders, [*orders[1:], None]):
        if order["order"] == "start":
            size, type = len(order["devices"]), types[order["devices"][0]]
            speed = bundle[row["kind"]].alone[type, size]
            end = row["arrival"] + row["jct"] if after is None else after["time"] + leave_of(speed)
            yield _Holding(job, order["time"], end, size, size * _part(type), speed)


def _starting(held: Sequence[_Holding], one: _Holding) -> int:
    """Other devices on which one began at the same time."""
    return sum(other.size for other in held if other.job != one.job and abs(other.start - one.start) < _AT_ONCE)


def _busy(held: Sequence[_Holding], one: _Holding, first: float, last: float, whole: int) -> float:
    """The part of the other devices that was busy, on average over a time."""
    used = sum(other.part * max(0.0, min(last, other.end) - max(first, other.start)) for other in held if other.job != one.job)
    return used / (last - first) / (whole - one.part) if whole > one.part else 0.0


def refined(bundle: Bundle, runs: Sequence[Run], works: Sequence[workload.Work], types: Sequence[str]) -> Bundle:
    """The profiles as these runs have shown them, all together."""
    seen, each = Seen(), [seen_in(run, bundle, types) for run in runs]
    for one in each:
        seen += one
    if not seen.speeds:
        return replace(bundle, lives=_spread(runs, works, types))
    faster = {kind: statistics.fmean(values) for kind, values in seen.speeds.items() if len(values) >= _ENOUGH}
    together = _together([one.parts for one in each])
    parts = [part._replace(seconds=part.seconds - together * part.beside) for part in seen.parts]
    for kind, profile in bundle.jobs.items():
        alone = {
            device_count: replace(_as_seen(speed, kind, device_count[1], faster.get(kind, 1.0), parts), together=together)
            for device_count, speed in profile.alone.items()
        }
        bundle = bundle.with_profile(replace(profile, alone=alone))
    known = [(value / faster[kind]) for kind, values in seen.speeds.items() if kind in faster for value in values]
    if len(known) < FEWEST:
        return bundle
    wider = math.sqrt(len(known) / max(len(known) - len(faster), 1))  # the means have taken a part of the differences for themselves
    return replace(bundle, lives=tuple(1.0 + (value - 1.0) * wider for value in known))


def as_in_each(known: Bundle, runs: Sequence[Run], types: Sequence[str]) -> list[Bundle]:
    """The profiles as in each run by itself: all starts of a run are quicker or slower than in others, and so are all its steps.

    A prediction does not know of which kind the next run is, so each is as likely. `known` is what all of them have shown.
    """
    means = []
    for run in runs:
        seen = seen_in(run, known, types)
        starts = [part.seconds - part.usual for part in seen.parts if part.what != "end"]
        speeds = [value for values in seen.speeds.values() for value in values]
        if starts and speeds:
            means.append((statistics.fmean(starts), statistics.fmean(speeds)))
    if not means:
        return [known]
    usual, pace = (statistics.fmean(values) for values in zip(*means))
    return [_shifted(known, later - usual, faster / pace) for later, faster in means]


def _shifted(bundle: Bundle, later: float, faster: float) -> Bundle:
    for profile in bundle.jobs.values():
        alone = {
            device_count: replace(
                speed, line=_faster(speed, faster, max(speed.line.startup + later, 0.0)), resume=max(resume_of(speed) + later, 0.0)
            )
            for device_count, speed in profile.alone.items()
        }
        bundle = bundle.with_profile(replace(profile, alone=alone))
    return bundle


def _faster(speed: Speed, faster: float, startup: float) -> SampledLine:
    return replace(speed.line, startup=startup, **{name: getattr(speed.line, name) / faster for name in ("seconds", "low", "high")})


def _as_seen(speed: Speed, kind: str, size: int, faster: float, parts: Sequence[Part]) -> Speed:
    starts, resumes, ends = ([part for part in parts if (part.what, part.size) == (what, size)] for what in ("start", "resume", "end"))
    end = _mean(ends, kind, leave_of(speed))
    start = _mean(starts, kind, speed.line.startup - leave_of(speed))
    resume = _mean(resumes, kind, resume_of(speed))
    samples = dict(speed.samples)
    for what, seen, more in (("start", starts, end), ("resume", resumes, 0.0)):
        if len(seen) >= _ENOUGH:
            samples[what] = tuple(max(part.seconds + more, 0.0) for part in seen if part.kind == kind)
    return replace(speed, line=_faster(speed, faster, max(start + end, 0.0)), resume=max(resume, 0.0), samples=samples)


def _together(runs: Sequence[Sequence[Part]]) -> float:
    """Seconds that a start takes longer for each other device on which one begins at once: the slope among equal starts of each run."""
    groups: dict[tuple[int, str, int], list[Part]] = {}
    for place, parts in enumerate(runs):
        for part in parts:
            groups.setdefault((place, part.what, part.size), []).append(part)
    above = below = 0.0
    for group in groups.values():
        usual, others = statistics.fmean(part.seconds for part in group), statistics.fmean(part.beside for part in group)
        above += sum((part.beside - others) * (part.seconds - usual) for part in group)
        below += sum((part.beside - others) ** 2 for part in group)
    return max(above / below, 0.0) if below else 0.0


def _mean(seen: Sequence[Part], kind: str, usual: float) -> float:
    """Of the parts of a size, those of this kind above all; what is usual where too few were seen."""
    if len(seen) < _ENOUGH:
        return usual
    own, all_kinds = [part.seconds for part in seen if part.kind == kind], statistics.fmean(part.seconds for part in seen)
    return (sum(own) + _AS_ITS_SIZE * all_kinds) / (len(own) + _AS_ITS_SIZE)


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
