"""A cluster and the state of its nodes as plain JSON values and back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from gantline.core.cluster import Cluster, Link, Node
from gantline.core.cluster_spec import parse_cluster
from gantline.core.columns import DOWN, FREE, HOST_RESOURCE_NAMES, HOST_RESOURCES, SHARED, Device, Job, Option
from gantline.core.columns import Node as NodeColumn
from gantline.core.errors import UsageError, near
from gantline.core.host_resources import amounts_beside
from gantline.core.json_reader import Reader, decode_record, encode
from gantline.core.nodes import Bandwidths
from gantline.core.tables import Tables

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
    down = np.flatnonzero(tables.NI[NodeColumn.UP] == 0)
    if len(down):
        found["down"] = [names[node] for node in down]
    cordoned = sorted(tables.cordoned)
    if cordoned:
        found["cordoned"] = cordoned
    shared = np.flatnonzero(tables.D[Device.HOLDER] == SHARED)
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
        tables.D[Device.HOLDER, device] = SHARED
    for name in reader.texts("down"):
        node = _number_of(name, numbers, reader.at("down"))
        tables.NI[NodeColumn.UP, node] = 0
        first = int(tables.NI[NodeColumn.FIRST, node])
        devices = tables.D[Device.HOLDER, first : first + int(tables.NI[NodeColumn.GPUS, node])]
        devices[devices == FREE] = DOWN
    for device in reader.wholes("cordoned"):
        if device >= tables.D.shape[1]:
            raise UsageError(f"names device {device} of {tables.D.shape[1]}", where=reader.at("cordoned"))
        tables.cordon(device)
    idle = tables.D[Device.NODE][tables.D[Device.HOLDER] == FREE]
    tables.NI[NodeColumn.FREE] = np.bincount(idle, minlength=tables.NI.shape[1])
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
    each, I, D = tables.options.F[Option.CPUS : Option.CPUS + HOST_RESOURCES], tables.I, tables.D
    for device, holder in enumerate(D[Device.HOLDER].tolist()):
        if holder >= 0:
            tables.NF[:HOST_RESOURCES, D[Device.NODE, device]] -= each[:, I[Job.OPTION, holder]]
    for row in np.flatnonzero(I[Job.NODE] >= 0):
        tables.NF[:HOST_RESOURCES, I[Job.NODE, row]] -= each[:, I[Job.OPTION, row]]


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
