"""Tables of measured throughput: how fast a job type runs on a device type, alone and next to another job.

The layout is Gavel's (OSDI 2020): device type -> ``"('job type', gang size)"`` -> ``{"null": steps/s, "('other', size)":
[own steps/s, other's steps/s]}``; device names are free, and ``<name>_unconsolidated`` holds the speeds of gangs that
span nodes. Zero says "cannot run there" (or "cannot share"); what is absent is unknown and never read as zero.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose, isfinite
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import NotFoundError, TraceError, near
from gantline.core.json_reader import loads

Key = tuple[str, int]  # job type and gang size

SPREAD = "_unconsolidated"


@dataclass(frozen=True, slots=True)
class TableSpeeds:
    """Steps per second of the whole gang; NaN where unknown."""

    alone: Floats  # [key, type]
    paired: Floats  # [key, other key, type]: own speed next to the other


@dataclass(frozen=True, slots=True)
class ThroughputTable:
    """All speeds of all job types on all device types, for gangs within a node and for gangs that span nodes."""

    types: tuple[str, ...]
    keys: tuple[Key, ...]
    packed: TableSpeeds  # the gang sits within a node
    spread: TableSpeeds  # the gang spans nodes
    source: str = ""

    @classmethod
    def parse(cls, text: str, source: str = "") -> ThroughputTable:
        """Read the JSON text of a table; every mistake names the device type and the job type."""
        try:
            body = loads(text)
        except json.JSONDecodeError as error:
            raise TraceError(f"is not JSON: {error.msg}", file=source, line=error.lineno) from None
        return cls.of(body, source)

    @classmethod
    def of(cls, body: Any, source: str = "") -> ThroughputTable:
        """A table from its nested dictionaries."""
        if not isinstance(body, dict) or not body:
            raise TraceError("holds no device types", file=source, fix="device type -> job type -> speeds")
        types = tuple(name for name in body if not name.endswith(SPREAD))
        for name in body:
            if name.endswith(SPREAD) and name.removesuffix(SPREAD) not in types:
                raise TraceError(f"speeds across nodes without speeds within one for '{name}'", file=source)
        read: dict[str, Key] = {}
        for name, rows in body.items():
            if not isinstance(rows, dict):
                raise TraceError("holds no job types", file=source, field=name)
            for text in rows:
                if text not in read:
                    read[text] = _key(text, source, name)
        keys = tuple(dict.fromkeys(read.values()))
        shape = (len(keys), len(keys), len(types))
        variants = []
        for suffix in ("", SPREAD):
            alone, paired = np.full((shape[0], shape[2]), np.nan), np.full(shape, np.nan)
            for j, name in enumerate(types):
                _fill(body.get(name + suffix, {}), alone[:, j], paired[:, :, j], read, keys, source, name + suffix)
            variants.append(TableSpeeds(alone, paired))
        return cls(types, keys, variants[0], variants[1], source)

    def key(self, job_type: str, size: int) -> int:
        """The row of a job type at a gang size."""
        try:
            return self.keys.index((job_type, size))
        except ValueError:
            sizes = sorted(s for name, s in self.keys if name == job_type)
            fix = f"it has sizes {sizes}" if sizes else near(job_type, {name for name, _ in self.keys})
            raise NotFoundError(f"no throughput of '{job_type}' with {size} devices", where=self.source, fix=fix) from None

    def alone(self, rows: Ints, types: Sequence[str]) -> Floats:
        """Speeds [job, type] of jobs with these keys, alone within a node; a gap is refused."""
        columns = self._columns(types)
        speeds = self.packed.alone[np.ix_(rows, columns)]
        if np.isnan(speeds).any():
            i, j = np.argwhere(np.isnan(speeds))[0]
            name, size = self.keys[rows[i]]
            raise NotFoundError(
                f"no throughput of '{name}' with {size} devices on '{types[j]}'",
                where=self.source,
                fix="measure it, or write 0 if the job cannot run there",
            )
        return speeds

    def _columns(self, types: Sequence[str]) -> Ints:
        for name in types:
            if name not in self.types:
                raise NotFoundError(f"no device type '{name}' in the table", where=self.source, fix=near(name, self.types))
        return np.array([self.types.index(name) for name in types], dtype=np.int64)


def _key(text: str, source: str, name: str) -> Key:
    try:
        job_type, size = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):
        raise TraceError(f"{text!r} is no job type", file=source, field=name, fix="write \"('name', gang size)\"") from None
    if not isinstance(job_type, str) or not isinstance(size, int) or size < 1:
        raise TraceError(f"{text!r} is no job type", file=source, field=name, fix="write \"('name', gang size)\"")
    return job_type, size


def _fill(
    rows: dict[str, object], alone: Floats, paired: Floats, read: dict[str, Key], keys: tuple[Key, ...], source: str, name: str
) -> None:
    """Write one device type's speeds into the columns, checking each entry and each pair from both sides."""
    place = {key: i for i, key in enumerate(keys)}
    seen: dict[tuple[int, int], tuple[float, float]] = {}
    for text, entries in rows.items():
        where = f"{name} / {text}"
        if not isinstance(entries, dict) or "null" not in entries:
            raise TraceError("has no speed alone", file=source, field=where, fix='add the entry "null"')
        a = place[read[text]]
        alone[a] = _speed(entries["null"], source, where)
        for other, both in entries.items():
            if other == "null":
                continue
            at = f"{where} / {other}"
            key = read[other] if other in read else _key(other, source, where)
            if key not in place:
                raise TraceError(f"pairs with {key}, which is not in the table", file=source, field=at)
            if key[1] != keys[a][1]:
                raise TraceError("pairs gangs of different size", file=source, field=at, fix="only equal gangs can share")
            if not isinstance(both, (list, tuple)) or len(both) != 2:
                raise TraceError(f"{both!r} is not a pair of speeds", file=source, field=at, fix="write [own, other's]")
            own, others = _speed(both[0], source, at), _speed(both[1], source, at)
            if (own > 0) != (others > 0):
                raise TraceError("only one of the two makes progress", file=source, field=at, fix="write [0, 0] if they cannot share")
            seen[a, place[key]] = own, others
            paired[a, place[key]] = own
    for (a, b), (own, others) in seen.items():
        mirror = seen.get((b, a))
        if mirror is None or not (isclose(mirror[0], others, rel_tol=1e-6) and isclose(mirror[1], own, rel_tol=1e-6)):
            what = "is given from one side only" if mirror is None else "differs from what the other side says"
            raise TraceError(what, file=source, field=f"{name} / {keys[a]} / {keys[b]}", fix=f"make {keys[b]} / {keys[a]} agree")


def _speed(value: object, source: str, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TraceError(f"{value!r} is not a number", file=source, field=where, fix="give steps per second")
    if not isfinite(value) or value < 0:
        raise TraceError(f"speed {value} is not possible", file=source, field=where, fix="give steps per second, 0 or more")
    return float(value)
