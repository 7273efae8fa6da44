"""What the table of jobs says beyond the usual where jobs shared devices: with which others, on which nodes, how often a speed changed."""

from __future__ import annotations

import numpy as np
import polars as pl

from gantline.core.columns import Device
from gantline.core.tables import Tables
from gantline.engine.log import Interval, Log


def sharing_columns(log: Log, tables: Tables) -> dict[str, pl.Series]:
    """`partners` and `nodes` in order of first meeting, joined by ``|``, and `rate_changes`; nothing where no job shared a device."""
    if tables.rate_changes is None:
        return {}
    rows = len(tables.ids)
    places, spans = _spans(log, tables, rows)
    partners: list[dict[int, None]] = [{} for _ in range(rows)]
    for _, row, other in sorted(meeting for of_device in spans.values() for meeting in _meetings(of_device)):
        partners[row].setdefault(other)
        partners[other].setdefault(row)
    names = [node.name for node in tables.cluster.nodes]
    return {
        "partners": pl.Series(["|".join(tables.ids[other] for other in found) for found in partners], dtype=pl.String),
        "rate_changes": pl.Series(tables.rate_changes[:rows]),
        "nodes": pl.Series(["|".join(names[node] for node in found) for found in places], dtype=pl.String),
    }


def _spans(log: Log, tables: Tables, rows: int) -> tuple[list[dict[int, None]], dict[int, list[tuple[float, float, int]]]]:
    """Per row the nodes that it was on; per device (start, end, row) of the gangs that held it."""
    places: list[dict[int, None]] = [{} for _ in range(rows)]
    spans: dict[int, list[tuple[float, float, int]]] = {}
    node_of = tables.D[Device.NODE].tolist()
    for at in range(int(log.LN[0])):
        row, first, count = (int(log.LI[name, at]) for name in (Interval.ROW, Interval.OFFSET, Interval.COUNT))
        start, end = float(log.LF[Interval.START, at]), float(log.LF[Interval.END, at])
        if start == end:  # withdrawn before it began
            continue
        for device in log.LD[first : first + count].tolist():
            places[row].setdefault(node_of[device])
            spans.setdefault(device, []).append((start, np.inf if np.isnan(end) else end, row))
        if count == 0 and log.LI[Interval.NODE, at] >= 0:
            places[row].setdefault(int(log.LI[Interval.NODE, at]))
    return places, spans


def _meetings(spans: list[tuple[float, float, int]]) -> list[tuple[float, int, int]]:
    """(when, row, other) for rows that held one device at the same time."""
    found, there = [], list[tuple[float, int]]()
    for start, end, row in sorted(spans):
        there = [one for one in there if one[0] > start]
        found += [(start, row, other) for _, other in there if other != row]
        there.append((end, row))
    return found
