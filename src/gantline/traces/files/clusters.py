"""Clusters by value, specification, YAML or CSV file, and events of their nodes from a table."""

from __future__ import annotations

import csv
import math
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from gantline.core.cluster import NO_BANDWIDTHS, Bandwidths, Cluster, Link, Node, check_links
from gantline.core.cluster_spec import add_machine, check_size, grown, parse_cluster, racks_of
from gantline.core.errors import GantlineError, NotFoundError, TraceError, UsageError, near
from gantline.core.fields import seconds
from gantline.core.inputs import KINDS, NodeEvent
from gantline.traces.files.marked_yaml import composed
from gantline.traces.importers.table import number, read_foreign, text

_GPUS = 8
_COUNTS = ("nodes", "num")
_LAYOUT = "write name,nodes and a line per virtual cluster: research,3"


def read_virtual_clusters(path: Path) -> Cluster:
    """The cluster that such a file describes; its nodes are called after their pool, ``research-0``."""
    if not path.is_file():
        raise NotFoundError("no such file", where=str(path), fix="check the path given as --cluster")
    raw = read_foreign(path, ())
    columns = raw.frame.columns
    count = next((name for name in _COUNTS if name in columns), None)
    if count is None or len(columns) < 2:
        raise raw.error("does not say how many nodes a virtual cluster has", field="nodes", fix=_LAYOUT)
    names, counts = text(raw, columns[0]).to_list(), number(raw, count, required=True).to_list()
    gpus = number(raw, "gpus", required=True).to_list() if "gpus" in columns else [float(_GPUS)] * len(names)
    nodes: list[Node] = []
    for row, (pool, many, each) in enumerate(zip(names, counts, gpus)):
        if not pool:
            raise raw.error("a virtual cluster has no name", row=row, fix=_LAYOUT)
        if pool in names[:row]:
            raise raw.error(f"two virtual clusters are called '{pool}'", row=row, fix="give each one line")
        for field, value in ((count, many), ("gpus", each)):
            if value < 1 or value % 1:
                raise raw.error(f"virtual cluster '{pool}' has {value:g}", row=row, field=field, fix="write a whole number above zero")
        nodes += [Node(f"{pool}-{number}", gpus=int(each), pool=pool) for number in range(int(many))]
    return Cluster(tuple(nodes), spec=str(path))


# Clusters given by value, by short specification, by YAML file or by a CSV file of virtual clusters.

_FILES = (".yaml", ".yml", ".csv")


def is_cluster_file(text: str) -> bool:
    """Whether this names a file rather than writing a cluster out."""
    return text.endswith(_FILES)


def read_cluster(given: Cluster | str | Path) -> Cluster:
    """The cluster that a value, a specification such as ``v100:4x8`` or a file (YAML, CSV of virtual clusters) describes."""
    if isinstance(given, Cluster):
        cluster = given
    elif str(given).endswith(".csv"):
        cluster = read_virtual_clusters(Path(given))
    elif isinstance(given, Path) or is_cluster_file(str(given)):
        path = Path(given)
        try:
            cluster = parse_cluster_yaml(path.read_text(encoding="utf-8"), str(path))
        except FileNotFoundError:
            raise NotFoundError("no such file", where=str(path), fix="check the path given as --cluster") from None
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot be read: {error}", where=str(path)) from None
    elif isinstance(given, str):
        cluster = parse_cluster(given)
    else:
        fix = "write '8x4' (nodes x GPUs), name a file (YAML or CSV), or give a Cluster"
        raise UsageError(f"{given!r:.60} is no cluster", where="cluster", fix=fix)
    if not any(node.gpus or node.cpus for node in cluster.nodes):
        raise UsageError("the cluster has neither GPUs nor CPUs", where=f"cluster '{cluster}'", fix="give its nodes some")
    return cluster


def grown_cluster(text: str, share: float) -> str:
    """The specification of a cluster, given as one or as a file, with so much more nodes of every kind."""
    if not is_cluster_file(text):
        return grown(text, share)
    cluster = read_cluster(text)
    if cluster.links or cluster.bandwidths != NO_BANDWIDTHS:
        fix = "name the larger cluster yourself: --also FILE"
        raise UsageError("how a larger one is wired is not known", where=f"cluster '{text}'", fix=fix)
    return grown(short_form(cluster), share)


def short_form(cluster: Cluster) -> str:
    """The specification of nodes like those of the cluster, group by group; names, slices and links are not part of it."""
    groups = Counter((node.type, node.gpus, node.cpus, node.memory, node.storage, node.device_memory, node.rack) for node in cluster.nodes)
    parts = []
    for (kind, gpus, *amounts, rack), count in groups.items():
        beside = "".join(f"/{amount:.10g}{unit}" for amount, unit in zip(amounts, "cgsd") if amount) + (f"@{rack}" if rack else "")
        parts.append(f"{kind}:{count}x{gpus}{beside}")
    return ",".join(parts)


# YAML

_YAML_NODE = {"name", "count", "type", "gpus", "cpus", "memory", "storage", "device_memory", "rack", "per_rack", "pool", "slices"}
_YAML_LINK = {"a", "b", "bandwidth", "kind"}


