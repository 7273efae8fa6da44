"""A Slurm cluster at one instant: nodes, partitions, jobs, and the settings that its order depends on, out of a recording."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import TypeAlias

from gantline.core.errors import UsageError
from gantline.live.runners.slurm.commands import CLOSED, EMPTY, GONE, host_names, pairs_of, state_words
from gantline.live.watch.slurm_recording import is_json, job_cells, node_pairs, partition_pairs, past_rows, reservation_pairs, sections
from gantline.traces.importers.slurm import gpus_of, memory_of, seconds_of, type_of

_MANY = 4096
# ten thousand jobs ask for a few dozen different things
_gpus_of, _type_of, _memory_of = lru_cache(_MANY)(gpus_of), lru_cache(_MANY)(type_of), lru_cache(_MANY)(memory_of)
Reading: TypeAlias = Callable[[str, str], Iterable[Mapping[str, str]]]

_CPUS = re.compile(r"(?:^|,)cpu=(\d+)")


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node as Slurm has it."""

    name: str
    gpus: int
    type: str
    cpus: float
    memory: float  # GB
    state: frozenset[str]  # IDLE, DRAIN, DOWN, ...
    partitions: tuple[str, ...]
    features: frozenset[str]
    weight: float

    @property
    def is_down(self) -> bool:
        """Whether nothing runs there, and nothing can."""
        return not self.state.isdisjoint({*GONE, "NOT_RESPONDING"})

    @property
    def is_closed(self) -> bool:
        """Whether it takes no new jobs, though those that run go on."""
        return not self.state.isdisjoint(CLOSED)


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job as squeue shows it; amounts are those of the whole job."""

    id: str
    user: str
    partitions: tuple[str, ...]
    state: str
    reason: str
    priority: float
    submitted: float
    eligible: float
    started: float | None
    ended: float | None
    limit: float | None  # seconds; None: none
    nodes: int
    gpus: int
    type: str
    cpus: float
    memory: float  # GB
    hosts: tuple[str, ...]
    feature: str
    narrowed: bool  # it names nodes that it wants or does not want, or a reservation


@dataclass(frozen=True, slots=True)
class SlurmPartition:
    """A partition: how it ranks, and how long its jobs may run."""

    name: str
    tier: float
    longest: float | None
    is_up: bool


@dataclass(frozen=True, slots=True)
class SlurmReservation:
    """Nodes that Slurm keeps for some users, or for maintenance."""

    name: str
    start: float
    end: float
    hosts: tuple[str, ...]
    users: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SlurmState:
    """Everything of one recording."""

    now: float
    config: Mapping[str, str]
    nodes: tuple[SlurmNode, ...]
    partitions: Mapping[str, SlurmPartition]
    jobs: tuple[SlurmJob, ...]
    reservations: tuple[SlurmReservation, ...]
    past: tuple[SlurmJob, ...]  # as sacct shows them

    @property
    def parameters(self) -> dict[str, str]:
        """`SchedulerParameters`, by name."""
        given = self.config.get("SchedulerParameters", "")
        return dict(part.partition("=")[::2] for part in given.split(",") if part and given not in EMPTY)

    @property
    def counts_memory(self) -> bool:
        return "MEMORY" in self.config.get("SelectTypeParameters", "").upper()


def read_state(text: str, where: str = "recording") -> SlurmState:
    """The cluster that a recording shows."""
    parts = sections(text, where)
    seconds, _, zone = parts["time"].strip().partition(" ")
    clock = _Clock(zone or "+0000", where)
    if not seconds.isdigit():
        raise UsageError(f"'{seconds[:20]}' is no time", where=f"{where}, section time", fix="it is what date '+%s %z' prints")
    config = dict(_setting(line) for line in parts["config"].splitlines() if "=" in line)
    nodes = tuple(map(_node, _listed(parts, "nodes", node_pairs, "NodeName", where)))
    if not nodes:
        raise UsageError("no node is listed", where=f"{where}, section nodes", fix="it is what scontrol -o show nodes prints")
    listed = _listed(parts, "partitions", partition_pairs, "PartitionName", where)
    partitions = {one.name: one for one in map(_partition, listed)}
    listed = _listed(parts, "reservations", reservation_pairs, "ReservationName", where)
    reservations = tuple(_reservation(pairs, clock) for pairs in listed)
    cells = job_cells if is_json(parts["jobs"]) else _cells
    jobs = tuple(_job(one, clock) for one in cells(parts["jobs"], f"{where}, section jobs"))
    return SlurmState(float(seconds), config, nodes, partitions, jobs, reservations, _past(parts.get("past", ""), clock, where))


def _listed(parts: Mapping[str, str], name: str, read: Reading, head: str, where: str) -> Iterable[Mapping[str, str]]:
    """What a section lists, which is JSON or what ``scontrol -o`` prints."""
    text = parts.get(name, "")
    if is_json(text):
        return read(text, f"{where}, section {name}")
    return (pairs_of(line) for line in text.splitlines() if line.startswith(f"{head}="))


def _past(text: str, clock: _Clock, where: str) -> tuple[SlurmJob, ...]:
    """The jobs that sacct lists, without arrays of which no task has begun."""
    if is_json(text):
        rows = past_rows(text, f"{where}, section past")
    else:
        lines = text.splitlines()
        head = lines[0].split("|") if lines else []
        rows = (dict(zip(head, line.split("|"))) for line in lines[1:])
    return tuple(_past_job(row, clock) for row in rows if "[" not in row.get("JobID", ""))


class _Clock:
    """Instants as Slurm prints them: seconds where it was asked for them, else local time."""

    def __init__(self, zone: str, where: str) -> None:
        sign, hours, minutes = -1 if zone.startswith("-") else 1, zone[1:3] or "0", zone[3:5] or "0"
        if not (hours.isdigit() and minutes.isdigit()):
            raise UsageError(f"'{zone[:10]}' is no time zone", where=f"{where}, section time", fix="such as +0100")
        self.zone = timezone(sign * timedelta(hours=int(hours), minutes=int(minutes)))

    def read(self, text: str) -> float | None:
        if text in EMPTY:
            return None
        if text.isdigit():
            return float(text)
        try:
            return datetime.fromisoformat(text).replace(tzinfo=self.zone).timestamp()
        except ValueError:
            return None


def _setting(line: str) -> tuple[str, str]:
    name, _, value = line.partition("=")
    return name.strip(), "" if value.strip() in EMPTY else value.strip()


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _node(pairs: Mapping[str, str]) -> SlurmNode:
    gres = pairs.get("Gres", "")
    gpus = int(gpus_of(gres)) if gres not in EMPTY else 0
    features = pairs.get("ActiveFeatures", "")
    return SlurmNode(
        pairs["NodeName"], gpus, (type_of(gres) or "gpu") if gpus else "cpu", _number(pairs.get("CPUEfctv", pairs.get("CPUTot", ""))),
        _number(pairs.get("RealMemory", "")) * 2**20 / 1e9, state_words(pairs.get("State", "UNKNOWN")),
        tuple(sorted(part for part in pairs.get("Partitions", "").split(",") if part)),
        frozenset() if features in EMPTY else frozenset(features.split(",")), _number(pairs.get("Weight", "1")),
    )  # fmt: skip


def _partition(pairs: Mapping[str, str]) -> SlurmPartition:
    longest = _limit(pairs.get("MaxTime", ""))
    return SlurmPartition(
        pairs.get("PartitionName", ""), _number(pairs.get("PriorityTier", "1")), longest, pairs.get("State", "UP") == "UP"
    )


def _reservation(pairs: Mapping[str, str], clock: _Clock) -> SlurmReservation:
    users = pairs.get("Users", "")
    start, end = clock.read(pairs.get("StartTime", "")), clock.read(pairs.get("EndTime", ""))
    hosts = host_names(pairs.get("Nodes", ""))
    return SlurmReservation(pairs["ReservationName"], start or 0.0, end or 0.0, hosts, () if users in EMPTY else tuple(users.split(",")))


@lru_cache(_MANY)
def _limit(text: str) -> float | None:
    try:
        return seconds_of(text) if text not in EMPTY else None
    except ValueError:
        return None


def _cells(text: str, where: str) -> Iterable[Mapping[str, str]]:
    """What squeue's columns say of each job, by their heads."""
    lines = text.splitlines()
    if not lines:
        raise UsageError("it is empty", where=where, fix="it is what squeue prints, with its head")
    head = [name.strip() for name in lines[0].split("|")]
    at = {name: place for place, name in enumerate(head)}
    absent = [name for name in ("JOBID", "STATE", "PRIORITY", "TRES_PER_NODE", "NODELIST") if name not in at]
    if absent:
        what = f"squeue's columns {', '.join(absent)} are missing"
        raise UsageError(what, where=where, fix="make it with: gantline watch slurm --script | sh > FILE")
    last = len(head) - 2  # a feature may hold the sign that parts columns, and is the last one
    for number, line in enumerate(lines[1:], 2):
        cells = [cell.rstrip().removesuffix("|").strip() for cell in line.split("|", last)]
        if len(cells) <= last:
            if line.strip():
                raise UsageError(f"line {number} has {len(cells)} columns of {last + 1}", where=where, fix="record it again")
            continue
        yield {name: "" if cells[place] in EMPTY else cells[place] for name, place in at.items() if name}


