"""Nodes whose gangs are real processes of this machine: a file lists the nodes, and what runs on one is really killed with it.

A rack outlives services, as machines do. Each service has a runner of its own for it: that of this machine, with more nodes and a watch.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.live.node_stories import Sent
from tests.live.specs import until

from gantline.core.cluster import Cluster, Node
from gantline.engine.executor import Order, Verb
from gantline.live.jobs.launch import Launch
from gantline.live.runners.local.devices import Machine
from gantline.live.runners.local.execution import Execution, LocalKeepers
from gantline.live.runners.local.files import read_json
from gantline.live.runners.local.incarnation import Incarnation, Incarnations
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.runners.runner_context import Contact
from gantline.live.runners.runner_events import NodeNews, NodeState

_LOOK = 0.02  # seconds between two looks at the rack

#: A rank holds a lock on its device for as long as it lives: the kernel gives it back, however the rank ends.
RANK = """
mine=$(echo $GANTLINE_DEVICES | cut -d, -f$((RANK + 1)))
exec 9> "$BOARD/device.$mine"
flock -n 9 || echo "$GANTLINE_JOB_ID.$GANTLINE_EPOCH finds another job on $mine" >> "$BOARD/breaches"
sleep 1000 9>&- & wait
"""


class RackNode(NamedTuple):
    """What is known of a node that is there; one that was away has another boot."""

    gpus: int
    boot: int
    is_drained: bool = False


class Rack:
    """Nodes, and the home of the services."""

    def __init__(self, folder: Path) -> None:
        self.home, self.board, self._file = folder / "home", folder / "board", folder / "nodes.json"
        self.board.mkdir(parents=True)
        self._write({})
        self._boots = 0
        self.sent: list[Sent] = []
        self.known_lost: set[str] = set()  # by the service that runs
        self._breaches: list[str] = []

    @property
    def nodes(self) -> dict[str, RackNode]:
        return {name: RackNode(*value) for name, value in json.loads(self._file.read_text()).items()}

    @property
    def breaches(self) -> list[str]:
        path = self.board / "breaches"
        return self._breaches + (path.read_text().splitlines() if path.exists() else [])

    def _write(self, nodes: Mapping[str, RackNode]) -> None:
        draft = self._file.with_suffix(".draft")
        draft.write_text(json.dumps(nodes))
        draft.rename(self._file)

    def boot(self, name: str, gpus: int) -> None:
        self._boots += 1
        self._write({**self.nodes, name: RackNode(gpus, self._boots)})

    def drain(self, name: str, is_drained: bool = True) -> None:
        self._write({**self.nodes, name: self.nodes[name]._replace(is_drained=is_drained)})

    def kill(self, name: str) -> None:
        """The node is gone at once, with every process of the gangs that had a part of it."""
        self._write({other: node for other, node in self.nodes.items() if other != name})
        for path in self.home.glob("jobs/*/*/order.json"):
            if name in nodes_of(read_json(str(path)) or {}):
                _kill_keeper(path.parent)

    def send(self, order: Order, job: str, nodes: set[str], now: float) -> None:
        """A service has ordered something."""
        if order.verb is Verb.START:
            self.sent.append(Sent(job, order.epoch, frozenset(nodes), now))
            if dead := nodes & self.known_lost:
                self._breaches.append(f"job {job} is started on {sorted(dead)}, known to be lost")


def nodes_of(order: Mapping[str, object]) -> set[str]:
    """The nodes that an incarnation was ordered to be on."""
    env = order.get("env")
    named = str(env.get("GANTLINE_DEVICES", "")) if isinstance(env, dict) else ""
    return {device.rpartition(":")[0] for device in named.split(",") if device}


def _kill_keeper(folder: Path) -> None:
    """The keeper and the process above it; their ranks go with them (`Incarnation.end_strays` ends what is left)."""
    state = read_json(str(folder / "state.json")) or {}
    if state.get("phase") != "over":
        for name in ("above", "pid"):
            if name in state:
                with suppress(ProcessLookupError):
                    os.kill(int(state[name]), signal.SIGKILL)


@dataclass
class RackIncarnation(Incarnation):
    """One whose keeper is gone is over when it is known whose fault that is: a loss is told before what follows from it."""

    rack: Rack = field(kw_only=True)
    seen_nodes: Mapping[str, RackNode] = field(kw_only=True)  # what the runner has told of them

    def lost(self, nodes: Mapping[str, RackNode]) -> bool:
        """Whether one of its nodes is not there, or has been away."""
        boots = self.order.get("boots", {})
        return any(name not in nodes or nodes[name].boot != boot for name, boot in boots.items())

    def abandoned(self) -> bool:
        return False if self.lost(self.rack.nodes) and not self.lost(self.seen_nodes) else super().abandoned()

    def close(self) -> None:
        if self.lost(self.seen_nodes):
            self.state["fault"] = "node"
        super().close()

    def end(self) -> None:
        """What is left of it ends, and waits for that."""
        if not self.over:
            self.write_order(want="stop", grace=0.0)
            until(self.abandoned, f"job {self.job} leaves its lost node")


@dataclass(frozen=True)
class RackKeepers(LocalKeepers):
    rack: Rack = field(kw_only=True)

    def begin(self, one: Incarnation, launch: Launch) -> None:
        """On a node that is not there nothing begins, and nothing says so."""
        there, names = self.rack.nodes, nodes_of(one.order)
        one.order["boots"] = {name: there[name].boot if name in there else 0 for name in names}
        if names <= set(there):
            super().begin(one, launch)
        else:
            one.folder.mkdir(parents=True, exist_ok=True)
            one.write_order()


class RackRunner(LocalRunner):
    """A runner of the nodes of a rack."""

    def __init__(self, rack: Rack) -> None:
        super().__init__(rack.home, "cpu:1")
        self.rack, self.present = rack, dict(rack.nodes)
        self.known = Incarnations(partial(RackIncarnation, rack=rack, seen_nodes=self.present))
        self.machine = Machine(self.cluster, {})
        self._closed = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="rack-watch", daemon=True)

    @property
    def cluster(self) -> Cluster:
        return Cluster(tuple(_node(name, one) for name, one in self.present.items()))

    @property
    def drained(self) -> Mapping[str, str]:
        return {name: "drained" for name, one in self.present.items() if one.is_drained}

    def attach(self, contact: Contact) -> None:
        super().attach(contact)
        self._watcher.start()

    def _begin(self, execution: Execution) -> None:
        execution.keepers = RackKeepers(self.fork_server, self._crashes, rack=self.rack)
        super()._begin(execution)

    def close(self) -> None:
        self._closed.set()
        if self._watcher.is_alive():
            self._watcher.join()
        super().close()

    def send(self, order: Order, now: float) -> None:
        contact = self._contact
        self.rack.send(order, contact.task(order.row).job, set(contact.by_node(order.devices)), now)
        super().send(order, now)

    def _watch(self) -> None:
        while not self._closed.wait(_LOOK):
            if self.rack.nodes != self.present:
                self._ring()

    def _look(self) -> None:
        super()._look()
        news = list(self._news(self.rack.nodes))
        if news:
            with self._execution.together(news):
                for one in map(_of_rack, self.known.alive()):
                    if one.lost(self.present):
                        one.end()
                        self._try(self._execution.repeat, one)

    def _news(self, there: Mapping[str, RackNode]) -> list[NodeNews]:
        """What has become of the nodes since they were last looked at."""
        news: list[NodeNews] = []
        for name in {**self.present, **there}:
            before, now = self.present.get(name), there.get(name)
            if before is not None and (now is None or now.boot != before.boot):
                news.append(NodeNews(name, NodeState.LOST, why="it is gone"))
            if now is not None and now != before:
                news.append(NodeNews(name, NodeState.DRAINED if now.is_drained else NodeState.UP, _node(name, now)))
        self.present.clear()
        self.present.update(there)
        return news


def _of_rack(one: Incarnation) -> RackIncarnation:
    assert isinstance(one, RackIncarnation)
    return one


def _node(name: str, one: RackNode) -> Node:
    return Node(name, "cpu", one.gpus)