def parse_cluster_yaml(text: str, where: str = "cluster file") -> Cluster:
    """The cluster that a YAML document describes, in the words of the short form::

    nodes:
      - {count: 4, type: v100, gpus: 8, cpus: 96, memory: 512, storage: 500, device_memory: 32, rack: r1}
      - {count: 32, type: a100, gpus: 8, per_rack: 16}
      - {type: h200, gpus: 2, slices: 8%x4+16%x4}
    bandwidths: {node: 300, rack: 25, cluster: 6}
    links:
      - {a: rack:r1, b: switch:core, bandwidth: 12.5, kind: network}
    """
    try:
        loader = yaml.SafeLoader(text)
        node = composed(loader, where)
        document = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}:{mark.line + 1}" if mark is not None else where
        problem = getattr(error, "problem", None) or "not YAML"
        raise UsageError(f"broken YAML: {problem}", where=place, fix="check indentation, colons and brackets there") from None
    except RecursionError:
        raise UsageError("the YAML is nested too deeply", where=where, fix="a list of nodes needs three levels") from None
    if not isinstance(document, dict) or not isinstance(document.get("nodes"), list) or not document["nodes"]:
        raise UsageError("no list 'nodes'", where=where, fix="write nodes: [{count: 4, type: v100, gpus: 8}]")
    _only(document, {"nodes", "links", "bandwidths", "name"}, where)
    nodes: list[Node] = []
    for at, entry in enumerate(document["nodes"]):
        place = f"{where}: nodes[{at}]"
        if not isinstance(entry, dict):
            raise UsageError("is not a mapping", where=place, fix="write {count: 4, type: v100, gpus: 8}")
        _only(entry, _YAML_NODE, place)
        count, gpus = _whole(entry, "count", place, 1), _whole(entry, "gpus", place, 0)
        check_size(len(nodes) + count, sum(node.gpus for node in nodes) + count * gpus, place)
        per_rack = _whole(entry, "per_rack", place, 0) if "per_rack" in entry else None
        for index, rack in enumerate(racks_of(nodes, count, str(entry.get("rack", "")), per_rack, place)):
            base = str(entry.get("name", f"node{len(nodes)}"))
            machine = Node(
                name=f"{base}-{index}" if "name" in entry and count > 1 else base,
                type=str(entry.get("type", "gpu")),
                gpus=gpus,
                cpus=_number(entry, "cpus", place, 0),
                memory=_number(entry, "memory", place, 0),
                storage=_number(entry, "storage", place, 0),
                device_memory=_number(entry, "device_memory", place, 0),
                rack=rack,
                pool=str(entry.get("pool", "")),
            )
            add_machine(nodes, machine, None if entry.get("slices") is None else str(entry["slices"]), place)
    links: list[Link] = []
    listed = document.get("links") or []
    if not isinstance(listed, list):
        fix = "write links: [{a: rack:r1, b: rack:r2, bandwidth: 12.5}]"
        raise UsageError(f"'links' is {listed!r:.60}, not a list", where=where, fix=fix)
    for at, entry in enumerate(listed):
        place = f"{where}: links[{at}]"
        if not isinstance(entry, dict) or "a" not in entry or "b" not in entry:
            raise UsageError("needs 'a' and 'b'", where=place, fix="write {a: rack:r1, b: rack:r2, bandwidth: 12.5}")
        _only(entry, _YAML_LINK, place)
        bandwidth = _number(entry, "bandwidth", place, 0, -math.inf)
        links.append(Link(str(entry["a"]), str(entry["b"]), bandwidth, str(entry.get("kind", "network"))))
    check_links(nodes, links, where)
    return Cluster(tuple(nodes), tuple(links), spec=str(document.get("name", where)), bandwidths=_bandwidths(document, where))


def _bandwidths(document: dict[str, Any], where: str) -> Bandwidths:
    """The bandwidths of the levels, where a document has some."""
    if "bandwidths" not in document:
        return Bandwidths()
    place, found = f"{where}: bandwidths", document["bandwidths"]
    if not isinstance(found, dict) or set(found) != set(Bandwidths._fields):
        raise UsageError("needs 'node', 'rack' and 'cluster'", where=place, fix="write {node: 300, rack: 25, cluster: 6}, GB/s")
    return Bandwidths.of([_number(found, name, place, 0) for name in Bandwidths._fields], place)


def _only(entry: dict[str, Any], known: set[str], place: str) -> None:
    for key in entry:
        if key not in known:
            raise UsageError(f"unknown key '{key}'", where=place, fix=near(str(key), known))


def _number(entry: dict[str, Any], key: str, place: str, default: float, least: float = 0.0) -> float:
    value = entry.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < least:
        raise UsageError(f"'{key}' is {value!r}", where=place, fix="use a number of zero or more")
    return float(value)


def _whole(entry: dict[str, Any], key: str, place: str, default: int) -> int:
    value = _number(entry, key, place, default)
    if value != int(value):
        raise UsageError(f"'{key}' is {entry[key]!r}", where=place, fix="use a whole number")
    return int(value)


# Node events from a table: ``time,node,event`` and, for nodes that join,
# ``type,gpus,cpus,memory,storage,device_memory,rack,pool``.

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
