"""Which devices a window gets: those that it names, or those that are most likely to be free when it begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gantline.core.cluster import Cluster
from gantline.core.columns import SHARED, Device, Node
from gantline.core.errors import NotFoundError, RefusedError, near
from gantline.core.node_events import NodeEvent
from gantline.core.windows import AdvanceWindow
from gantline.engine.state import State


def devices_of(cluster: Cluster, places: Iterable[str]) -> set[int]:
    """Numbers of the devices at these places: nodes, or single devices such as node0:3."""
    names, found = {node.name: number for number, node in enumerate(cluster.nodes)}, set[int]()
    for place in places:
        device = NodeEvent(0.0, place, "drain").device(cluster)
        if device is not None:
            found.add(device)
        elif place in names:
            first = int(cluster.first_device[names[place]])
            found.update(range(first, first + cluster.nodes[names[place]].gpus))
        else:
            raise NotFoundError(f"no node '{place}'", where="reserve", fix=near(place, names))
    return found


def resolved(state: State, window: AdvanceWindow, now: float, over_at: Callable[[int], float]) -> AdvanceWindow:
    """The window with a name and with the places that it gets if it is reserved now; refused where there are none."""
    t, known = state.tables, state.tables.windows
    name = window.name or next(name for name in (f"window-{number}" for number in range(1, len(known) + 2)) if name not in known)
    if name in known:
        raise RefusedError(f"there is a window '{name}' already", where="reserve", fix="cancel it first, or use another name")
    if window.end <= now:
        raise RefusedError(f"window '{name}' would be over already", where="reserve", fix="let it begin later, or last longer")
    window = replace(window, name=name, start=max(window.start, now))
    taken = {device: one.name for one in known.values() if one.overlaps(window) for device in devices_of(t.cluster, one.places)}
    if window.places:
        twice = next((taken[device] for device in sorted(devices_of(t.cluster, window.places)) if device in taken), None)
        if twice is not None:
            raise RefusedError(f"window '{twice}' has some of these devices then", where="reserve", fix="choose others, or another time")
        return window
    units = _nodes(t.cluster) if window.nodes else _single_devices(t.cluster)
    free = {place: devices for place, devices in units.items() if taken.keys().isdisjoint(devices) and _open(state, devices)}
    wanted, what = (window.nodes, "nodes") if window.nodes else (window.gpus, "devices")
    if wanted > len(free):
        raise RefusedError(
            f"{wanted} {what} are asked for, and {len(free)} are up and not reserved then", where="reserve", fix="ask for less"
        )
    places = list(free)
    in_the_way = {place: _in_the_way(state, free[place], window.start, over_at) for place in places}
    best = sorted(places, key=lambda place: (*in_the_way[place], -places.index(place)))[:wanted]
    return replace(window, nodes=0, gpus=0, places=tuple(sorted(best, key=places.index)))


def _nodes(cluster: Cluster) -> dict[str, set[int]]:
    return {node.name: devices_of(cluster, [node.name]) for node in cluster.nodes if node.gpus}


def _single_devices(cluster: Cluster) -> dict[str, set[int]]:
    return {
        f"{node.name}:{place}": {int(first) + place}
        for node, first in zip(cluster.nodes, cluster.first_device)
        for place in range(node.gpus)
    }


def _open(state: State, devices: set[int]) -> bool:
    """Whether any row may have all of them, but for windows at other times."""
    t = state.tables
    return all(
        t.NI[Node.UP, t.D[Device.NODE, device]] == 1 and (t.D[Device.CLOSED, device] == 0 or device in t.kept_free) for device in devices
    )


def _in_the_way(state: State, devices: set[int], start: float, over_at: Callable[[int], float]) -> tuple[int, int]:
    """Devices that gangs will not have given up by then, and devices that are held now."""
    holders = [int(state.tables.D[Device.HOLDER, device]) for device in devices]
    held = [row for row in holders if row >= 0 or row == SHARED]
    return sum(row == SHARED or over_at(row) > start for row in held), len(held)
