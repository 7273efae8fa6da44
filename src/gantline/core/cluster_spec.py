"""Clusters as people write them: ``32x4``, ``v100:36,p100:36``, ``v100:4x8@rack1``, ``cpu:10x0/20c/64g`` or YAML.

The short form is a comma-separated list of groups ``[type:]nodes x gpus[/slices][/CPUs c][/memory g][/storage s][/device memory
d][@rack]``, with memory in GB and storage bandwidth in MB/s; ``v100:4x8/32d`` are devices of 32 GB; ``h200:4x8/8`` has every GPU cut in
eight slices (`core.slices`), where a GPU takes the place of a node and its machine that of a rack; ``type:N`` without ``x`` is N nodes with
one device each, which is how Gavel counts servers; ``64x8@16/rack`` are racks of sixteen nodes. ``links:300/25/6`` as one more group are
GB/s in a node, in a rack and across racks. ``24x1@6/rack,tree:6.25/18.75`` has links from nodes to their racks and from racks to a switch,
GB/s of each. YAML has the same words spelled out::

    nodes:
      - {count: 4, type: v100, gpus: 8, cpus: 96, memory: 512, storage: 500, device_memory: 32, rack: r1}
      - {count: 32, type: a100, gpus: 8, per_rack: 16}
      - {type: h200, gpus: 2, slices: 8%x4+16%x4}
    bandwidths: {node: 300, rack: 25, cluster: 6}
    links:
      - {a: rack:r1, b: switch:core, bandwidth: 12.5, kind: network}
"""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

from gantline.core.cluster import Cluster, Link, Node
from gantline.core.errors import UsageError, near
from gantline.core.nodes import TREE, Bandwidths, check_links

_GROUP = re.compile(
    r"^(?:(?P<type>[A-Za-z][\w.\-]*):)?(?P<nodes>\d+)(?:x(?P<gpus>\d+))?(?:/(?P<slices>\d+(?:%[\dx%+]*)?))?(?:/(?P<cpus>\d+\.?\d*|\.\d+)c)?(?:/(?P<memory>\d+\.?\d*|\.\d+)g)?"
    r"(?:/(?P<storage>\d+\.?\d*|\.\d+)s)?(?:/(?P<device_memory>\d+\.?\d*|\.\d+)d)?"
    r"(?:@(?:(?P<per_rack>\d+)/rack|(?P<rack>[\w.\-]+)))?$"
)
MOST_NODES, MOST_GPUS = 100_000, 1_000_000
"""More is a slip of the finger; every node and device has a row in memory."""
_NODE_KEYS = {"name", "count", "type", "gpus", "cpus", "memory", "storage", "device_memory", "rack", "per_rack", "pool", "slices"}
_LINKS = "links:"
_LINK_KEYS = {"a", "b", "bandwidth", "kind"}


def parse_cluster(text: str) -> Cluster:
    """The cluster that a short specification describes."""
    spec = text.strip()
    if not spec:
        raise UsageError("the cluster specification is empty", where="cluster", fix="write for example 32x4 or v100:4x8,k80:8x4")
    nodes: list[Node] = []
    groups, bandwidths = _split(spec)
    tree = groups.pop() if len(groups) > 1 and groups[-1].startswith(TREE) else ""
    for part in groups:
        group = _GROUP.match(part.strip())
        if not group:
            raise UsageError(
                f"'{part.strip()}' is not a group of nodes",
                where=f"cluster '{spec}'",
                fix="write [type:]NODESxGPUS[/SLICES][/CPUSc][/MEMg][/STORAGEs][/DEVICEMEMd][@rack], such as v100:4x8@rack1 or h200:2x8/4",
            )
        count = int(group["nodes"])
        if count < 1:
            raise UsageError(f"'{part.strip()}' has no nodes", where=f"cluster '{spec}'", fix="use at least one node")
        gpus = int(group["gpus"]) if group["gpus"] is not None else 1
        _check_size(len(nodes) + count, sum(node.gpus for node in nodes) + count * gpus, f"cluster '{spec}'")
        type_name = group["type"] or "gpu"
        racks = _racks(nodes, count, group["rack"] or "", int(group["per_rack"]) if group["per_rack"] else None, f"cluster '{spec}'")
        for rack in racks:
            machine = Node(
                name=f"node{len(nodes)}",
                type=type_name,
                gpus=gpus,
                cpus=float(group["cpus"] or 0),
                memory=float(group["memory"] or 0),
                storage=float(group["storage"] or 0),
                device_memory=float(group["device_memory"] or 0),
                rack=rack,
            )
            _add(nodes, machine, group["slices"], f"cluster '{spec}'")
    links: tuple[Link, ...] = ()
    if tree:
        from gantline.core.nodes import tree_links  # few clusters name links

        links = tree_links(nodes, tree, f"cluster '{spec}'")
    return Cluster(tuple(nodes), links, spec=spec, bandwidths=bandwidths)


