"""What a performance model is shown of gangs that run: columns, and the same one by one.

The engine keeps what gangs were granted as columns (`SharingColumns`), so a grant, a mate or a list of devices is
made only for a model that looks at it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.grant import Grant
from gantline.core.plan import ASSIGNMENT_DEFAULTS
from gantline.core.slices import gpu_of, whole_and_percent


class DeviceSharers(NamedTuple):
    """Which gangs are on which shared devices: one place per gang and device, one entry per other gang there.

    Places are in the order of the gangs and of their ranks, entries in the order of the places and then of the rows.
    """

    gang: Ints  # per place
    device: Ints  # per place
    place: Ints  # per entry
    row: Ints  # per entry: the other gang's

    @property
    def crowded(self) -> Ints:
        """Per entry the gang that another one is beside."""
        return np.asarray(self.gang[self.place])


class SharingColumns(Protocol):
    """What some gangs were granted beyond their options."""

    special: Bools  # whether there is a grant
    shared: Bools  # whether other gangs may be on its devices

    @property
    def group(self) -> Ints:
        """A number per group, -1: none."""

    @property
    def sharers(self) -> DeviceSharers:
        """Which gangs are on its devices."""

    def asked(self, name: str) -> Floats:
        """A number of its assignment."""

    def asked_by(self, name: str, rows: Ints) -> Floats:
        """The same of other rows."""

    def mates(self, at: int) -> list[int]:
        """The rows on its devices; where it shares none but is in a group, the others of the group."""


class NoGrants(SharingColumns):
    """The columns of gangs that have their options and nothing else."""

    def __init__(self, count: int) -> None:
        none: Ints = np.zeros(0, dtype=np.int64)
        self.special = self.shared = np.zeros(count, dtype=np.bool_)
        self._sharers = DeviceSharers(none, none, none, none)

    @property
    def group(self) -> Ints:
        return np.full(len(self.special), -1)

    @property
    def sharers(self) -> DeviceSharers:
        return self._sharers

    def asked(self, name: str) -> Floats:
        return np.full(len(self.special), ASSIGNMENT_DEFAULTS[name])

    def asked_by(self, name: str, rows: Ints) -> Floats:
        return np.full(len(rows), ASSIGNMENT_DEFAULTS[name])

    def mates(self, at: int) -> list[int]:
        return []


class Neighbour(NamedTuple):
    """Another gang that crosses a link with this one."""

    row: int
    job: str
    model: str
    grant: Grant | None
    links: tuple[int, ...]  # those that both cross


@dataclass(frozen=True)
class Gangs:
    """Gangs that run, as columns; a share of the time on several types is one entry per type."""

    now: float
    learned: Any  # what `observe` said last; None at first
    cluster: Cluster
    rows: Ints  # the numbers that their jobs keep for life
    type: Ints  # codes of the device types
    gpus: Ints
    nodes: Ints  # nodes that they span
    done: Floats  # work done so far
    since: Floats  # from when on they do work: now, or the end of their start
    alone: Floats  # work per second by their options alone
    divided: Floats  # the same by their parts of the devices that they share, as fractions and shares of the time say
    grants: Sequence[Grant | None]  # what they hold beyond a gang of their own: batch, parts, devices, group
    act: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # for `cost`: what each does, see `Act`
    _columns: SharingColumns | None = field(default=None, repr=False)
    _metric: Callable[[str, Ints], Floats] = field(default=lambda name, rows: np.full(len(rows), np.nan), repr=False)
    _name: Callable[[int], tuple[str, str]] = field(default=lambda row: (str(row), ""), repr=False)
    _grant: Callable[[int], Grant | None] = field(default=lambda row: None, repr=False)
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
    def _granted(self) -> SharingColumns:
        return NoGrants(len(self)) if self._columns is None else self._columns

    @property
    def special(self) -> Bools:
        """Which of them have a grant that says more than their option."""
        return self._granted.special

    @property
    def shared(self) -> Bools:
        """Which of them are on devices on which others may be."""
        return self._granted.shared

    @property
    def sharers(self) -> DeviceSharers:
        """Which gangs are on the devices that these share."""
        return self._granted.sharers

    @property
    def group(self) -> Ints:
        """A number per gang, the same for members of one group; -1: it has none. All members that hold something are shown together."""
        return self._granted.group

    @property
    def offset(self) -> Floats:
        """Seconds by which each is shifted against the period of its group."""
        return self._granted.asked("offset")

    @property
    def fraction(self) -> Floats:
        """The part of each of its devices that a gang was given."""
        return self._granted.asked("fraction")

    def fraction_of(self, rows: Ints) -> Floats:
        """The same of other rows: those of mates."""
        return self._granted.asked_by("fraction", rows)

    @property
    def memory_cap(self) -> Floats:
        """GB of each device that a gang may use."""
        return self._granted.asked("memory_cap")

    @cached_property
    def place(self) -> Ints:
        """Its place in its group, counted from zero, by offset and then by row; zero for gangs without a group."""
        order = np.lexsort((self.rows, self.offset, self.group))
        group = self.group[order]
        first = np.maximum.accumulate(np.where(np.r_[True, group[1:] != group[:-1]], np.arange(len(order)), 0)) if len(order) else order
        found = np.empty_like(order)
        found[order] = np.where(group < 0, 0, np.arange(len(order)) - first)
        return found

    @cached_property
    def busy_beside(self) -> Floats:
        """The part of the other devices of its nodes that gangs hold, one number per gang; its own devices do not count.

        Slices of one GPU count whatever their sizes, by their part of it.
        """
        nodes, at_node = self.cluster.nodes, self.cluster.device_node
        gpu = np.unique([gpu_of(node) for node in nodes], return_inverse=True)[1]
        part = np.array([whole_and_percent(node.type)[1] for node in nodes], dtype=float)
        whole = np.bincount(gpu, part * self.cluster.node_gpus)
        held = sorted(set[int]().union(*(self.everyone.devices(at) for at in range(len(self.everyone)))))
        busy = np.bincount(gpu[at_node[held]], part[at_node[held]], minlength=len(whole))
        found = np.zeros(len(self))
        for at in range(len(self)):
            here = at_node[list(self.devices(at))]
            gpus, own = np.unique(gpu[here]), part[here].sum()
            others = whole[gpus].sum() - own
            found[at] = (busy[gpus].sum() - own) / others if others > 0 else 0.0
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

    def nodes_by_rank(self, at: int) -> tuple[int, ...]:
        """The node of each device of one gang, in rank order."""
        return tuple(int(self.cluster.device_node[device]) for device in self.devices(at))

    def places(self, at: int) -> tuple[int, ...]:
        """The nodes of one gang, each once."""
        return tuple(dict.fromkeys(self.nodes_by_rank(at)))

    def mates(self, at: int) -> list[Mate]:
        """The other gangs on a gang's devices; where it shares none but is in a group, the others of the group."""
        return [Mate(self, row) for row in self._granted.mates(at)] if self.special[at] else []

    def __getitem__(self, at: int) -> Gang:
        return Gang(self, at)


