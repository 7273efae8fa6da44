"""A bundle of profiles: what short runs of jobs on each device type have shown, alone and next to another job.

It is a plain value that one JSON file holds (`to_json`, `Bundle.of`), the throughput table that policies and the
simulator read (`throughputs`), and the start of estimates for what was not measured (`unmeasured.py`).

A speed is a line through short runs. AlloX (EuroSys 2020, section 5) makes two runs per device type and extrapolates.
Repeated runs at the same two lengths tell in addition how far the answer can be trusted: the range is the 95 %
interval of the slope.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.core.json_reader import Reader
from gantline.core.policy import Estimate, Source
from gantline.models.sharing.throughput_table import ThroughputTable

#: 97.5 % quantiles of Student's t by degrees of freedom; from eleven on the last one serves
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.1)


@dataclass(frozen=True, slots=True)
class SampledLine:
    """Seconds of a run of n steps: ``startup + n x seconds``."""

    startup: float
    seconds: float  # per step
    low: float  # between which values `seconds` lies
    high: float

    @property
    def rate(self) -> float:
        """Steps per second."""
        return 1.0 / self.seconds

    def whole(self, steps: float) -> Estimate:
        """The time that a job of so many steps takes, start included."""
        middle, low, high = (self.startup + steps * each for each in (self.seconds, self.low, self.high))
        return Estimate(middle, low, high, Source.PROFILED)


def fit_line(runs: Sequence[tuple[float, float]], resolution: float = 0.01) -> SampledLine:
    """The least-squares line through runs of (steps, seconds); two lengths at least.

    Two runs leave nothing to judge the error by, so it is taken to be that of a clock with this resolution. A line that does not rise says
    that the runs were too short to see a step: then the longest run bounds a step from above, and nothing bounds it from below.
    """
    if len({steps for steps, _ in runs}) < 2:
        raise UsageError("runs of one length show no speed", where="profile", fix="make short runs of two lengths, such as 10 and 60 steps")
    if any(not (steps >= 0 and seconds > 0 and math.isfinite(seconds)) for steps, seconds in runs):
        raise UsageError("a run took no time at all", where="profile", fix="leave out runs that did not start")
    count = len(runs)
    steps_mean = math.fsum(steps for steps, _ in runs) / count
    mean = math.fsum(seconds for _, seconds in runs) / count
    spread = math.fsum((steps - steps_mean) ** 2 for steps, _ in runs)
    slope = math.fsum((steps - steps_mean) * (seconds - mean) for steps, seconds in runs) / spread
    longest, at = max((steps, seconds) for steps, seconds in runs)
    if slope <= 0.0:
        return SampledLine(0.0, at / longest, 0.0, at / longest)
    startup = mean - slope * steps_mean
    if startup < 0.0:  # nothing starts before it is asked to
        startup, slope = 0.0, math.fsum(s * t for s, t in runs) / math.fsum(s * s for s, _ in runs)
    off = math.fsum((seconds - startup - slope * steps) ** 2 for steps, seconds in runs)
    blur = _STUDENT[min(count - 2, len(_STUDENT)) - 1] * math.sqrt(off / (count - 2) / spread) if count > 2 else 0.0
    blur = max(blur, resolution / math.sqrt(spread))
    return SampledLine(startup, slope, max(slope - blur, 0.0), slope + blur)


def two_points(notes: Sequence[tuple[float, int]], steps: int, total: float) -> list[tuple[float, float]]:
    """Two runs (steps, seconds) out of one that noted (seconds since its start, steps made): it, and the same if it had ended early.

    What it did after its last step (a checkpoint, the end of the process) belongs to both. The early one is taken after a quarter of the
    training, so that slow first steps count as part of the start, as they do in a job of any length.
    """
    first, last = notes[0], notes[-1]
    early = next(note for note in notes if note[0] >= first[0] + (last[0] - first[0]) / 4)
    if early[1] >= last[1]:
        raise UsageError("it noted its steps only once", where="profile", fix="longer runs")
    pace = (last[0] - early[0]) / (last[1] - early[1])
    closing = max(0.0, total - last[0] - (steps - last[1]) * pace)
    return [(float(early[1]), early[0] + closing), (float(steps), total)]


FORMAT = "gantline-profiles/1"
_ALONE = ("type", "gpus", "startup", "seconds", "low", "high", "leave", "resume", "crowded", "together", "samples", "runs", "source")
SpeedSource = Literal["measured", "estimated"]
DeviceCount = tuple[str, int]  # device type and number of devices
SAMPLED = ("start", "leave", "resume", "speed")  # what single measurements are kept of


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast a job goes on so many devices of a type; runs are (steps, seconds)."""

    line: SampledLine
    runs: tuple[tuple[float, float], ...] = ()
    source: SpeedSource = "measured"
    leave: float | None = None  # seconds from the order to stop until it has saved and is gone; None: not measured
    resume: float | None = None  # seconds that a start from what it saved takes; None: as any start
    crowded: float = 1.0  # speed while gangs hold every other device of its node, over speed while none is held
    together: float = 0.0  # seconds that a start takes longer for each other device of its node on which one begins at the same time
    samples: Mapping[str, tuple[float, ...]] = field(
        default_factory=dict
    )  # by what of `SAMPLED`: seconds of each, speeds over the fitted one

    @property
    def lives(self) -> int:
        """How many gangs were watched: what one of them shows again and again is one measurement of its kind."""
        return len(self.samples.get("start", ()))

    @property
    def resume_and_end(self) -> float:
        """Seconds that a job takes which resumes with nothing left to do."""
        return self.line.startup if self.resume is None else self.resume + (self.leave or 0.0)


