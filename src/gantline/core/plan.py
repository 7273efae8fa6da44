"""What a policy answers: a Plan, in one of two forms.

A *ranking* is a key over the snapshot's jobs (smaller first). The engine walks it: fit and placement are one pass, because a
job that cannot be placed must not leave its GPUs idle. *Assignments* are final: which job gets exactly what. Both name jobs by their
position in `snapshot.jobs`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from itertools import repeat
from operator import eq
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gantline.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class InCharge:
    """The policy that made a plan: its name, since when it decides, and why it was chosen."""

    policy: str
    since: float
    why: str = ""

    def __str__(self) -> str:
        return f"{self.policy} is in charge" + (f": {self.why}" if self.why else "")


TRIAL = "trial"
PURPOSES = ("train", "profile", TRIAL)
"""What a run is for; what is done in a trial does not count."""


class Misfit(IntEnum):
    """What happens in the walk when a job does not fit."""

    SKIP = 0  # go on with the next (best effort)
    STOP = 1  # no job behind it may start (strict order)
    SHRINK = 2  # it may start with a smaller option of the same type; else go on with the next


class Mode(IntEnum):
    """How the members of a group share what they hold."""

    EXCLUSIVE = 0
    SPACE = 1  # at the same time on the same devices (MPS, AntMan)
    TIME = 2  # in turns, by `share`
    INTERLEAVE = 3  # stages or communication phases offset against each other (Muri, CASSINI)


@dataclass(frozen=True, slots=True)
class Part:
    """One homogeneous part of a job's grant: parameter servers, workers, base or extra workers."""

    role: str
    type: int  # device type code
    count: int  # workers of this role
    gpus: int = 1  # devices each
    cpus: float = 0.0  # each
    memory: float = 0.0  # GB each
    nodes: tuple[int, ...] = ()  # where, one entry per worker (empty: the engine places)
    devices: tuple[int, ...] = ()  # exactly these, in rank order (empty: the engine places)
    storage: float = 0.0  # MB/s each


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one job shall hold; plans keep columns of these (`Assignments`). Only `job` must be given.

    What is left out means "as the option says". A named job gets exactly this, whole or not at all, or keeps what it has and finds the
    reason in `jobs.reason`; a running job that is not named is stopped. A job is named once, but for shares of the time on several types.

    Which devices: ``option``, or ``type`` and ``gpus``: the engine places; ``nodes``, ``span``, ``within`` narrow that; ``devices`` names
    them; ``parts`` is for several roles. Shared with: ``group``, ``mode``, ``together``, ``size``, ``fraction``, ``share``, ``offset``; or
    without a group: ``mode=SPACE`` with ``devices`` shares each of them with every other gang that does the same. In turns with: ``turns``,
    and the TIME group. How: ``cpus``, ``memory``, ``storage``, ``memory_cap``, ``batch``, ``accumulation``. How long: ``until``, ``limit``,
    ``purpose``.
    """

    job: int  # position in snapshot.jobs
    option: int = -1  # which of its options (-1: the one with the given type and count, else its first)
    gpus: int = -1  # devices (-1: as the option says)
    type: int = -1  # device type code (-1: as the option says)
    devices: tuple[int, ...] = ()  # exactly these, in rank order
    nodes: tuple[int, ...] = ()  # only these nodes
    span: int = 0  # on exactly so many nodes, as evenly as can be (0: as the option or the placement rule says)
    parts: tuple[Part, ...] = ()  # several roles; replaces gpus/type/devices
    cpus: float = math.nan  # CPUs in all (NaN: as the option says); changing it alone restarts nothing
    memory: float = math.nan  # GB in all
    storage: float = math.nan  # MB/s from storage in all
    within: str = ""  # keep the gang within one "node", "rack", ...
    required: bool = False  # whether `within` is a must
    group: int = -1  # members of one group share devices or links
    mode: Mode = Mode.EXCLUSIVE
    together: bool = False  # all members of the group start in one commit, or none does; all of them say so
    size: int = 0  # devices that the group shares in all: members stack only beyond it (0: what its widest member needs)
    turns: int = -1  # the rotation in which it takes turns, whatever its mode (-1: the number of its TIME group, else none)
    fraction: float = 1.0  # of each device
    memory_cap: float = math.inf  # device memory, GB
    offset: float = 0.0  # start of its phase within the group's period (Muri's stages, CASSINI's shifts), seconds
    batch: int = 0  # batch size (0: the job's own)
    accumulation: int = 1
    share: float = 1.0  # of the time; below one only where the regime divides time ideally, or in a TIME group
    until: float = math.inf  # lease
    purpose: str = "train"  # or "profile", or "trial": what is done in a trial is discarded when it ends
    limit: float = math.inf  # seconds after which the run ends by itself

    @property
    def rotation(self) -> int:
        """The number of the rotation in which it takes turns; -1: none."""
        return self.turns if self.turns >= 0 or self.mode != Mode.TIME else self.group


@dataclass(frozen=True, slots=True)
class Reservation:
    """Devices promised for a time to come: ElasticFlow's slots, EASY's shadow, maintenance."""

    start: float
    end: float
    gpus: int
    type: int = -1
    job: int = -1  # position in snapshot.jobs (-1: of no job, e.g. maintenance)
    nodes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A job the policy will not run as asked, and what it would accept instead (a later deadline, fewer GPUs)."""

    job: int
    why: str
    offer: dict[str, float] = field(default_factory=dict)


