"""Clusters as people write them: ``32x4``, ``v100:36,p100:36``, ``v100:4x8@rack1``, ``cpu:10x0/20c/64g`` and as JSON.

The short form is a comma-separated list of groups ``[type:]nodes x gpus[/slices][/CPUs c][/memory g][/storage s][/device memory
d][@rack]``, with memory in GB and storage bandwidth in MB/s; ``v100:4x8/32d`` are devices of 32 GB; ``h200:4x8/8`` has every GPU cut in
eight slices (`core.slices`), where a GPU takes the place of a node and its machine that of a rack; ``type:N`` without ``x`` is N nodes with
one device each, which is how Gavel counts servers; ``64x8@16/rack`` are racks of sixteen nodes. ``links:300/25/6`` as one more group are
GB/s in a node, in a rack and across racks. ``24x1@6/rack,tree:6.25/18.75`` has links from nodes to their racks and from racks to a switch,
GB/s of each. Snapshots and stores have the same as JSON: the short form where it says everything, else every node and link.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from gantline.core.cluster import TREE, Bandwidths, Cluster, Link, Node, tree_links
from gantline.core.columns import DOWN, FREE, HOST_RESOURCE_NAMES, HOST_RESOURCES, SHARED, Option
from gantline.core.errors import UsageError, near
from gantline.core.host_resources import amounts_beside
from gantline.core.json_reader import Reader, decode_record, encode
from gantline.core.slices import cut
from gantline.core.tables import Tables

_GROUP = re.compile(
    r"^(?:(?P<type>[A-Za-z][\w.\-]*):)?(?P<nodes>\d+)(?:x(?P<gpus>\d+))?(?:/(?P<slices>\d+(?:%[\dx%+]*)?))?(?:/(?P<cpus>\d+\.?\d*|\.\d+)c)?(?:/(?P<memory>\d+\.?\d*|\.\d+)g)?"
    r"(?:/(?P<storage>\d+\.?\d*|\.\d+)s)?(?:/(?P<device_memory>\d+\.?\d*|\.\d+)d)?"
    r"(?:@(?:(?P<per_rack>\d+)/rack|(?P<rack>[\w.\-]+)))?$"
)
MOST_NODES, MOST_GPUS = 100_000, 1_000_000
"""More is a slip of the finger; every node and device has a row in memory."""
_LINKS = "links:"


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
        check_size(len(nodes) + count, sum(node.gpus for node in nodes) + count * gpus, f"cluster '{spec}'")
        type_name = group["type"] or "gpu"
        racks = racks_of(nodes, count, group["rack"] or "", int(group["per_rack"]) if group["per_rack"] else None, f"cluster '{spec}'")
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
            add_machine(nodes, machine, group["slices"], f"cluster '{spec}'")
    links: tuple[Link, ...] = ()
    if tree:
        links = tree_links(nodes, tree, f"cluster '{spec}'")
    return Cluster(tuple(nodes), links, spec=spec, bandwidths=bandwidths)


def add_machine(nodes: list[Node], machine: Node, slices: str | None, where: str) -> None:
    """Add a machine: one node, or one for each of its GPUs where these are cut in slices."""
    if slices is None:
        nodes.append(machine)
        return
    nodes += cut(machine, slices, where)
    check_size(len(nodes), sum(node.gpus for node in nodes), where)


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


def racks_of(nodes: list[Node], count: int, name: str, per_rack: int | None, where: str) -> list[str]:
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


def check_size(nodes: int, gpus: int, place: str) -> None:
    if nodes > MOST_NODES or gpus > MOST_GPUS:
        raise UsageError(
            f"{nodes:,} nodes with {gpus:,} GPUs are too many", where=place, fix=f"at most {MOST_NODES:,} nodes and {MOST_GPUS:,} GPUs"
        )


_NOTHING = (0.0,) * HOST_RESOURCES


def encode_cluster(cluster: Cluster) -> str | dict[str, Any]:
    """The short form where it says everything, else every node and link."""
    short = _short_form(cluster.spec)
    if short is not None and short == cluster:
        return cluster.spec
    found: dict[str, Any] = {"spec": cluster.spec, "nodes": encode(cluster.nodes)}
    if cluster.links:
        found["links"] = encode(cluster.links, full=True)
    if cluster.bandwidths.known:
        found["bandwidths"] = encode(cluster.bandwidths._asdict())
    return found


def decode_cluster(reader: Reader) -> Cluster:
    """The cluster under the key ``cluster``."""
    value = reader.raw("cluster")
    if value is None:
        raise UsageError("'cluster' is missing", where=reader.path, fix='add "cluster": "2x4"')
    if isinstance(value, str):
        return parse_cluster(value)
    inner = Reader(value, reader.at("cluster"))
    inner.only(("spec", "nodes", "links", "bandwidths"))
    if "nodes" not in inner and "spec" in inner:  # written by hand: the short form says which nodes there are
        short = parse_cluster(inner.text("spec"))
        return Cluster(short.nodes, tuple(_links(inner)), short.spec, _bandwidths(inner) if "bandwidths" in inner else short.bandwidths)
    nodes = tuple(decode_node(Reader(item, path), number) for number, (item, path) in enumerate(inner.items("nodes")))
    return Cluster(nodes, tuple(_links(inner)), inner.text("spec", ""), _bandwidths(inner))


def _bandwidths(reader: Reader) -> Bandwidths:
    if "bandwidths" not in reader:
        return Bandwidths()
    one = Reader(reader.raw("bandwidths"), reader.at("bandwidths"))
    one.only(Bandwidths._fields)
    return Bandwidths.of([one.number(name, 0.0) for name in Bandwidths._fields], one.path)


def _links(reader: Reader) -> Iterator[Link]:
    for item, path in reader.items("links"):
        one = Reader(item, path)
        yield decode_record(Link, one, bandwidth=one.number("bandwidth", 0.0))


def encode_nodes(tables: Tables) -> dict[str, Any]:
    """What differs from a cluster at rest: nodes that are down, devices that are shared, CPUs, memory and storage that are taken."""
    names = [node.name for node in tables.cluster.nodes]
    found: dict[str, Any] = {}
    down = np.flatnonzero(tables.nodes.up == 0)
    if len(down):
        found["down"] = [names[node] for node in down]
    cordoned = sorted(tables.cordoned)
    if cordoned:
        found["cordoned"] = cordoned
    shared = np.flatnonzero(tables.devices.holder == SHARED)
    if len(shared):
        found["shared"] = shared.tolist()
    if any(amounts_beside(node) != _NOTHING for node in tables.cluster.nodes):
        taken = {}
        for number, node in enumerate(tables.cluster.nodes):
            free = tuple(tables.NF[:HOST_RESOURCES, number].tolist())
            if free != amounts_beside(node):
                amounts = zip(HOST_RESOURCE_NAMES, free, amounts_beside(node))
                taken[node.name] = encode({name: left for name, left, whole in amounts if left != whole})
        found["free"] = taken
    return found


def decode_nodes(reader: Reader, tables: Tables) -> None:
    """Mark nodes that are down and devices that are shared; the gangs that hold devices are in the tables already."""
    numbers = {node.name: number for number, node in enumerate(tables.cluster.nodes)}
    for device in reader.wholes("shared"):
        if device >= tables.D.shape[1]:
            raise UsageError(f"names device {device} of {tables.D.shape[1]}", where=reader.at("shared"))
        tables.devices.holder[device] = SHARED
    for name in reader.texts("down"):
        node = _number_of(name, numbers, reader.at("down"))
        tables.nodes.up[node] = 0
        first = int(tables.nodes.first[node])
        devices = tables.devices.holder[first : first + int(tables.nodes.gpus[node])]
        devices[devices == FREE] = DOWN
    for device in reader.wholes("cordoned"):
        if device >= tables.D.shape[1]:
            raise UsageError(f"names device {device} of {tables.D.shape[1]}", where=reader.at("cordoned"))
        tables.cordon(device)
    idle = tables.devices.node[tables.devices.holder == FREE]
    tables.nodes.free[:] = np.bincount(idle, minlength=tables.NI.shape[1])
    if "free" in reader:
        inner = Reader(reader.raw("free"), reader.at("free"))
        for name in reader.raw("free"):
            node = _number_of(name, numbers, reader.at("free"))
            one = Reader(inner.raw(name), inner.at(name))
            one.only(HOST_RESOURCE_NAMES)
            whole = amounts_beside(tables.cluster.nodes[node])
            tables.NF[:HOST_RESOURCES, node] = [one.number(name, usual) for name, usual in zip(HOST_RESOURCE_NAMES, whole)]
    else:
        _take_side_demands(tables)


def _take_side_demands(tables: Tables) -> None:
    """What the options in use take of their nodes beside devices, for files that do not say."""
    each = tables.options.F[Option.CPUS : Option.CPUS + HOST_RESOURCES]
    for device, holder in enumerate(tables.devices.holder.tolist()):
        if holder >= 0:
            tables.NF[:HOST_RESOURCES, tables.devices.node[device]] -= each[:, tables.jobs.option[holder]]
    for row in np.flatnonzero(tables.jobs.node >= 0):
        tables.NF[:HOST_RESOURCES, tables.jobs.node[row]] -= each[:, tables.jobs.option[row]]


def decode_node(reader: Reader, number: int) -> Node:
    """A node that a document describes; one without a name is called by its number."""
    return decode_record(Node, reader, name=reader.text("name", f"node{number}"))


def _number_of(name: str, numbers: dict[str, int], path: str) -> int:
    if name not in numbers:
        raise UsageError(f"no node '{name}'", where=path, fix=near(name, numbers))
    return numbers[name]


@lru_cache(maxsize=32)
def _short_form(spec: str) -> Cluster | None:
    try:
        return parse_cluster(spec)
    except UsageError:
        return None