@dataclass(frozen=True, slots=True)
class Pairing:
    """How fast a job goes next to another one on the same devices, over how fast it goes alone."""

    ratio: float
    source: SpeedSource = "measured"


@dataclass(frozen=True)
class Profile:
    """One job's."""

    name: str
    command: tuple[str, ...] = ()  # how its short runs were made; {steps} stands for their length
    steps: float = 0.0  # of the whole job, where that is known
    family: str = ""  # jobs of one family are taken to be similar
    alone: Mapping[DeviceCount, Speed] = field(default_factory=dict)
    pairs: Mapping[tuple[str, int, str], Pairing] = field(default_factory=dict)  # (type, devices, the other's name)

    def whole(self, device_count: DeviceCount, steps: float | None = None) -> Estimate:
        """The time of the whole job on so many devices."""
        if device_count not in self.alone:
            raise NotFoundError(
                f"'{self.name}' was not measured on {device_count[1]} x {device_count[0]}", where="profile", fix="gantline profile run"
            )
        return self.alone[device_count].line.whole(self.steps if steps is None else steps)


@dataclass(frozen=True)
class Bundle:
    """All profiles of one file."""

    jobs: Mapping[str, Profile] = field(default_factory=dict)
    about: str = ""
    devices: str = ""  # where it was measured, as --devices says it
    lives: tuple[float, ...] = ()  # speeds of whole jobs over the mean of their kind, see `life_spread`

    def __getitem__(self, name: str) -> Profile:
        if name not in self.jobs:
            raise NotFoundError(f"no profile of '{name}'", where="profiles", fix=near(name, self.jobs))
        return self.jobs[name]

    @property
    def device_counts(self) -> list[DeviceCount]:
        """All counts of devices that anything was measured on, in order of appearance."""
        return list(dict.fromkeys(device_count for job in self.jobs.values() for device_count in job.alone))

    def with_profile(self, profile: Profile) -> Bundle:
        """The same with one profile more, or another one of that name."""
        return replace(self, jobs={**self.jobs, profile.name: profile})

    def throughputs(self, source: str = "") -> ThroughputTable:
        """Steps per second in the layout that policies and the simulator read (Gavel's)."""
        body: dict[str, dict[str, dict[str, object]]] = {}
        for job in self.jobs.values():
            for (kind, size), speed in job.alone.items():
                body.setdefault(kind, {})[str((job.name, size))] = {"null": speed.line.rate}
        for job in self.jobs.values():
            for (kind, size, other), pairing in job.pairs.items():
                mirror = self.jobs[other].pairs.get((kind, size, job.name)) if other in self.jobs else None
                if mirror is None or (kind, size) not in job.alone or (kind, size) not in self.jobs[other].alone:
                    continue  # one side alone says nothing about a pair
                own = job.alone[kind, size].line.rate * pairing.ratio
                others = self.jobs[other].alone[kind, size].line.rate * mirror.ratio
                if (own > 0) == (others > 0):
                    body[kind][str((job.name, size))][str((other, size))] = [own, others]
        return ThroughputTable.of(body, source)

    def to_json(self) -> dict[str, object]:
        """As plain JSON."""
        return {
            "format": FORMAT,
            **{key: value for key, value in (("about", self.about), ("devices", self.devices)) if value},
            **({"lives": [*map(_short, self.lives)]} if self.lives else {}),
            "jobs": {name: _profile_json(job) for name, job in self.jobs.items()},
        }

    @classmethod
    def of(cls, body: Any, where: str = "profiles") -> Bundle:
        """What `to_json` wrote, or a person; mistakes are named by their place."""
        reader = Reader(body, where)
        reader.only(("format", "about", "devices", "lives", "jobs"))
        if reader.raw("format") != FORMAT:
            raise UsageError(f"is '{reader.raw('format')}'", where=reader.at("format"), fix=f"this version reads {FORMAT}")
        jobs = Reader(reader.raw("jobs", {}), reader.at("jobs"))
        found = {name: _profile(name, Reader(jobs.raw(name), jobs.at(name))) for name in reader.raw("jobs", {})}
        for name, profile in found.items():
            for _, _, other in profile.pairs:
                if other not in found:
                    raise UsageError(f"is next to '{other}', which has no profile", where=jobs.at(name), fix=near(other, found))
        return cls(found, reader.text("about", ""), reader.text("devices", ""), _lives(reader))


