"""The ways in which a job may run: device type, count, nodes, CPUs, memory, storage bandwidth, and how fast it is that way.

AlloX' CPU or GPU, Sia's configurations and "any of H100:8, A100:16" are the same thing: rows of one table. A rigid job on a cluster of
one type has exactly one option.

The sizes that a job may have follow from its options, the same on both clocks, however it was described. A job that lists options of
several sizes on a device type has exactly those, within [min_gpus, max_gpus]. One that lists a single size and a wider range has every
count in the range; its speed is then what the performance model says, else proportional to the count, which is also what the engine
assumes. Sizes at which nothing is done are left out. Where the model keeps the true speeds to itself, speeds are what jobs have shown so
far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import HOST_RESOURCE_NAMES, Table, number, place
from gantline.core.columns import Option as OptionColumn
from gantline.core.errors import UsageError, near
from gantline.core.jit import compiled
from gantline.core.json_reader import Reader, json_number


@dataclass(frozen=True, slots=True)
class Option:
    """One way to run a job, for people and tests; the engine keeps `OptionTable`."""

    type: int  # code of the device type
    gpus: int
    rate: float = 1.0  # work per second, gang together
    rate_spread: float | None = None  # work per second when it spans more nodes than it must (None: the same)
    cpus: float = 0.0  # per device; in all if gpus == 0
    memory: float = 0.0  # GB per device; in all if gpus == 0
    nodes: int = 0  # nodes to span exactly; 0: no matter
    storage: float = 0.0  # MB/s per device; in all if gpus == 0


class OptionTable(Table):
    """Options of all jobs. New ways are appended; rows from `len` on are room for more, which grows by doubling."""

    places = OptionColumn
    rate = number("Work per second when the gang sits on as few nodes as it can.")
    rate_spread = number("Work per second when it spans more.")
    cpus = number("CPUs per device (in all for an option without devices).")
    memory = number("Memory per device (or in all).", unit="GB")
    storage = number("Bandwidth to storage per device (or in all).", unit="MB/s")

    type = place("Code of the device type.")
    gpus = place("Devices.")
    nodes = place("Nodes that it must span exactly; 0: no matter.")

    def __init__(self, F: Floats, I: Ints) -> None:
        super().__init__(F, I)
        self._used: int = self.F.shape[1]
        self._frozen: OptionTable | None = None
        self._copy: tuple[Floats, Ints] | None = None  # what is lent, with room for more
        self._copied = 0  # options that it has
        self._only_devices: bool | None = None  # of a frozen table: as it was found when somebody first asked

    def __len__(self) -> int:
        return self._used

    @staticmethod
    def build(options: list[Option]) -> OptionTable:
        """A table of these options."""
        table = OptionTable.blank(len(options))
        for row, option in enumerate(options):
            table._write(row, option)
        return table

    def _write(self, row: int, option: Option) -> None:
        for column in self.columns():
            value = getattr(option, column.name)
            getattr(self, column.name)[row] = option.rate if value is None else value

    def append(self, option: Option) -> int:
        """Add one option; its row comes back."""
        row = self._used
        if row == self.F.shape[1]:
            self.grow(max(2 * row, 16))
        self._write(row, option)
        self._used, self._frozen = row + 1, None
        return row

    def copy(self) -> OptionTable:
        """The same options, to be changed apart from these."""
        return OptionTable(self.F[:, : self._used].copy(), self.I[:, : self._used].copy())

    def frozen(self) -> OptionTable:
        """A copy that cannot be written to, for policies; the same one until the table grows, and then only what is new is copied."""
        if self._frozen is None:
            if self._copy is None or self._copy[0].shape != self.F.shape:
                self._copy, self._copied = (np.empty_like(self.F), np.empty_like(self.I)), 0
            new = slice(self._copied, self._used)
            for copy, own in zip(self._copy, (self.F, self.I), strict=True):
                copy.flags.writeable = True
                copy[:, new] = own[:, new]
                copy.flags.writeable = False
            self._copied = self._used
            self._frozen = OptionTable(self._copy[0][:, : self._used], self._copy[1][:, : self._used])
            self._frozen._frozen = self._frozen
        return self._frozen

    @property
    def only_devices(self) -> bool:
        """Whether devices are all that these options want: no CPUs, memory or storage, and no number of nodes."""
        found = self._only_devices
        if found is None:
            found = not (self.nodes.any() or self.cpus.any() or self.memory.any() or self.storage.any())
            if self._frozen is self:  # which never changes, and is asked at every decision
                self._only_devices = found
        return found

    @staticmethod
    def rigid(types: Ints, gpus: Ints) -> OptionTable:
        """One option per job, at rate one; `types`: of each, or one for all."""
        table = OptionTable.blank(len(gpus))
        table.rate[:] = table.rate_spread[:] = 1.0
        if types.any():  # it is blank
            table.type[:] = types
        table.gpus[:] = gpus
        return table

    def __getitem__(self, row: int) -> Option:
        return Option(**{column.name: getattr(self, column.name)[row].item() for column in self.columns()})


_OPTION_KEYS = ("type", "gpus", "rate", "rate_spread", "cpus", "memory", "nodes", "storage", "row")


def encode_option(option: Option, types: tuple[str, ...]) -> dict[str, Any]:
    """One way to run, with the name of its type."""
    found: dict[str, Any] = {"type": types[option.type], "gpus": option.gpus}
    spread = option.rate if option.rate_spread is None else option.rate_spread
    amounts = [("rate", option.rate, 1.0), ("rate_spread", spread, option.rate)]
    amounts += [(name, getattr(option, name), 0.0) for name in HOST_RESOURCE_NAMES]
    found |= {key: json_number(value) for key, value, usual in amounts if value != usual}
    return found | ({"nodes": option.nodes} if option.nodes else {})


def decode_option(reader: Reader, types: tuple[str, ...]) -> Option:
    """One way to run."""
    reader.only(_OPTION_KEYS)
    name = reader.text("type", types[0] if len(types) == 1 else None)
    codes = {known.lower(): code for code, known in enumerate(types)}
    if name.lower() not in codes:
        raise UsageError(f"the cluster has no type '{name}'", where=reader.at("type"), fix=near(name, types))
    rate = reader.number("rate", 1.0)
    return Option(
        codes[name.lower()],
        reader.whole("gpus"),
        rate,
        reader.number("rate_spread", rate),
        reader.number("cpus", 0.0),
        reader.number("memory", 0.0),
        reader.whole("nodes", 0),
        reader.number("storage", 0.0),
    )


NO_BOUND = 2**40  # devices: more than anything has


class JobSize(NamedTuple):
    """One size of a job on one device type; `Assignment(job, type=size.type, gpus=size.gpus)` gives it."""

    type: int
    gpus: int
    rate: float  # work per second, as it is believed


class SizeTable(NamedTuple):
    """The sizes of several jobs on one device type, in rising order: those of job i are entries [first[i], first[i + 1])."""

    first: Ints
    size: Ints
    rate: Floats  # work per second, as it is believed
    option: Ints  # which of the job's options; -1: a way derived from one


class SizeBounds(NamedTuple):
    """What jobs ask for, one entry each: devices, the fewest and the most, and where their options lie in the table."""

    asked: Ints
    least: Ints
    most: Ints
    first_option: Ints
    options: Ints


def read_sizes(bounds: SizeBounds, options: OptionTable, kind: int, capacity: int = NO_BOUND) -> SizeTable:
    """The sizes of jobs on one device type as their options and ranges say; sizes beyond its capacity are left out."""
    return SizeTable(*_read(bounds.least, bounds.most, bounds.first_option, bounds.options, options.F, options.I, kind, capacity))


def believed(table: SizeTable, asked: Ints, ids: list[str], kind: int, model: Any, learned: Callable[[], Any]) -> SizeTable:
    """The same with the speeds that the performance model lets policies know."""
    table = _as_modelled(table, ids, kind, model)
    known_speeds = getattr(model, "known_speeds", None)
    if known_speeds is not None:
        shown = learned()
        for job, (name, size) in enumerate(zip(ids, asked.tolist())):
            own = slice(table.first[job], table.first[job + 1])
            table.rate[own] = known_speeds(shown, name, size, table.size[own])
    return table


def _as_modelled(table: SizeTable, ids: list[str], kind: int, model: Any) -> SizeTable:
    """The same with the performance model's speeds of sizes that no option lists; those at which nothing is done are dropped."""
    first, size, rate, option = table
    owner = np.repeat(np.arange(len(ids)), np.diff(first))
    for entry in np.flatnonzero(option < 0).tolist():
        known_rate = model.rate(ids[owner[entry]], kind, int(size[entry]))
        rate[entry] = rate[entry] if known_rate is None else known_rate
    kept = rate > 0.0
    if kept.all():
        return table
    first = np.concatenate(([0], np.cumsum(np.bincount(owner[kept], minlength=len(ids))))).astype(np.int64)
    return SizeTable(first, size[kept], rate[kept], option[kept])