def _job(cell: Mapping[str, str], clock: _Clock) -> SlurmJob:
    nodes, tasks = max(int(_number(cell.get("NODES", "1").partition("-")[0])), 1), max(_number(cell.get("TASKS", "1")), 1.0)
    per = (("TRES_PER_JOB", 1.0), ("TRES_PER_NODE", float(nodes)), ("TRES_PER_TASK", tasks))
    asked = [(text, times) for name, times in per if (text := cell.get(name, ""))]
    alloc = cell.get("TRES_ALLOC", "")
    gpus = max((_gpus_of(text) * times for text, times in asked), default=0.0) or _gpus_of(alloc)
    submitted = clock.read(cell.get("SUBMIT_TIME", "")) or 0.0
    cpus = _CPUS.search(alloc)
    return SlurmJob(
        cell["JOBID"], cell.get("USER", ""), tuple(cell.get("PARTITION", "").split(",")), cell["STATE"], cell.get("REASON", ""),
        _number(cell["PRIORITY"]), submitted, clock.read(cell.get("ELIGIBLE_TIME", "")) or submitted,
        clock.read(cell.get("START_TIME", "")), clock.read(cell.get("END_TIME", "")), _limit(cell.get("TIME_LIMIT", "")), nodes, int(gpus),
        next((kind for text, _ in asked if (kind := _type_of(text))), ""), float(cpus[1]) if cpus else _number(cell.get("CPUS", "0")),
        _memory_of(alloc) or 0.0, host_names(cell["NODELIST"]), cell.get("FEATURES", ""),
        any(cell.get(name) for name in ("REQ_NODES", "EXC_NODES", "RESERVATION")),
    )  # fmt: skip


def _past_job(row: Mapping[str, str], clock: _Clock) -> SlurmJob:
    """A job by the heads of sacct's columns; what it was given is what it had asked for."""
    tres, nodes = row.get("AllocTRES") or row.get("ReqTRES", ""), max(int(_number(row.get("NNodes", ""))), 1)
    submitted, spent = clock.read(row.get("Submit", "")) or 0.0, _number(row.get("ElapsedRaw", ""))
    started = clock.read(row.get("Start", "")) or (0.0 if spent else None)
    cpus = _CPUS.search(tres)
    return SlurmJob(
        row.get("JobID", ""), row.get("User", ""), tuple(row.get("Partition", "").split(",")), row.get("State", "").partition(" ")[0], "",
        _number(row.get("Priority", "")), submitted, submitted, started, None if started is None else started + spent,
        _limit(row.get("Timelimit", "")), nodes, int(_gpus_of(tres)), _type_of(tres), float(cpus[1]) if cpus else 0.0,
        _memory_of(tres) or 0.0, (), "", False,
    )  # fmt: skip
