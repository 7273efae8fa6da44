"""What a performance model is: how fast gangs really go, what changes cost them, and what a profiler would see.

A run has at most one model (`simulate(..., performance=model)`), and it is asked about every gang, however it was started: a ranking, an
assignment, the same model for baselines and for policies that know it. A model is a value: parameters, and functions of what
it is told. What it learns goes into `learned`, a plain value that is kept beside the policy's memory and is part of every snapshot.

Subclass `PerformanceModel` and override what you know; everything else stays as the options of the jobs and `Costs` say::

    @dataclass(frozen=True)
    class HalfSpeed(PerformanceModel):
        def rates(self, gangs):
            return 0.5 * gangs.divided, np.full(len(gangs), np.inf)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.errors import UsageError
from gantline.core.grant import Grant


class Act(IntEnum):
    """What a gang pays for: seconds during which it holds its devices and does no work."""

    START = 0  # for the first time
    RESUME = 1  # after a stop
    RESIZE = 2  # another number of devices of the same type, without a stop
    MOVE = 3  # other devices, without a stop
    SWITCH = 4  # its turn comes on the devices of its time-shared group


class Observed(NamedTuple):
    """What a model has seen of the gangs it was shown."""

    metrics: Mapping[str, Floats] = {}  # name -> one value per gang; policies read them as `jobs.metric(name)`
    learned: Any = None  # the next value of `gangs.learned`: numbers, texts, lists and dictionaries


class Mate(NamedTuple):
    """Another gang of the same group."""

    row: int
    job: str
    model: str
    grant: Grant


class Neighbour(NamedTuple):
    """Another gang that crosses a link with this one."""

    row: int
    job: str
    model: str
    grant: Grant | None
    links: tuple[int, ...]  # those that both cross


@dataclass(frozen=True)
class Gang:
    """One gang, for models that answer one by one."""

    row: int  # the number that its job keeps for life
    job: str  # the name of its job
    model: str  # what it trains, as the trace says
    type: int  # code of the device type
    gpus: int
    nodes: int  # nodes that it spans
    done: float  # work done so far
    since: float  # from when on it does work: now, or the end of its start
    alone: float  # work per second by its option alone
    divided: float  # the same by its part of the devices that it shares, as fractions and shares of the time say
    grant: Grant | None  # what it holds beyond a gang of its own: batch, parts, devices, group
    mates: tuple[Mate, ...]  # the others of its group that hold something
    now: float
    learned: Any
    cluster: Cluster
    _metric: Callable[[str, Ints], Floats] = field(repr=False)
    _neighbours: Callable[[], tuple[Neighbour, ...]] = field(default=tuple, repr=False)

    @property
    def neighbours(self) -> tuple[Neighbour, ...]:
        """The gangs that cross a link of the cluster with it."""
        return self._neighbours()

    def metric(self, name: str) -> float:
        """A value that its trace, its spec or a measurement says; NaN where unknown."""
        return float(self._metric(name, np.array([self.row]))[0])


@dataclass(frozen=True)
class Gangs:
    """Gangs that run, as columns; a share of the time on several types is one entry per type."""

    now: float
    learned: Any  # what `observe` said last; None at first
    cluster: Cluster
    rows: Ints  # the numbers that their jobs keep for life
    type: Ints
    gpus: Ints
    nodes: Ints
    done: Floats
    since: Floats
    alone: Floats
    divided: Floats
    grants: tuple[Grant | None, ...]
    act: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # for `cost`: what each does, see `Act`
    _metric: Callable[[str, Ints], Floats] = field(default=lambda name, rows: np.full(len(rows), np.nan), repr=False)
    _name: Callable[[int], tuple[str, str]] = field(default=lambda row: (str(row), ""), repr=False)
    _mates: Callable[[int, Grant], Mapping[int, Grant]] = field(default=lambda row, grant: {}, repr=False)
    _devices: Callable[[int], tuple[int, ...]] = field(default=lambda row: (), repr=False)
    _everyone: Callable[[], Gangs] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def everyone(self) -> Gangs:
        """All gangs that run, these among them."""
        return self if self._everyone is None else self._everyone()

    @cached_property
    def links(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the cluster's links that each gang crosses."""
        if not self.cluster.links:
            return ((),) * len(self)
        return tuple(self.cluster.routes.crossed(self.devices(at)) for at in range(len(self)))

    def neighbours(self, at: int) -> tuple[Neighbour, ...]:
        """The gangs that cross a link with one of these."""
        row, mine, near, everyone = int(self.rows[at]), set(self.links[at]), [], self.everyone
        for other, links in enumerate(everyone.links) if mine else ():
            both = tuple(link for link in links if link in mine)
            if both and everyone.rows[other] != row:
                theirs = int(everyone.rows[other])
                near.append(Neighbour(theirs, *self._name(theirs), everyone.grants[other], both))
        return tuple(near)

    @cached_property
    def group(self) -> Ints:
        """A number per gang, the same for members of one group; -1: it has none. All members that hold something are shown together."""
        numbers: dict[frozenset[int], int] = {}
        named = (grant.members[0] if grant is not None else frozenset[int]() for grant in self.grants)
        return np.array([numbers.setdefault(members, len(numbers)) if members else -1 for members in named], dtype=np.int64)

    @cached_property
    def offset(self) -> Floats:
        """Seconds by which each is shifted against the period of its group."""
        return np.array([0.0 if grant is None else grant.assignment.offset for grant in self.grants])

    @cached_property
    def place(self) -> Ints:
        """Its place in its group, counted from zero, by offset and then by row; zero for gangs without a group."""
        order = np.lexsort((self.rows, self.offset, self.group))
        group = self.group[order]
        first = np.maximum.accumulate(np.where(np.r_[True, group[1:] != group[:-1]], np.arange(len(order)), 0)) if len(order) else order
        found = np.empty_like(order)
        found[order] = np.where(group < 0, 0, np.arange(len(order)) - first)
        return found

    @property
    def jobs(self) -> list[str]:
        """The names of their jobs."""
        return [self._name(row)[0] for row in self.rows.tolist()]

    @property
    def models(self) -> list[str]:
        """What they train."""
        return [self._name(row)[1] for row in self.rows.tolist()]

    def metric(self, name: str) -> Floats:
        """A value per gang that its trace, its spec or a measurement says; NaN where unknown."""
        return self._metric(name, self.rows)

    def metric_of(self, name: str, rows: Ints) -> Floats:
        """The same of other rows: those of mates."""
        return self._metric(name, rows)

    def devices(self, at: int) -> tuple[int, ...]:
        """The devices of one gang, in rank order."""
        return self._devices(int(self.rows[at]))

    def seats(self, at: int) -> tuple[int, ...]:
        """The node of each device of one gang, in rank order."""
        return tuple(int(self.cluster.device_node[device]) for device in self.devices(at))

    def places(self, at: int) -> tuple[int, ...]:
        """The nodes of one gang, each once."""
        return tuple(dict.fromkeys(self.seats(at)))

    def __getitem__(self, at: int) -> Gang:
        row, grant = int(self.rows[at]), self.grants[at]
        near = {} if grant is None else self._mates(row, grant)
        mates = tuple(Mate(mate, *self._name(mate), theirs) for mate, theirs in near.items())
        held = (int(self.type[at]), int(self.gpus[at]), int(self.nodes[at]))
        moves = (float(self.done[at]), float(self.since[at]), float(self.alone[at]), float(self.divided[at]))
        return Gang(
            row,
            *self._name(row),
            *held,
            *moves,
            grant,
            mates,
            self.now,
            self.learned,
            self.cluster,
            self._metric,
            lambda: self.neighbours(at),
        )


