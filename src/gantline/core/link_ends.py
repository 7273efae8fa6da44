"""The ends of links, in one spelling: ``node0:3`` (a device), ``node0``, ``rack:r1``, ``switch:s1``, ``storage``."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gantline.core.errors import UsageError, near
from gantline.core.nodes import Link, Node

STORAGE = "storage"
RACK, SWITCH = "rack:", "switch:"
TREE = "tree:"  # begins a group of a cluster that stands for links of nodes to racks and of racks to a switch


def check_links(nodes: Sequence[Node], links: Sequence[Link], where: str = "cluster") -> None:
    """Refuse links with an end that is not there, with no bandwidth, from a place to itself, or beside another one."""
    if not links:
        return
    gpus, racks = {node.name: node.gpus for node in nodes}, {node.rack for node in nodes if node.rack}
    between: dict[frozenset[str], int] = {}
    for number, link in enumerate(links):
        place = f"{where}: links[{number}]"
        for end in (link.a, link.b):
            _check_end(end, gpus, racks, place)
        if link.a == link.b:
            raise UsageError(f"leads from '{link.a}' to itself", where=place, fix="name two places")
        if not 0.0 < link.bandwidth < math.inf:
            raise UsageError(f"has a bandwidth of {link.bandwidth:g}", where=place, fix="give GB/s above zero, such as bandwidth: 12.5")
        first = between.setdefault(frozenset((link.a, link.b)), number)
        if first < number:
            what = f"connects '{link.a}' and '{link.b}', as links[{first}] does"
            raise UsageError(what, where=place, fix="list one link, with the bandwidth of both")


def _check_end(end: str, gpus: dict[str, int], racks: set[str], place: str) -> None:
    if end == STORAGE or end in gpus or (end.startswith(SWITCH) and len(end) > len(SWITCH)):
        return
    if end.startswith(RACK):
        if end[len(RACK) :] not in racks:
            raise UsageError(f"no rack '{end[len(RACK) :]}'", where=place, fix=near(end, [RACK + rack for rack in racks]))
        return
    node, _, device = end.rpartition(":")
    if node in gpus:
        if not device.isdigit() or int(device) >= gpus[node]:
            has = f"{node} has devices 0 to {gpus[node] - 1}" if gpus[node] else f"{node} has no devices"
            raise UsageError(f"names '{end}', which is no device", where=place, fix=has)
        return
    if end in racks:
        raise UsageError(f"no node '{end}'", where=place, fix=f"a rack is written {RACK}{end}")
    raise UsageError(f"no end '{end}'", where=place, fix=near(end, [*gpus, *(RACK + rack for rack in racks), STORAGE]))
