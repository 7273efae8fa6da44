"""Keepers as Ray's actors: where they run, what they are called, and the placement group that holds the devices of a gang."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import ray
from ray.exceptions import ActorUnavailableError, RayError, RuntimeEnvSetupError
from ray.util.placement_group import PlacementGroup, get_current_placement_group, placement_group, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

from gantline.live.runners.ray.connection import NAMESPACE, Handle
from gantline.live.runners.ray.node_agent import KeeperNews, NodeAgent, SpreadGang
from gantline.live.runners.ray.packages import broken

if TYPE_CHECKING:
    from gantline.live.runners.local.files import Values

_PATIENCE = 60  # seconds that Ray is waited for at once
_LOOK = 0.2  # seconds between looks for something that is about to be made
_CALLS = 8  # that a keeper answers at once: one waits for news while an order comes


class NodeAgentActor(NodeAgent):
    """A gang on one node, or a node's part of one."""

    def __init__(self, name: str, order: Values) -> None:
        self._visible: dict[str, str] = {}  # what CUDA calls the devices that Ray holds one by one
        super().__init__(name, order, ray.util.get_node_ip_address())

    def obtain(self, name: str, devices: Sequence[str], amounts: Mapping[str, float]) -> list[str]:
        for device in devices:
            if device not in self._visible:
                group = _when_ready(f"{name}/{device}")
                self._visible[device] = ray.get(_in_bundle(_visible, group, 0, amounts, {}).remote()) if "GPU" in amounts else ""
        return [seen for device in devices if (seen := self._visible[device])]


def _visible() -> str:
    """What CUDA calls the devices of the bundle in which this runs."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "")


def _when_ready(name: str) -> PlacementGroup:
    """The placement group of that name, when Ray has made it."""
    while True:
        try:
            group = ray.util.get_placement_group(name)
            if group.wait(_PATIENCE):
                return group
        except (ValueError, RayError):  # it is not there yet, or the control store is away
            time.sleep(_LOOK)


class FarPart:
    """A part on another node."""

    def __init__(self, actor: Handle) -> None:
        self.actor = actor

    def order(self, order: Values) -> None:
        self.actor.order.remote(order)

    def news(self, seen: int, offset: int, wait: float) -> KeeperNews:
        while True:
            try:
                return KeeperNews(*ray.get(self.actor.news.remote(seen, offset, wait)))
            except RuntimeEnvSetupError as error:
                return KeeperNews(seen + 1, broken(error), offset, b"")
            except ActorUnavailableError:  # for a while
                time.sleep(1.0)

    def dismiss(self) -> None:
        self.actor.dismiss.remote()


class SpreadGangActor(SpreadGang):
    """A gang on several nodes."""

    def __init__(self, name: str, order: Values) -> None:
        super().__init__(name, order, ray.util.get_node_ip_address())

    def far(self, name: str, order: Values, bundle: int) -> FarPart:
        """An actor in another bundle of the placement group in which this actor runs; Ray ends it with this one."""
        group = get_current_placement_group()
        options = {"max_concurrency": _CALLS, **_environment(order)}
        return FarPart(_in_bundle(NodeAgentActor, group, bundle, order["bundles"][bundle], options).remote(name, order))


def begin(name: str, order: Values, nodes: Sequence[str], bundles: Sequence[Mapping[str, float]]) -> Handle:
    """Ask Ray for the devices on these nodes and for a keeper there, both of which outlive this process; nothing waits for them."""
    options = {"name": name, "namespace": NAMESPACE, "lifetime": "detached", "max_concurrency": _CALLS, **_environment(order)}
    if order.get("one_by_one"):  # an actor that lives in a bundle would end with it
        there = NodeAffinitySchedulingStrategy(nodes[0], soft=False)
        return ray.remote(NodeAgentActor).options(num_cpus=0, scheduling_strategy=there, **options).remote(_folder(name), order)
    kind = NodeAgentActor if len(nodes) == 1 else SpreadGangActor
    return _in_bundle(kind, _reserve(name, nodes, bundles), 0, bundles[0], options).remote(_folder(name), order)


def _environment(order: Values) -> Values:
    return {"runtime_env": order["runtime_env"]} if order.get("runtime_env") else {}


def hold(name: str, node: str, amounts: Mapping[str, float]) -> None:
    """Ask Ray for one device, unless that was done already; nothing waits for it."""
    try:
        ray.util.get_placement_group(name)
    except ValueError:
        _reserve(name, [node], [amounts])


def _reserve(name: str, nodes: Sequence[str], bundles: Sequence[Mapping[str, float]]) -> PlacementGroup:
    pinned = [{"ray.io/node-id": node} for node in nodes]
    return placement_group([dict(one) for one in bundles], strategy="PACK", name=name, lifetime="detached", bundle_label_selector=pinned)


def _in_bundle(kind: Callable[..., object], group: PlacementGroup, bundle: int, amounts: Mapping[str, float], options: Values) -> Handle:
    strategy = PlacementGroupSchedulingStrategy(placement_group=group, placement_group_bundle_index=bundle)
    devices = {"num_cpus": amounts.get("CPU", 0), "num_gpus": amounts.get("GPU", 0)}
    return ray.remote(kind).options(scheduling_strategy=strategy, **devices, **options)


def _folder(name: str) -> str:
    return name.replace("/", ".")


def find(name: str) -> Handle | None:
    """The keeper of that name; None: there is none."""
    try:
        return ray.get_actor(name, namespace=NAMESPACE)
    except ValueError:
        return None


def names(prefix: str) -> set[str]:
    """Keepers whose names begin so, also those that wait for their devices."""
    return {
        one["name"]
        for one in ray.util.list_named_actors(all_namespaces=True)
        if one["namespace"] == NAMESPACE and one["name"].startswith(prefix)
    }


def groups(prefix: str) -> set[str]:
    """Placement groups whose names begin so."""
    table = ray.util.placement_group_table()
    return {one["name"] for one in table.values() if one["name"].startswith(prefix) and one["state"] != "REMOVED"}


def release(name: str) -> None:
    """End the keeper, if it is there, and give the devices back."""
    actor = find(name)
    if actor is not None:
        ray.kill(actor)
    try:
        group = ray.util.get_placement_group(name)
    except ValueError:
        return
    remove_placement_group(group)
