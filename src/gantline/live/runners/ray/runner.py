"""A Ray cluster as a runner: one thread carries out orders, one watches nodes, and a sync goes between keepers and the home."""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError
from gantline.engine.executor import Can, Order
from gantline.live.jobs.launch import RuntimeEnv
from gantline.live.runners.local.devices import Machine
from gantline.live.runners.local.files import read_json, write_json
from gantline.live.runners.local.home_runner import HomeRunner
from gantline.live.runners.local.incarnation import Incarnations
from gantline.live.runners.local.isolation import Groups
from gantline.live.runners.local.output import KeptJobs
from gantline.live.runners.local.slices import Mps
from gantline.live.runners.ray.actor_sync import ActorSync
from gantline.live.runners.ray.connection import OneService, OwnCluster, RayNodes, check_devices, connect, load
from gantline.live.runners.ray.incarnation import RayExecution, RayIncarnation, RayKeepers, RayWriter
from gantline.live.runners.ray.packages import Packages
from gantline.live.runners.registry import OPTIONS
from gantline.live.runners.runner_context import Contact, RunnerContext, RunnerOption
from gantline.live.runners.runner_events import NodeNews, NodeState, Present

if TYPE_CHECKING:
    from gantline.live.runners.local.files import Values

_LOG = logging.getLogger("gantline.live")
_LOOK = 1.0  # seconds between looks at Ray's list of nodes
_LEAVE = 5.0  # seconds that calls of Ray have to return when the service ends: its control store may be away
_BUSY, _CALM = 0.1, 1.0  # seconds between checks of what is late, while an incarnation starts or stops, and otherwise


