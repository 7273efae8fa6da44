"""Which row of the option table an assignment means: one of the job's own options, or a new one derived from it; and other sizes of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.cluster import Cluster
from gantline.core.columns import ASKED_TOGETHER, HOST_RESOURCE_NAMES, HOST_RESOURCES
from gantline.core.columns import Option as OptionColumn
from gantline.core.errors import RefusedError, UsageError
from gantline.core.options import Option
from gantline.core.plan import ASSIGNMENT_DEFAULTS, Assignment, Assignments
from gantline.core.slices import is_slice
from gantline.core.tables import Tables

IMPOSSIBLE = -1
_NEVER = -3  # in place of an option: not looked up yet
_WHOLE = ("option", "gpus", "type", "span")
_ASKED = (*_WHOLE, *HOST_RESOURCE_NAMES)
_AS_LISTED = (math.nan,) * HOST_RESOURCES


class OptionRows:
    """Finds option rows, and appends each derived option once, identified by size and demands, not by speed."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.derived: dict[tuple[float, ...], int] = {}  # (from which option, type, gpus, nodes, CPUs, memory, storage)
        self._last: dict[str, np.ndarray] = {}  # per row: what was asked last, and the answer
        self._told = {"option"}  # what was ever asked; of the rest rows have the defaults

    def of_table(self, rows: Ints, table: Assignments) -> Ints:
        """One option row per assignment that names no parts or devices; -1: there is no such option."""
        owner, jobs = rows, self.tables.jobs
        if not any(table.has(name) for name in _ASKED[1:]):
            first: Ints = jobs.option_first[owner]
            if not table.has("option"):
                return first
            chosen = table.column("option")
            found = first + np.maximum(chosen, 0)
            return np.where(chosen < jobs.option_count[owner], found, IMPOSSIBLE).astype(np.int64)
        self._told.update(name for name in _ASKED if table.has(name))
        found, known = self._as_before(owner, table)
        if known.all():
            return found
        fresh = np.flatnonzero(~known)
        rows, asked = owner[fresh], [table.column(name)[fresh] for name in _ASKED]
        keys = self._keys(rows, asked)
        for at, key, row, (option, gpus, kind, span, *beside) in zip(
            fresh.tolist(), keys, rows.tolist(), zip(*(each.tolist() for each in asked))
        ):
            derived = self.derived.get(key) if option < 0 and gpus < 0 and kind < 0 and span == 0 else None
            found[at] = self.find(row, option, gpus, kind, beside, span) if derived is None else derived
        for name, column in zip((*_ASKED, "found"), (*asked, found[fresh])):
            if name == "found" or name in self._told:
                self._last[name][rows] = column
        return found

    def _keys(self, rows: Ints, asked: list[np.ndarray]) -> Iterator[tuple[float, ...]]:
        """What identifies the first option of each row with other amounts beside it."""
        OI, base = self.tables.options.I, self.tables.jobs.option_first[rows]
        amounts = [np.where(np.isnan(amount), -1.0, amount).tolist() for amount in asked[len(_WHOLE) :]]
        return zip(
            base.tolist(), *(OI[line][base].tolist() for line in (OptionColumn.TYPE, OptionColumn.GPUS, OptionColumn.NODES)), *amounts
        )

    def _as_before(self, rows: Ints, table: Assignments) -> tuple[Ints, Bools]:
        """Options of rows that want the same as last time."""
        size = self.tables.F.shape[1]
        if not self._last or len(self._last["found"]) < size:  # also where there are no rows
            self._last = {name: np.full(size, ASSIGNMENT_DEFAULTS[name]) for name in _ASKED}
            self._last["found"] = np.full(size, IMPOSSIBLE, dtype=np.int64)
            self._last["option"][:] = _NEVER
        known = np.ones(len(rows), dtype=np.bool_)
        for name in self._told:
            last, column = self._last[name][rows], table.column(name)
            known &= (last == column) | (np.isnan(last) & np.isnan(column)) if name in HOST_RESOURCE_NAMES else last == column
        return self._last["found"][rows], known

    def forget(self, row: int) -> None:
        """The options of a row have changed: its last lookup is void."""
        if self._last and row < len(self._last["option"]):
            self._last["option"][row] = _NEVER

    def find(self, row: int, option: int, gpus: int, kind: int, beside: Sequence[float] = _AS_LISTED, span: int = 0) -> int:
        """An option of the job's own if one matches, else a new one with the performance model's speed; -1: impossible.

        `beside`: CPUs, memory and storage bandwidth in all; NaN: as the option says. `span`: on so many nodes; 0: as it says.
        """
        base = self._base(row, option, gpus, kind)
        if base == IMPOSSIBLE:
            return IMPOSSIBLE
        options = self.tables.options
        size, type_code = int(options.gpus[base]) if gpus < 0 else gpus, int(options.type[base]) if kind < 0 else kind
        same = bool(size == options.gpus[base] and type_code == options.type[base])
        if same and all(map(math.isnan, beside)) and span in (0, options.nodes[base]):
            return base
        if (size == 0 and options.gpus[base] > 0) or not self._can_span(type_code, size, span):
            return IMPOSSIBLE  # an empty gang, or more nodes than devices
        one = bool(options.nodes[base] == 1 and self.tables.jobs.consolidate[row] == ASKED_TOGETHER)
        if one and span > 1:
            return IMPOSSIBLE
        span = span or (int(options.nodes[base]) if same or one else 0)
        key = (base, type_code, size, span, *(-1.0 if math.isnan(amount) else amount for amount in beside))
        found = self.derived.get(key)
        if found is None:
            found = self._derive(row, base, type_code, size, beside, same, span)
            if found != IMPOSSIBLE:
                self.derived[key] = found
        return found

    def _derive(self, row: int, base: int, kind: int, size: int, beside: Sequence[float], same: bool, span: int) -> int:
        """Append a new option."""
        like = self.tables.options[base]
        rate = like.rate if same else self._rate(row, like, kind, size)
        if rate is None:
            return IMPOSSIBLE
        spread = like.rate if like.rate_spread is None else like.rate_spread
        listed = (like.cpus, like.memory, like.storage)
        cpus, memory, storage = (usual if math.isnan(amount) else amount / max(size, 1) for amount, usual in zip(beside, listed))
        return self.tables.options.append(
            Option(
                kind,
                size,
                rate=rate,
                rate_spread=rate * (spread / like.rate) if like.rate else rate,
                cpus=cpus,
                memory=memory,
                nodes=span,
                storage=storage,
            )
        )

    def _can_span(self, kind: int, size: int, span: int) -> bool:
        """Whether the cluster has so many nodes of the type, and each gets a device."""
        return span == 0 or 0 < span <= min(max(size, 1), int((self.tables.nodes.type == kind).sum()))

    def bare(self, row: int, option: int, kind: int, gpus: int) -> int:
        """An option that takes nothing beside, for grants with parts that state theirs; its speed is that of the job's option."""
        base = self._base(row, option, gpus, kind)
        first = int(self.tables.jobs.option_first[row]) if base == IMPOSSIBLE else base
        key = (-1 - first, kind, gpus)
        found = self.derived.get(key)
        if found is None:
            like = self.tables.options[first]
            found = self.derived[key] = self.tables.options.append(Option(kind, gpus, like.rate, like.rate_spread))
        return found

    def _base(self, row: int, option: int, gpus: int, kind: int) -> int:
        """The job's option that the wanted one is, or is derived from: same type and size, else same type, else its first."""
        t = self.tables
        first, count = int(t.jobs.option_first[row]), int(t.jobs.option_count[row])
        if option >= count or kind >= len(t.cluster.types):
            return IMPOSSIBLE
        if option >= 0:
            return first + option
        same_type = -1
        for candidate in range(first, first + count):
            if kind < 0 or t.options.type[candidate] == kind:
                if gpus < 0 or t.options.gpus[candidate] == gpus:
                    return candidate
                same_type = candidate if same_type < 0 else same_type
        return same_type if same_type >= 0 else first

    def _rate(self, row: int, like: Option, kind: int, gpus: int) -> float | None:
        """Speed of a derived option: the model's, else linear in the size; the speed on another type is unknown."""
        model = self.tables.performance
        rate = None if model is None else model.rate(self.tables.ids[row], kind, gpus)
        if rate is not None:
            return float(rate)
        if kind != like.type or like.gpus == 0:
            return None
        return like.rate * gpus / like.gpus