def _add(nodes: list[Node], machine: Node, slices: str | None, where: str) -> None:
    """Add a machine: one node, or one for each of its GPUs where these are cut in slices."""
    if slices is None:
        nodes.append(machine)
        return
    from gantline.core.slices import cut  # few clusters have any

    nodes += cut(machine, slices, where)
    _check_size(len(nodes), sum(node.gpus for node in nodes), where)


def _split(spec: str) -> tuple[list[str], Bandwidths]:
    """The groups of nodes, and the bandwidths of the levels where the last group says them."""
    groups = [part.strip() for part in spec.split(",")]
    if not groups[-1].startswith(_LINKS):
        return groups, Bandwidths()
    where, numbers = f"cluster '{spec}'", []
    for piece in groups[-1][len(_LINKS) :].split("/"):
        try:
            numbers.append(float(piece))
        except ValueError:
            raise UsageError(f"'{piece}' is no bandwidth", where=where, fix="write for example links:300/25/6, GB/s") from None
    if not groups[:-1]:
        raise UsageError("links without nodes", where=where, fix="write for example 8x4@4/rack,links:300/25/6")
    return groups[:-1], Bandwidths.of(numbers, where)


def _racks(nodes: list[Node], count: int, name: str, per_rack: int | None, where: str) -> list[str]:
    """The rack of each node of a group: the one it names, or new ones of so many nodes, numbered through the cluster."""
    if per_rack is None:
        return [name] * count
    if per_rack < 1:
        raise UsageError("racks of no node", where=where, fix="use at least one node per rack, for example 8x4@4/rack")
    taken = {node.rack for node in nodes}
    fresh = (rack for number in itertools.count() if (rack := f"{name or 'rack'}{number}") not in taken)
    return [rack for rack in itertools.islice(fresh, -(-count // per_rack)) for _ in range(per_rack)][:count]


def grown(text: str, share: float) -> str:
    """The short specification with more nodes of every group: a tenth more of ``4x8,k80:20x4`` is ``5x8,k80:22x4``."""
    parts = []
    for part in text.split(","):
        if part.strip().startswith((_LINKS, TREE)):
            parts.append(part.strip())
            continue
        group = _GROUP.match(part.strip())
        if not group:
            raise UsageError(
                f"'{part.strip()}' cannot be grown", where=f"cluster '{text}'", fix="name the larger cluster yourself: --also FILE"
            )
        start, end = group.span("nodes")
        more = math.ceil(int(group["nodes"]) * (1.0 + share) - 1e-9)
        parts.append(f"{part.strip()[:start]}{more}{part.strip()[end:]}")
    return ",".join(parts)


def parse_cluster_yaml(text: str, where: str = "cluster file") -> Cluster:
    """The cluster that a YAML document describes."""
    import yaml  # a cluster in short form needs none

    from gantline.core.bounded_yaml import composed

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
    for number, entry in enumerate(document["nodes"]):
        place = f"{where}: nodes[{number}]"
        if not isinstance(entry, dict):
            raise UsageError("is not a mapping", where=place, fix="write {count: 4, type: v100, gpus: 8}")
        _only(entry, _NODE_KEYS, place)
        count, gpus = _whole(entry, "count", place, 1), _whole(entry, "gpus", place, 0)
        _check_size(len(nodes) + count, sum(node.gpus for node in nodes) + count * gpus, place)
        per_rack = _whole(entry, "per_rack", place, 0) if "per_rack" in entry else None
        for index, rack in enumerate(_racks(nodes, count, str(entry.get("rack", "")), per_rack, place)):
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
            _add(nodes, machine, None if entry.get("slices") is None else str(entry["slices"]), place)
    links: list[Link] = []
    listed = document.get("links") or []
    if not isinstance(listed, list):
        fix = "write links: [{a: rack:r1, b: rack:r2, bandwidth: 12.5}]"
        raise UsageError(f"'links' is {listed!r:.60}, not a list", where=where, fix=fix)
    for number, entry in enumerate(listed):
        place = f"{where}: links[{number}]"
        if not isinstance(entry, dict) or "a" not in entry or "b" not in entry:
            raise UsageError("needs 'a' and 'b'", where=place, fix="write {a: rack:r1, b: rack:r2, bandwidth: 12.5}")
        _only(entry, _LINK_KEYS, place)
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


def _check_size(nodes: int, gpus: int, place: str) -> None:
    if nodes > MOST_NODES or gpus > MOST_GPUS:
        raise UsageError(
            f"{nodes:,} nodes with {gpus:,} GPUs are too many", where=place, fix=f"at most {MOST_NODES:,} nodes and {MOST_GPUS:,} GPUs"
        )


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
