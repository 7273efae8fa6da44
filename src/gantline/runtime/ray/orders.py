"""What is written into the order of an incarnation on a Ray cluster: as on one machine, and its nodes with what it needs of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gantline.engine.executor import Order
from gantline.runtime.job_environment import seats
from gantline.runtime.local.environment import handed_on
from gantline.runtime.local.incarnation import Incarnation
from gantline.runtime.local.orders import Writer
from gantline.runtime.premises import Task

if TYPE_CHECKING:
    from gantline.runtime.local.files import Values


@dataclass
class RayWriter(Writer):
    """Writes orders for a cluster. What this machine has in its environment is of no use on others: actors add their own."""

    by_node: Callable[[tuple[int, ...]], Mapping[str, list[int]]] = lambda devices: {}
    resource: Callable[[str], str] = lambda node: "CPU"  # what Ray calls the devices of a node

    def order(self, order: Order, task: Task, one: Incarnation) -> Values:
        written, places = super().order(order, task, one), self.by_node(order.devices)
        ranks = seats(task.launch, places, "", 0)  # where they meet is known when they have a node
        env = {name: value for name, value in written["env"].items() if name not in handed_on() or name in task.launch.env}
        return {
            **written, "env": env, "ranks": [seat.env for seat in ranks], "nodes": list(places),
            "parts": [sum(seat.node == name for seat in ranks) for name in places],
            "bundles": [{self.resource(name): len(held)} for name, held in places.items()],
            "device_names": [f"{name}:{place}" for name, held in places.items() for place in held],
        }  # fmt: skip