def _profile_json(job: Profile) -> dict[str, object]:
    alone = [
        {
            "type": kind,
            "gpus": size,
            **{key: _short(getattr(speed.line, key)) for key in ("startup", "seconds", "low", "high")},
            **({"runs": [[_short(steps), _short(seconds)] for steps, seconds in speed.runs]} if speed.runs else {}),
            **{key: _short(found) for key in ("leave", "resume") if (found := getattr(speed, key)) is not None},
            **({"crowded": _short(speed.crowded)} if speed.crowded != 1.0 else {}),
            **({"together": _short(speed.together)} if speed.together else {}),
            **({"samples": {key: list(map(_short, found)) for key, found in speed.samples.items()}} if speed.samples else {}),
            **({"source": speed.source} if speed.source != "measured" else {}),
        }
        for (kind, size), speed in job.alone.items()
    ]
    pairs = [
        {
            "type": kind,
            "gpus": size,
            "with": other,
            "ratio": _short(pairing.ratio),
            **({"source": pairing.source} if pairing.source != "measured" else {}),
        }
        for (kind, size, other), pairing in job.pairs.items()
    ]
    said = (("family", job.family), ("command", list(job.command)), ("steps", job.steps), ("pairs", pairs))
    return {**{key: value for key, value in said if value}, "alone": alone}