class PerformanceModel(Protocol):
    """How fast gangs go and what changes cost. All methods are pure; each may be left as it is here."""

    #: whether it has a view on the speed of gangs of their own; False: what it knows of that is in their options already
    about_gangs: ClassVar[bool] = True
    #: whether a speed depends on others than the gang's mates (links, a file system): then all are asked whenever a gang comes or goes
    about_everyone: ClassVar[bool] = False

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        """Work per second of each gang, and the instant until which that holds (infinity: until it or its company changes).

        Here: divided as grants say, and `granted` for gangs with a grant.
        """
        rate, until = gangs.divided.copy(), np.full(len(gangs), np.inf)
        for at, grant in enumerate(gangs.grants):
            found = None if grant is None else self.granted(gangs[at])
            if found is not None:
                rate[at], until[at] = found if isinstance(found, tuple) else (found, np.inf)
        return rate, until

    def granted(self, gang: Gang) -> float | tuple[float, float] | None:
        """The same for one gang whose grant says more than its option: work per second, or (that, until when); None: divided."""
        return None

    def rate(self, job: str, type: int, gpus: int) -> float | None:
        """The scaling curve: work per second of a job alone on so many devices of a type; None: in proportion to an option of that type."""
        return None

    def rate_on(self, job: str, type: int, gpus: int, nodes: Sequence[int], cluster: Cluster) -> float | None:
        """The same on these very nodes; None: unknown."""
        return None

    def cost(self, gangs: Gangs) -> Floats | None:
        """Seconds at speed zero that each gang pays for its `act`; NaN or None: as `Costs` says."""
        return None

    def leave(self, model: str, type: str, gpus: int) -> float:
        """Seconds that a job needs to save and leave its devices when it is asked to; executor 'measured' takes them."""
        return 0.0

    def goodputs(self, learned: Any, name: str, kind: int, sizes: Ints) -> Floats | None:
        """Progress per second of a job that chooses its batch [on one node or several, size], as fitted so far; None: it has not run."""
        return None

    def best_batches(self, job: str, type: int, most: int) -> tuple[Ints, Floats] | None:
        """For 0, 1, ... at least `most` devices the fastest batch and its work per second; None: it has no choice."""
        return None

    def profiled(self, job: str) -> list[list[float]]:
        """(servers, workers, steps per second) of short runs with parameter servers."""
        return []

    def slowdown(self, network: str, nodes: Sequence[int], cluster: Cluster) -> float:
        """How many times slower a gang on these nodes is than on one machine."""
        return 1.0

    def observe(self, gangs: Gangs) -> Observed | None:
        """What a profiler sees of running jobs, before each decision; None: nothing new."""
        return None


#: what only some models have a view on: policies ask whether this one does (`overrides`). A model that keeps true speeds to itself has
#: beside these `known_speeds(learned, job, asked, sizes)`: work per second at each size as far as it can be known; `asked`: its own size
VIEWS = frozenset({"goodputs", "best_batches", "profiled", "slowdown"})


def check_model(model: Any) -> Any:
    """The model of a run, if it is one; a run with something else is refused rather than run at other speeds than meant."""
    if model is None:
        return None
    parts = [name for name in vars(PerformanceModel) if not name.startswith("_") and name not in VIEWS]
    missing = [name for name in parts if not hasattr(model, name)]
    if missing:
        raise UsageError(
            f"a {type(model).__name__} has no {', '.join(missing)}",
            where="performance",
            fix="subclass gantline.performance.model.PerformanceModel and override what it knows",
        )
    return model


def overrides(model: object, name: str) -> bool:
    """Whether a model says anything of its own under that name."""
    return model is not None and getattr(type(model), name, None) not in (None, getattr(PerformanceModel, name))