def sizes_in_steps(listed: set[int], least: int, asked: int, most: int) -> list[int]:
    """The sizes of a job that changes in steps, the one that it asks for first, then smaller ones, then larger; of others that one."""
    step = math.gcd(*(size - min(listed) for size in listed)) if len(listed) > 1 else 1
    if step == 1:
        return [asked]
    if (asked - min(listed)) % step:
        below = asked - (asked - min(listed)) % step
        near_by = " or ".join(str(size) for size in (below, below + step) if size > 0)
        raise UsageError(f"{asked} GPUs, but it changes in steps of {step}", where="resize", fix=f"give {near_by}")
    return [*range(asked, least - 1, -step), *range(asked + step, most + 1, step)]


# How many devices an assignment gives, and the same assignment with another number.


def size_of(t: Tables, row: int, item: Assignment) -> int:
    """How many devices an assignment gives."""
    if item.parts:
        return sum(part.count * part.gpus for part in item.parts)
    if item.devices:
        return len(item.devices)
    if item.gpus >= 0:
        return item.gpus
    return int(t.options.gpus[t.jobs.option_first[row] + max(item.option, 0)])


def smaller_way(t: Tables, row: int, item: Assignment, most: int) -> Assignment | None:
    """The same with at most so many devices: one of its own options if it has several sizes, else any number from its least on."""
    if item.parts or item.group >= 0:
        return None
    first, count = int(t.jobs.option_first[row]), int(t.jobs.option_count[row])
    own = {int(size) for size in t.options.gpus[first : first + count]}
    fitting = [size for size in own if 0 < size <= most] if len(own) > 1 else ([most] if most >= max(1, int(t.jobs.min_gpus[row])) else [])
    if not fitting:
        return None
    if item.devices:
        return replace(item, devices=item.devices[: max(fitting)], gpus=-1, option=-1)
    kind = item.type if item.option < 0 else int(t.options.type[first + item.option])
    return replace(item, option=-1, gpus=max(fitting), type=kind)


