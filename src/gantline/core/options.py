"""The ways in which a job may run: device type, count, nodes, CPUs, memory, storage bandwidth, and how fast it is that way.

AlloX' CPU or GPU, Sia's configurations and "any of H100:8, A100:16" are the same thing: rows of one table. A rigid job on a cluster of
one type has exactly one option.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import HOST_RESOURCE_NAMES, Table, number, place
from gantline.core.columns import Option as OptionColumn
from gantline.core.errors import UsageError, near
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
