"""GPUs that a trace keeps for single jobs (`reserved`): the job has this option and no other."""

from __future__ import annotations

from typing import Any

import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import TraceError
from gantline.traces.options import WrittenOption, format_options, parse_options
from gantline.traces.trace import Trace

_CELLS = ("type", "options", "min_gpus", "max_gpus")  # columns that define how a job may run


def reservations(trace: Trace) -> dict[str, tuple[str, int]]:
    """The type and number of GPUs that are kept for a job, by name."""
    if "reserved" not in trace.columns:
        return {}
    some = trace.frame.filter(pl.col("reserved").fill_null("") != "").select("job", "reserved")
    return {name: (kept.partition(":")[0], int(kept.partition(":")[2])) for name, kept in some.iter_rows()}


def only_reserved(trace: Trace, cluster: Cluster) -> Trace:
    """The same jobs, those with a reservation with that option alone."""
    kept = reservations(trace)
    if not kept:
        return trace
    frame = trace.frame
    cells = {name: frame[name].to_list() for name in _CELLS if name in frame.columns} | {"gpus": frame["gpus"].to_list()}
    cells.setdefault("type", [""] * frame.height)
    for row, name in enumerate(frame["job"].to_list()):
        if name in kept:
            kind, gpus = kept[name]
            _check(trace, cluster, row, kind, gpus, {column: values[row] for column, values in cells.items()})
            ways = [way for way in _ways(cells, row) if (way.type, way.gpus) == (kind, gpus)]
            only = {"type": kind, "options": format_options(ways[:1]), "min_gpus": gpus, "max_gpus": gpus, "gpus": gpus}
            for column, values in cells.items():
                values[row] = only.get(column, values[row])
    columns = [pl.Series(name, values, dtype=frame.schema.get(name, pl.String)) for name, values in cells.items()]
    return Trace(frame.with_columns(columns), trace.source, trace.notes)


def _ways(cells: dict[str, list[Any]], row: int) -> tuple[WrittenOption, ...]:
    return parse_options(cells["options"][row] or "") if "options" in cells else ()


def _check(trace: Trace, cluster: Cluster, row: int, kind: str, gpus: int, cell: dict[str, Any]) -> None:
    """Refuse a reservation that the cluster does not have, or that is no option of the job."""
    what, fix = "", "reserve less, or another type"
    listed = {(way.type, way.gpus) for way in parse_options(cell.get("options") or "")}
    asked = not listed and cell["gpus"] == gpus and cell["type"] in (None, "", kind)
    if kind not in cluster.types or cluster.gpus_of(kind) < gpus:
        what = "which the cluster does not have"
    elif not asked and (kind, gpus) not in listed:
        what, fix = "which is no way for it to run", f"reserve the GPUs that it asks for, or list {kind}:{gpus}=SECONDS in 'options'"
    if what:
        text = f"job '{trace.frame['job'][row]}' reserves {gpus} GPUs of '{kind}', {what}"
        raise TraceError(text, file=trace.source, line=row + 2, field="reserved", fix=fix)