class Mate:
    """Another gang of the same group, or on the same devices."""

    __slots__ = ("_gangs", "row")

    def __init__(self, gangs: Gangs, row: int) -> None:
        self._gangs, self.row = gangs, row

    @property
    def job(self) -> str:
        return self._gangs._name(self.row)[0]

    @property
    def model(self) -> str:
        return self._gangs._name(self.row)[1]

    @property
    def grant(self) -> Grant:
        found = self._gangs._grant(self.row)
        assert found is not None, "gangs without a grant share nothing"
        return found


class Gang:
    """One gang, for models that answer one by one: the columns of `Gangs` at its place."""

    __slots__ = ("_at", "_gangs")

    def __init__(self, gangs: Gangs, at: int) -> None:
        self._gangs, self._at = gangs, at

    @property
    def row(self) -> int:
        """The number that its job keeps for life."""
        return int(self._gangs.rows[self._at])

    @property
    def job(self) -> str:
        """The name of its job."""
        return self._gangs._name(self.row)[0]

    @property
    def model(self) -> str:
        """What it trains, as the trace says."""
        return self._gangs._name(self.row)[1]

    @property
    def type(self) -> int:
        return int(self._gangs.type[self._at])

    @property
    def gpus(self) -> int:
        return int(self._gangs.gpus[self._at])

    @property
    def nodes(self) -> int:
        return int(self._gangs.nodes[self._at])

    @property
    def done(self) -> float:
        return float(self._gangs.done[self._at])

    @property
    def since(self) -> float:
        return float(self._gangs.since[self._at])

    @property
    def alone(self) -> float:
        return float(self._gangs.alone[self._at])

    @property
    def divided(self) -> float:
        return float(self._gangs.divided[self._at])

    @property
    def grant(self) -> Grant | None:
        return self._gangs.grants[self._at]

    @property
    def mates(self) -> list[Mate]:
        return self._gangs.mates(self._at)

    @property
    def now(self) -> float:
        return self._gangs.now

    @property
    def learned(self) -> Any:
        return self._gangs.learned

    @property
    def cluster(self) -> Cluster:
        return self._gangs.cluster

    @property
    def neighbours(self) -> tuple[Neighbour, ...]:
        """The gangs that cross a link of the cluster with it."""
        return self._gangs.neighbours(self._at)

    def metric(self, name: str) -> float:
        """A value that its trace, its spec or a measurement says; NaN where unknown."""
        return float(self._gangs._metric(name, np.array([self.row]))[0])