def larger_way(t: Tables, row: int, item: Assignment, least: int) -> Assignment | None:
    """The same with at least so many devices, which the engine places."""
    if item.parts or item.group >= 0:
        return None
    first = int(t.jobs.option_first[row])
    kind = item.type if item.option < 0 else int(t.options.type[first + item.option])
    return replace(item, devices=(), nodes=(), option=-1, gpus=least, type=kind)


# Jobs whose gang must be on one node: a process cannot use devices of two.
#
# Such a job (`columns.ASKED_TOGETHER`) has options that span one node, and they do so whatever size a policy or a user
# makes of them. So every placement rule, every plan and every rollout keeps to it, on either clock.


def on_one_node(cluster: Cluster, job: str, options: Sequence[Option], most: int) -> list[Option]:
    """The options that one node can hold, each on one node; refused where there is none, or the job may grow beyond every node.

    A GPU that is cut in slices is a node of its own: what must be on one of those says so in its options.
    """
    room = {kind: max((node.gpus for node in cluster.nodes if node.type == kind), default=0) for kind in cluster.types}
    free = [one for one in options if not one.gpus or is_slice(cluster.types[one.type])]
    bound = [one for one in options if one not in free]
    found = [replace(one, nodes=1) for one in bound if one.gpus <= room[cluster.types[one.type]]]
    largest = max((room[cluster.types[one.type]] for one in bound), default=0)
    if bound and (not found or most > largest) and not free:
        need = max(most, min(one.gpus for one in bound))
        what = (
            f"job '{job}' has fewer processes than devices, or asks for one node: it can use no more than {largest} devices, and not {need}"
        )
        raise RefusedError(what, where="processes", fix="processes: gpus starts one for each device, processes: nodes one on each node")
    return [*found, *free]