def _profile(name: str, reader: Reader) -> Profile:
    reader.only(("family", "command", "steps", "pairs", "alone"))
    command = reader.raw("command", [])
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        raise UsageError("is no list of words", where=reader.at("command"), fix='write ["python", "train.py"]')
    alone = {}
    for one in _rows(reader, "alone", _ALONE):
        runs = _runs(one)
        if "seconds" in one:
            seconds = one.number("seconds", 0.0)
            line = SampledLine(one.number("startup", 0.0), seconds, one.number("low", seconds), one.number("high", seconds))
        else:
            line = fit_line(runs)
        if not (line.seconds > 0.0 and line.startup >= 0.0 and 0.0 <= line.low <= line.seconds <= line.high):
            raise UsageError("has no possible speed", where=one.path, fix="seconds above 0, low <= seconds <= high, startup of 0 or more")
        stops = {key: one.number(key, 0.0) if key in one else None for key in ("leave", "resume")}
        if any(seconds is not None and seconds < 0.0 for seconds in stops.values()):
            raise UsageError("leaves or resumes before it is asked to", where=one.path, fix="leave and resume of 0 or more seconds")
        crowded = one.number("crowded", 1.0)
        if not 0.0 < crowded <= 2.0:
            raise UsageError(
                f"is {crowded:g}", where=one.at("crowded"), fix="speed beside a full node over speed alone, above 0 and at most 2"
            )
        together = one.number("together", 0.0)
        if not together >= 0.0:
            raise UsageError(f"is {together:g}", where=one.at("together"), fix="seconds for each other device that starts, 0 or more")
        speed = Speed(line, runs, _source(one), **stops, crowded=crowded, together=together, samples=_samples(one))
        alone[one.text("type", ""), one.whole("gpus", 1, least=1)] = speed
    pairs = {}
    for one in _rows(reader, "pairs", ("type", "gpus", "with", "ratio", "source")):
        ratio = one.number("ratio", -1.0)
        if not 0.0 <= ratio <= 10.0:
            raise UsageError(f"is {ratio:g}", where=one.at("ratio"), fix="speed next to the other over speed alone: 0 to 1")
        pairs[one.text("type", ""), one.whole("gpus", 1, least=1), one.text("with", "")] = Pairing(ratio, _source(one))
    return Profile(name, tuple(command), reader.number("steps", 0.0), reader.text("family", ""), alone, pairs)


def _rows(reader: Reader, key: str, known: tuple[str, ...]) -> Iterable[Reader]:
    rows = reader.raw(key, [])
    if not isinstance(rows, list):
        raise UsageError("is no list", where=reader.at(key), fix="write [{...}, ...]")
    for place, row in enumerate(rows):
        one = Reader(row, f"{reader.at(key)}[{place}]")
        one.only(known)
        if not isinstance(one.raw("type"), str) or not one.raw("type"):
            raise UsageError("has no device type", where=one.path, fix='add "type": "h200"')
        yield one


def _runs(reader: Reader) -> tuple[tuple[float, float], ...]:
    rows = reader.raw("runs", [])
    try:
        return tuple((float(steps), float(seconds)) for steps, seconds in rows)
    except (TypeError, ValueError):
        raise UsageError("holds something else than runs", where=reader.at("runs"), fix="write [[steps, seconds], ...]") from None


def _samples(reader: Reader) -> dict[str, tuple[float, ...]]:
    kept = Reader(reader.raw("samples", {}), reader.at("samples"))
    kept.only(SAMPLED)
    found = {}
    for key in reader.raw("samples", {}):
        values = kept.raw(key)
        if not isinstance(values, list) or not values or not all(isinstance(one, (int, float)) and one >= 0.0 for one in values):
            raise UsageError(
                "holds something else than measurements", where=kept.at(key), fix="write [2.1, 2.3]: seconds, or speeds over the fitted one"
            )
        found[key] = tuple(map(float, values))
    return found


def _lives(reader: Reader) -> tuple[float, ...]:
    values = reader.raw("lives", [])
    if not isinstance(values, list) or not all(isinstance(one, (int, float)) and one > 0.0 for one in values):
        raise UsageError(
            "holds something else than speeds", where=reader.at("lives"), fix="write [0.97, 1.04]: over the mean of their kind"
        )
    return tuple(map(float, values))


def _source(reader: Reader) -> SpeedSource:
    return "estimated" if reader.raw("source", "measured") == "estimated" else "measured"


def _short(value: float) -> float:
    """Six digits say more than any measurement knows."""
    return float(f"{value:.6g}")
