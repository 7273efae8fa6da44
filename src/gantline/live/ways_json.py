"""Ways to run that were derived from the options of jobs, as plain JSON and back: a part of a checkpoint.

A way keeps its number, and no number is used again, because a policy may remember it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gantline.core.columns import Job
from gantline.core.json_reader import Reader
from gantline.core.option_json import decode_option, encode_option
from gantline.core.options import Option, OptionTable
from gantline.core.tables import Tables
from gantline.engine.option_rows import OptionRows


def encode_ways(ways: OptionRows, rows: Iterable[int]) -> dict[str, Any]:
    """How many options there were, and the ways derived from those of these rows."""
    t = ways.tables
    own = {int(t.I[Job.OPTION_FIRST, row]) + k for row in rows for k in range(int(t.I[Job.OPTION_COUNT, row]))}
    kept = [(key, row) for key, row in ways.derived.items() if _base(key) in own]
    entries = [[list(key), encode_option(t.options[row], t.cluster.types) | {"row": row}] for key, row in kept]
    return {"count": len(t.options), "derived": entries}


def make_room(tables: Tables, saved: Mapping[str, Any]) -> None:
    """As many options as there were, before anything refers to them."""
    ways = saved.get("ways", {})
    readers = [Reader(way, "checkpoint.ways") for _, way in ways.get("derived", ())]
    derived = {reader.whole("row"): decode_option(reader, tables.cluster.types) for reader in readers}
    known, blank = [tables.options[row] for row in range(len(tables.options))], Option(0, 0, 0.0)
    known += [blank] * (ways.get("count", 0) - len(known))
    tables.options = OptionTable.build([derived.get(row, option) for row, option in enumerate(known)])


def restore_ways(ways: OptionRows, saved: Mapping[str, Any]) -> None:
    """Find derived ways again."""
    ways.derived = {tuple(key): way["row"] for key, way in saved.get("ways", {}).get("derived", ())}


def _base(key: tuple[Any, ...]) -> int:
    """The option that a way is derived from; those without side demands of their own have a negative number."""
    return int(key[0]) if key[0] >= 0 else -1 - int(key[0])
