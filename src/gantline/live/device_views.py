"""Views of devices and nodes: an unchanged device keeps the same object, so that a reader finds quickly what has changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.columns import Device, Node
from gantline.core.tables import Tables
from gantline.engine.window_choice import devices_of
from gantline.live.view import DeviceView, NodeView

Facts: TypeAlias = tuple[bool, frozenset[int], tuple[str, ...]]  # whether it is up, rows on it, windows that it is kept for
_IDLE: frozenset[int] = frozenset()


class DeviceViews:
    """The devices as they were seen last."""

    def __init__(self) -> None:
        self._views: tuple[DeviceView, ...] = ()
        self._seen: list[Facts] = []
        self._cluster: object = None

    def look(self, t: Tables, occupants: Mapping[int, Collection[int]]) -> tuple[DeviceView, ...]:
        """As they are now; `occupants` are rows by device."""
        before, self._seen = self._seen, _facts(t, occupants)
        if t.cluster is not self._cluster or len(before) != len(self._seen):
            self._cluster = t.cluster
            self._views = tuple(_view(t, device, facts) for device, facts in enumerate(self._seen))
        elif before != self._seen:
            pairs = enumerate(zip(self._views, before, self._seen))
            self._views = tuple(old if was == now else _view(t, device, now) for device, (old, was, now) in pairs)
        return self._views


class NodeViews:
    """The nodes as they were seen last."""

    def __init__(self) -> None:
        self._views: dict[str, NodeView] = {}
        self._free: Floats = np.zeros((0, 0))
        self._cluster: object = None

    def look(self, t: Tables) -> Mapping[str, NodeView]:
        """As they are now, by name."""
        free = t.NF[[Node.CPUS, Node.MEMORY]]
        if t.cluster is not self._cluster or not np.array_equal(free, self._free):
            self._cluster, self._free = t.cluster, free
            self._views = {
                node.name: NodeView(node.cpus, max(node.cpus - cpus, 0.0), node.memory, max(node.memory - memory, 0.0))
                for node, cpus, memory in zip(t.cluster.nodes, *free.tolist())
            }
        return self._views


def _facts(t: Tables, occupants: Mapping[int, Collection[int]]) -> list[Facts]:
    count = t.D.shape[1]
    up = (t.NI[Node.UP, t.D[Device.NODE]] == 1) & ((t.D[Device.CLOSED] == 0) | np.isin(np.arange(count), list(t.kept_free)))
    found: list[Facts] = [(is_up, _IDLE, ()) for is_up in up.tolist()]
    for device, rows in occupants.items():
        found[device] = (found[device][0], frozenset(rows), ())
    for window in t.windows.values():
        for device in devices_of(t.cluster, window.places):
            is_up, on_it, windows = found[device]
            found[device] = (is_up, on_it, (*windows, window.name))
    return found


def _view(t: Tables, device: int, facts: Facts) -> DeviceView:
    number = int(t.D[Device.NODE, device])
    node, (is_up, rows, windows) = t.cluster.nodes[number], facts
    name = f"{node.name}:{device - int(t.cluster.first_device[number])}"
    return DeviceView(name, node.type, node.name, is_up, tuple(sorted(t.ids[row] for row in rows)), windows)
