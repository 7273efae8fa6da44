"""Node events from a table: ``time,node,event`` and, for nodes that join, ``type,gpus,cpus,memory,storage,device_memory,rack,pool``."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from gantline.core.cluster import Cluster, Node
from gantline.core.errors import GantlineError, NotFoundError, TraceError, near
from gantline.core.inputs import KINDS, NodeEvent
from gantline.core.units import seconds

_REQUIRED = ("time", "node", "event")
_NODE = ("type", "gpus", "cpus", "memory", "rack", "pool", "storage", "device_memory")
_AMOUNTS = ("gpus", "cpus", "memory", "storage", "device_memory")


def read_node_events(path: Path, cluster: Cluster) -> list[NodeEvent]:
    """The events of a CSV file, each checked against the nodes there are by then."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NotFoundError("no such file", where=str(path), fix="check the path given as --node-events") from None
    except UnicodeDecodeError:
        raise TraceError("is not text", file=str(path), fix="a CSV file: time,node,event") from None
    reader = csv.DictReader(text.splitlines())
    for name in reader.fieldnames or ():
        if name not in (*_REQUIRED, *_NODE):
            raise TraceError(f"unknown column '{name}'", file=str(path), line=1, field=name, fix=near(name, (*_REQUIRED, *_NODE)))
    for name in _REQUIRED:
        if name not in (reader.fieldnames or ()):
            raise TraceError(f"column '{name}' is missing", file=str(path), line=1, field=name, fix="the header is time,node,event")
    events = sorted(((_event(row, str(path), reader.line_num), reader.line_num) for row in reader), key=lambda found: found[0].time)
    known = {node.name for node in cluster.nodes}
    for event, line in events:
        if event.kind == "join" and event.name in known:
            raise TraceError(f"'{event.name}' is there already", file=str(path), line=line, field="node", fix="use the event up")
        if event.kind != "join" and event.name not in known:
            raise TraceError(f"no node '{event.name}'", file=str(path), line=line, field="node", fix=near(event.name, known))
        known.add(event.name)
    return [event for event, _ in events]


def _event(row: dict[str, str | None], file: str, line: int) -> NodeEvent:
    name, kind = (row["node"] or "").strip(), (row["event"] or "").strip()
    if kind not in KINDS:
        raise TraceError(f"'{kind}' is not an event", file=file, line=line, field="event", fix="use " + ", ".join(KINDS))
    try:
        time = seconds((row["time"] or "").strip(), "time")
    except (GantlineError, ValueError):
        time = math.nan
    if not math.isfinite(time):
        raise TraceError(f"'{row['time']}' is not a time", file=file, line=line, field="time", fix="seconds, or 2h, or HH:MM:SS")
    if kind != "join":
        return NodeEvent(time, name, kind)
    amounts = {}
    for field in _AMOUNTS:
        text = (row.get(field) or "0").strip()
        try:
            amounts[field] = float(text)
        except ValueError:
            amounts[field] = -1.0
        if not 0 <= amounts[field] < math.inf:
            raise TraceError(f"'{text}' is not an amount", file=file, line=line, field=field, fix="a number of zero or more")
    rack, pool = ((row.get(field) or "").strip() for field in ("rack", "pool"))
    kind_of_device = (row.get("type") or "").strip() or "gpu"
    gpus, cpus, memory, storage, device_memory = (amounts[field] for field in _AMOUNTS)
    node = Node(name, kind_of_device, int(gpus), cpus, memory, rack, pool, storage, device_memory)
    return NodeEvent(time, name, kind, node)