_KINDS: dict[object, Any] = {"int": np.int64, "float": np.float64, "bool": np.bool_, "Mode": np.int64}
_SCALARS = {item.name: _KINDS[item.type] for item in fields(Assignment) if item.type in _KINDS and item.name != "job"}
_RAGGED = {item.name for item in fields(Assignment) if item.type not in _KINDS}
_OF_OPTION = {"option", "gpus", "type", "span", "until"}
#: what an assignment means where the plan says nothing
ASSIGNMENT_DEFAULTS = {f.name: f.default for f in fields(Assignment) if f.name != "job"}


def _typed(name: str, values: ArrayLike, kind: Any) -> NDArray[Any]:
    """A column of the given kind; where whole numbers are meant nothing is rounded."""
    given = np.asarray(values)
    if given.dtype.kind == "f" and kind is np.int64 and not (whole := np.isfinite(given) & (given == np.floor(given))).all():
        raise UsageError(f"{name} is {given[~whole].flat[0]:g}, not a whole number", where="plan")
    return given.astype(kind, copy=False)


class Assignments(Sequence[Assignment]):
    """Grants as columns; only the columns that are not at their default are stored."""

    __slots__ = ("_columns", "_ragged", "job")

    def __init__(self, job: ArrayLike, **columns: Any) -> None:
        self.job: NDArray[np.int64] = _typed("job", job, np.int64)
        self._columns: dict[str, NDArray[Any]] = {}
        self._ragged: dict[str, tuple[Any, ...]] = {}
        n = len(self.job)
        for name, value in columns.items():
            if name in _SCALARS:
                column = _typed(name, value, _SCALARS[name])
                self._columns[name] = column if column.shape == (n,) else np.broadcast_to(column, (n,))
            elif name in _RAGGED:
                if len(value) != n:
                    raise UsageError(f"column '{name}' has {len(value)} entries for {n} assignments", where="plan")
                self._ragged[name] = tuple(value)
            else:
                raise UsageError(f"assignments have no column '{name}'", where="plan", fix="see gantline.core.plan.Assignment")

    @staticmethod
    def of(rows: Sequence[Assignment]) -> Assignments:
        """Columns from objects."""
        columns: dict[str, Any] = {}
        for name, default in ASSIGNMENT_DEFAULTS.items():
            values = [getattr(row, name) for row in rows]
            if any(v != default and not (v != v and default != default) for v in values):
                columns[name] = values
        return Assignments([row.job for row in rows], **columns)

    def column(self, name: str) -> NDArray[Any]:
        """A numeric column, its default where the plan said nothing."""
        stored = self._columns.get(name)
        if stored is None:
            return np.full(len(self.job), ASSIGNMENT_DEFAULTS[name], dtype=_SCALARS[name])
        return stored

    def rotations(self) -> NDArray[np.int64]:
        """Per assignment the number of the rotation in which it takes turns; -1: none."""
        turns = self.column("turns")
        return np.where((turns < 0) & (self.column("mode") == int(Mode.TIME)), self.column("group"), turns)

    def entries(self, name: str) -> tuple[Any, ...]:
        """A ragged column."""
        return self._ragged.get(name) or (ASSIGNMENT_DEFAULTS[name],) * len(self.job)

    def has(self, name: str) -> bool:
        return name in self._columns or name in self._ragged

    def tells_only(self, name: str) -> bool:
        """Whether the plan says nothing of its jobs but this."""
        return self.has(name) and len(self._columns) + len(self._ragged) == 1

    def tells_at_most(self, name: str) -> bool:
        """Whether the plan says nothing of its jobs, or nothing but this number."""
        return not self._ragged and self._columns.keys() <= {name}

    def some(self, at: NDArray[Any]) -> Assignments:
        """The assignments at these places."""
        found = Assignments(self.job[at])
        found._columns = {name: column[at] for name, column in self._columns.items()}
        places = np.arange(len(self))[at].tolist() if self._ragged else []
        found._ragged = {name: tuple([entries[k] for k in places]) for name, entries in self._ragged.items()}
        return found

    def filled_columns(self) -> Iterator[tuple[str, NDArray[Any] | tuple[Any, ...]]]:
        """The columns that the plan says something about, by name."""
        yield "job", self.job
        for name in sorted([*self._columns, *self._ragged]):
            yield name, self._columns[name] if name in self._columns else self._ragged[name]

    def plain_rows(self, *beside: str) -> NDArray[np.bool_]:
        """Which grants say nothing beyond an option (or type and count), a lease, and these columns: whole gangs of their own."""
        plain = np.ones(len(self.job), dtype=np.bool_)
        for name, column in self._columns.items():
            if name not in _OF_OPTION and name not in beside:
                default = ASSIGNMENT_DEFAULTS[name]
                plain &= np.isnan(column) if default != default else column == default
        for name in self._ragged.keys() - {*beside}:
            entries, default = self._ragged[name], ASSIGNMENT_DEFAULTS[name]
            plain &= np.fromiter(map(eq, entries, repeat(default)), dtype=np.bool_, count=len(entries))
        return plain

    def __len__(self) -> int:
        return len(self.job)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        values: dict[str, Any] = {"job": int(self.job[index])}
        for name, array in self._columns.items():
            values[name] = array[index].item()
        for name, entries in self._ragged.items():
            values[name] = entries[index]
        if "mode" in values:
            values["mode"] = Mode(values["mode"])
        return Assignment(**values)

    def __iter__(self) -> Iterator[Assignment]:
        return (self[i] for i in range(len(self)))