@compiled
def _read(
    fewest: Ints, highest: Ints, option_first: Ints, option_count: Ints, OF: Floats, OI: Ints, kind: int, capacity: int
) -> tuple[Ints, Ints, Floats, Ints]:
    n = fewest.size
    first, room = np.zeros(n + 1, np.int64), 0
    for i in range(n):
        room += max(option_count[i], min(highest[i], capacity) - fewest[i] + 1, 0)
    size, rate, option = np.empty(room, np.int64), np.empty(room), np.empty(room, np.int64)
    at = 0
    for i in range(n):
        least, most = max(fewest[i], 1), min(highest[i], capacity)
        begin, sizes, listed = at, 0, -1
        for k in range(option_count[i]):
            o = option_first[i] + k
            if OI[OptionColumn.TYPE, o] != kind or OI[OptionColumn.GPUS, o] == 0:
                continue
            if listed < 0 or OI[OptionColumn.GPUS, o] != OI[OptionColumn.GPUS, listed]:
                sizes += 1
            if listed < 0:
                listed = o
            if OF[OptionColumn.RATE, o] > 0.0 and least <= OI[OptionColumn.GPUS, o] <= most:
                place = at  # options come in any order, and of two for one size the faster counts
                while place > begin and size[place - 1] >= OI[OptionColumn.GPUS, o]:
                    place -= 1
                if place < at and size[place] == OI[OptionColumn.GPUS, o]:
                    if OF[OptionColumn.RATE, o] > rate[place]:
                        rate[place], option[place] = OF[OptionColumn.RATE, o], k
                    continue
                for moved in range(at, place, -1):
                    size[moved], rate[moved], option[moved] = size[moved - 1], rate[moved - 1], option[moved - 1]
                size[place], rate[place], option[place] = OI[OptionColumn.GPUS, o], OF[OptionColumn.RATE, o], k
                at += 1
        if sizes == 1 and least < highest[i] and OF[OptionColumn.RATE, listed] > 0.0:  # one size listed, a range accepted
            kept = option[begin] if at > begin else -1
            at = begin
            for count in range(least, most + 1):
                size[at], rate[at] = count, OF[OptionColumn.RATE, listed] * count / OI[OptionColumn.GPUS, listed]
                option[at] = kept if count == OI[OptionColumn.GPUS, listed] else -1
                at += 1
        first[i + 1] = at
    return first, size[:at], rate[:at], option[:at]
