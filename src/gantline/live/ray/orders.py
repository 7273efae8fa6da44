"""What is written into the order of an incarnation on a Ray cluster: as on one machine, and its nodes with what it needs of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gantline.engine.executor import Order
from gantline.live.job_environment import of_grant, seats
from gantline.live.launch import Launch, slots_only
from gantline.live.local.environment import handed_on
from gantline.live.local.incarnation import Incarnation
from gantline.live.local.orders import Writer
from gantline.live.premises import Task
from gantline.live.ray.incarnation import RayIncarnation

if TYPE_CHECKING:
    from gantline.live.local.files import Values


@dataclass
class RayWriter(Writer):
    """Writes orders for a cluster. What this machine has in its environment is of no use on others: actors add their own."""

    by_node: Callable[[tuple[int, ...]], Mapping[str, list[int]]] = lambda devices: {}
    resource: Callable[[str], str] = lambda node: "CPU"  # what Ray calls the devices of a node

    def order(self, order: Order, task: Task, one: Incarnation) -> Values:
        assert isinstance(one, RayIncarnation)
        written, places = super().order(order, task, one), self.by_node(order.devices)
        ranks = seats(task.launch, places, "", 0)  # where they meet is known when they have a node
        env = {name: value for name, value in written["env"].items() if name not in handed_on() or name in task.launch.env}
        changes = "devices" in task.launch.changes and len(places) == 1
        return {
            **written, "env": env, "ranks": [seat.env for seat in ranks], "nodes": list(places),
            "parts": [sum(seat.node == name for seat in ranks) for name in places],
            "bundles": [{self.resource(name): len(held)} for name, held in places.items()],
            "device_names": [f"{name}:{place}" for name, held in places.items() for place in held],
            "one_by_one": one.name if changes else "", "runtime_env": dict(task.launch.runtime_env),
        }  # fmt: skip

    @property
    def alike(self) -> bool:
        return slots_only(self.cluster())

    def stays(self, one: Incarnation, devices: Sequence[int]) -> bool:
        """On its node: ranks agree on a change by files that all of them see."""
        return bool(one.order.get("one_by_one")) and list(self.by_node(tuple(devices))) == one.order["nodes"]

    def change(self, order: Order, launch: Launch, members: Sequence[int], devices: Sequence[int]) -> Values:
        env = {**of_grant(order, list(map(self.name, devices))), "GANTLINE_JOINING": "1"}
        ranks = [seat.env for seat in seats(launch, self.by_node(tuple(devices)), "", 0)][len(members) :]
        return {"epoch": order.epoch, "members": list(members), "env": env, "ranks": ranks}