@dataclass(frozen=True, slots=True)
class Ranking:
    """An order over the snapshot's jobs, walked by the engine. Ties fall to (arrival, id).

    Each job gets a gang of its own: the first of its options that fits, beginning with the first in order. A running job stays in place;
    a waiting one takes free devices, or (with `preempt`) those of gangs behind it, if that makes room.
    """

    key: NDArray[np.float64]  # smaller first; +inf: not now
    misfit: Misfit = Misfit.SKIP
    preempt: bool = True  # whether lower-ranked gangs may be stopped
    placement: str | None = None  # the placement rule for gangs that this order starts; None: the run's


@dataclass(frozen=True, slots=True)
class Plan:
    """A policy's whole answer. It is intent: commit checks it gang by gang against the present state.

    =================  ===============================================================================================
    ``ranking``        an order over all jobs of the snapshot, walked by the engine; or None
    ``assignments``    which job gets exactly what, in order of turns; or None. A plan has one of the two, or neither: nothing changes
    ``reservations``   promises for a time to come; they replace those of the last plan, and come back in the next snapshot
    ``refusals``       jobs that leave for good, with a reason and what would be accepted; only jobs that wait
    ``release``        nodes to give back: nothing new is placed there, gangs on them finish
    ``valid_until``    when the answer would change although nothing happens; None: ask again next round
    ``memory``         a plain value (numbers, texts, lists, dictionaries) that the next snapshot carries
    ``notes``          sentences for people: a deadline that cannot be met, a fallback that was taken
    ``in_charge``      which policy made the plan and why, where one chooses among several; explanations and figures show it
    =================  ===============================================================================================
    """

    ranking: Ranking | None = None
    assignments: Assignments | None = None
    reservations: tuple[Reservation, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    release: tuple[int, ...] = ()
    valid_until: float | None = None
    memory: Any = None
    notes: tuple[str, ...] = ()
    in_charge: InCharge | None = None

    @staticmethod
    def rank(
        key: ArrayLike,
        *,
        misfit: Misfit = Misfit.SKIP,
        preempt: bool = True,
        placement: str | None = None,
        valid_until: float | None = None,
        memory: Any = None,
        reservations: tuple[Reservation, ...] = (),
    ) -> Plan:
        """A plan in the ranking form."""
        ranking = Ranking(np.asarray(key, dtype=np.float64), misfit, preempt, placement)
        return Plan(ranking, None, reservations, valid_until=valid_until, memory=memory)

    @staticmethod
    def assign(rows: Sequence[Assignment] | Assignments, **rest: Any) -> Plan:
        """A plan in the assignment form."""
        table = rows if isinstance(rows, Assignments) else Assignments.of(rows)
        return Plan(None, table, **rest)

    def __getitem__(self, index: int) -> Assignment:
        if self.assignments is None:
            raise UsageError("a ranking has no assignments to look at", where="plan", fix="read plan.ranking.key")
        return self.assignments[index]  # type: ignore[no-any-return]