@dataclass
class RayRunner(HomeRunner):
    """A runner for the nodes of one Ray cluster. `attach` before the first order."""

    options: ClassVar[Sequence[RunnerOption]] = OPTIONS["ray"]
    able: ClassVar[frozenset[Can]] = frozenset({Can.DEVICES, Can.TERMS, Can.SUSPEND, Can.SAVE, Can.BATCH})
    machines: ClassVar[str] = "Ray's nodes"
    makes_environments: ClassVar[bool] = True

    home: Path
    devices: str | None = None
    url: str = ""
    address: str = ""  # empty: a cluster of its own
    checkpoints: Path | None = None

    def __post_init__(self) -> None:
        self.home, self._ray = Path(self.home).absolute(), load()
        own = OwnCluster(self.home)
        self._own = None if self.address else own
        self.checkpoints = self.checkpoints or self.home / "jobs"
        connect(self.address or own.address())
        folder = self.home / "ray"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.nodes = RayNodes(folder / "nodes.json", check_devices(self.devices))
        self.nodes.see(self._ray.nodes())
        if not self.nodes.present:
            fix = "write --devices cpu: every CPU of a node without GPUs is a slot" if not self.nodes.slots else "add nodes to it"
            raise RefusedError("no node of this Ray cluster has devices for jobs", where="--executor ray", fix=fix)
        self._lease = OneService(_identity(folder), str(self.home))
        self._lease.take()
        self._bell = threading.Event()
        self.packages = Packages(folder / "packages")
        self.sync = ActorSync(f"{_identity(folder)}/", self._bell.set, self.packages)
        self.sync.node_of = self.nodes.present.get
        self.known = Incarnations(partial(RayIncarnation, sync=self.sync, checkpoints=self.checkpoints))
        self.kept = KeptJobs(self.home)
        self._orders = deque()
        self._node_news: deque[tuple[list[NodeNews], list[tuple[RayIncarnation, Values]]]] = deque()
        self._worker, self._watcher = self._threads = [
            threading.Thread(target=work, name=name, daemon=True)
            for work, name in ((self._work_watched, "gantline-runner"), (self._watch, "gantline-ray-nodes"))
        ]
        self._closed = threading.Event()

    @classmethod
    def check(cls, devices: str | None, options: Mapping[str, str]) -> Sequence[str]:
        check_devices(devices)
        load()
        return ()

    @classmethod
    def open(cls, context: RunnerContext) -> Self:
        given = context.options
        folder = given.get("ray-checkpoints")
        address = given.get("ray-address") or os.environ.get("RAY_ADDRESS", "")
        runner = cls(context.home, context.devices, context.url, address, Path(folder) if folder else None)
        runner.known.generation = context.generation
        return runner

    def notes(self) -> Sequence[str]:
        where = "a Ray cluster of its own on this machine" if self._own else f"the Ray cluster at {self.address}"
        return [f"note: jobs run on {where}: {len(self.nodes.present)} nodes, {self.cluster.gpus} devices"]

    # --- beginning ------------------------------------------------------------------------------------------------------
    @property
    def cluster(self) -> Cluster:
        return self.nodes.cluster

    def adopt(self, is_over: Callable[[str], bool] = lambda job: False) -> Sequence[Present]:
        self.sync.find_keepers()
        present = super().adopt(is_over)
        self.sync.tidy_up()
        return present

    def attach(self, contact: Contact) -> None:
        self._contact = contact
        machine = Machine(self.cluster, {})
        writer = RayWriter(
            self.home, self.url, machine, Groups(), Mps(self.home), contact.cluster,
            by_node=contact.by_node, resource=lambda name: self.nodes.resource(name),
        )  # fmt: skip
        self._execution = RayExecution(self.home, contact, self.known, writer, RayKeepers(), self._orders)
        self.sync.start()
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        return all(thread.is_alive() for thread in self._threads)

    # --- orders ---------------------------------------------------------------------------------------------------------
    def pack(self, environment: RuntimeEnv) -> RuntimeEnv:
        return self.packages.pack(environment) if environment else environment

    def send(self, order: Order, now: float) -> None:
        self._orders.append(order)
        self._bell.set()

    # --- the end --------------------------------------------------------------------------------------------------------
    def leave(self, drained: bool) -> None:
        self._lease.leave()
        self._stops_cluster = drained

    def close(self) -> None:
        self._closed.set()
        self._bell.set()
        if self._worker.is_alive():
            self._worker.join()
        if self._watcher.is_alive():
            self._watcher.join(_LEAVE)
        self.sync.close(_LEAVE)
        self._ray.shutdown()
        if self._own is not None and getattr(self, "_stops_cluster", False):
            self._own.stop()

    # --- inside ---------------------------------------------------------------------------------------------------------
    def _ring(self) -> None:
        self._bell.set()

    def _work(self) -> None:
        work = self._execution
        work.begin()
        while not self._closed.is_set():
            alive = self.known.alive()
            busy = work.waiting or any(one.state.get("phase") != "running" or one.switching or one.saving is not None for one in alive)
            self._bell.wait(_BUSY if busy else _CALM)
            self._bell.clear()
            for _ in range(len(self._orders)):
                self._try(work.carry_out, self._orders.popleft())
            for _ in range(len(self._node_news)):
                self._tell_nodes(*self._node_news.popleft())
            for one in self.known.alive():
                self._try(work.look, one)
            for order in list(work.waiting.values()):
                self._try(work.start, order)

    def _tell_nodes(self, news: Sequence[NodeNews], over: Sequence[tuple[RayIncarnation, Values]]) -> None:
        """Nodes have come or gone: told together with the ends of the gangs on those that are lost."""
        with self._execution.together(news):
            for one, state in over:
                one.arrived = state
                self._try(self._execution.look, one)

    def _watch(self) -> None:
        """Look at Ray's list of nodes, and find out why keepers are gone; Ray's control store may be away for a while."""
        while not self._closed.is_set():
            try:
                listed = self._ray.nodes()
                if self._closed.is_set():
                    return
                if news := self.nodes.see(listed):
                    over = self.sync.lose({one.name for one in news if one.state is NodeState.LOST})
                    self._node_news.append((news, over))
                    self._bell.set()
                self.sync.settle(self.nodes.verdict)
                self._lease.prolong()
                self.packages.tidy_up(self._contact.to_run)
            except Exception:
                _LOG.exception("Ray does not answer; it is asked again")
            self._closed.wait(_LOOK)


def _identity(folder: Path) -> str:
    """By which keepers of this home are known, whichever machine serves it."""
    found = read_json(str(folder / "id.json"))
    if not isinstance(found, str):
        found = secrets.token_hex(4)
        write_json(str(folder / "id.json"), found)
    return found
