"""Machines that exist only here: nodes that can be killed, return and be replaced, and gangs that run until they are told to end.

The machines outlive a service, as real ones do: each service gets a runner of its own for them. What breaks a promise is noted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from gantline.core.cluster import Cluster, Node
from gantline.core.inputs import Fault
from gantline.engine.executor import Can, News, Order, Report, Verb
from gantline.live.runners.runner import Runner
from gantline.live.runners.runner_context import Contact, RunnerContext
from gantline.live.runners.runner_events import Ending, KeptIncarnation, NodeNews, NodeState, Present, RunnerEvents


class Sent(NamedTuple):
    """A start that a service has ordered."""

    job: str
    epoch: int
    nodes: frozenset[str]
    at: float  # by the service's clock


@dataclass
class Life:
    """One incarnation: where it is, by names that no restart changes."""

    job: str
    epoch: int
    places: tuple[tuple[str, int], ...]
    over: News | None = None
    lost: Fault | None = None
    exit: int | None = None


@dataclass
class Machines:
    """Nodes and what runs on them."""

    nodes: dict[str, Node] = field(default_factory=dict)  # those that are there
    lives: dict[str, Life] = field(default_factory=dict)  # the newest of each job
    breaches: list[str] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    drained: set[str] = field(default_factory=set)
    known_lost: Callable[[], set[str]] = set  # nodes that the service knows to be lost
    lock: threading.RLock = field(default_factory=threading.RLock)

    def add(self, name: str, gpus: int = 2, type: str = "gpu") -> Node:
        self.nodes[name] = Node(name, type, gpus)
        return self.nodes[name]

    def drain(self, name: str, is_drained: bool = True) -> None:
        (self.drained.add if is_drained else self.drained.discard)(name)

    def running(self) -> list[Life]:
        return [life for life in self.lives.values() if life.over is None]

    def kill(self, name: str) -> list[Life]:
        """The node is gone; the gangs that it had a part of."""
        with self.lock:
            self.nodes.pop(name, None)
            self.drained.discard(name)
            hit = [life for life in self.running() if any(node == name for node, _ in life.places)]
            for life in hit:
                life.over, life.lost = News.FAILED, Fault.NODE
            return hit


class PretendRunner(Runner):
    """A runner of these machines."""

    def __init__(self, machines: Machines, abilities: frozenset[Can] = frozenset()) -> None:
        self.machines, self._abilities, self._contact, self._closed = machines, abilities, None, False

    @classmethod
    def open(cls, context: RunnerContext) -> Self:
        raise NotImplementedError

    _contact: Contact | None

    @property
    def contact(self) -> Contact:
        assert self._contact is not None
        return self._contact

    @property
    def abilities(self) -> frozenset[Can]:
        return self._abilities

    def can(self, row: int) -> frozenset[Can]:
        return self._abilities

    @property
    def cluster(self) -> Cluster:
        return Cluster(tuple(self.machines.nodes.values()))

    @property
    def drained(self) -> Mapping[str, str]:
        return dict.fromkeys(self.machines.drained, "cordoned")

    def adopt(self, is_over: Callable[[str], bool] = lambda job: False) -> Sequence[Present]:
        lives = [life for life in self.machines.lives.values() if not is_over(life.job)]
        return [Present(one.job, one.epoch, tuple(f"{n}:{k}" for n, k in one.places), 0.0, one.over is not None) for one in lives]

    def attach(self, contact: Contact) -> None:
        self._contact = contact
        with self.machines.lock:
            for life in self.machines.running():
                self._tell(life)

    @property
    def alive(self) -> bool:
        return self._contact is not None and not self._closed

    def is_same_life(self, job: str, epoch: int) -> bool:
        return False

    def switched(self, job: str, epoch: int) -> None: ...

    def forget(self, jobs: Iterable[str]) -> None: ...

    def incarnations(self, job: str) -> Sequence[KeptIncarnation]:
        return ()

    def jobs_kept(self) -> set[str]:
        return set()

    def remove(self, job: str) -> None: ...

    def close(self) -> None:
        self._closed = True

    def fail(self, node: int, devices: frozenset[int], now: float) -> None:
        """What was started there after the node had been lost and was back, and before the service had received that, is over, too."""
        with self.machines.lock:
            places = {self.contact.place(device) for device in devices}
            for life in self.machines.running():
                if places & set(life.places):
                    life.over, life.lost = News.FAILED, Fault.NODE

    # --- orders ---------------------------------------------------------------------------------------------------------
    def send(self, order: Order, now: float) -> None:
        with self.machines.lock:
            job = self.contact.task(order.row).job
            life = self.machines.lives.get(job)
            if life is not None and order.epoch <= life.epoch:
                if order.verb is Verb.STOP and order.epoch == life.epoch and life.over is None:
                    life.over = News.STOPPED
            elif order.verb is Verb.START:
                life = self._start(job, order, now)
            else:
                life = self.machines.lives[job] = Life(job, order.epoch, (), News.STOPPED)
            if life is not None:
                self._tell(life)

    def _start(self, job: str, order: Order, now: float) -> Life:
        machines = self.machines
        places = tuple(self.contact.place(device) for device in order.devices)
        life = machines.lives[job] = Life(job, order.epoch, places)
        nodes = {node for node, _ in places}
        machines.sent.append(Sent(job, order.epoch, frozenset(nodes), now))
        if dead := nodes & machines.known_lost():
            machines.breaches.append(f"job {job} is started on {dead}, known to be lost")
        for other in machines.running():
            if other is not life and set(other.places) & set(places):
                machines.breaches.append(f"jobs {job} and {other.job} are on one device")
        if not nodes <= set(machines.nodes):
            life.over, life.lost = News.FAILED, Fault.NODE
        return life

    def _tell(self, *lives: Life, nodes: tuple[NodeNews, ...] = ()) -> None:
        found = []
        for life in lives:
            row = self.contact.row_of(life.job)
            if row is None:
                continue
            devices = tuple(d for place in life.places if (d := self.contact.device(*place)) is not None) if life.over is None else ()
            report = Report(life.over or News.STARTED, row, life.epoch, self.contact.clock.now(), 0.0, devices, lost=life.lost)
            found.append((report, None if life.over is None else Ending(life.exit, "its node is lost" if life.lost else "")))
        self.contact.tell(RunnerEvents(nodes, tuple(found)))

    # --- what happens by itself -----------------------------------------------------------------------------------------
    def lose(self, name: str) -> None:
        """A node is gone, and this is noticed: the events has the node, then its gangs."""
        with self.machines.lock:
            hit = self.machines.kill(name)
            self._tell(*hit, nodes=(NodeNews(name, NodeState.LOST, why="silent for longer than its lease"),))

    def join(self, name: str, gpus: int = 2, type: str = "gpu") -> None:
        """A node comes, returns, or takes the place of another."""
        with self.machines.lock:
            if name in self.machines.nodes and self.machines.nodes[name].gpus != gpus:
                self._tell(*self.machines.kill(name))
            self._tell(nodes=(NodeNews(name, NodeState.UP, self.machines.add(name, gpus, type)),))

    def drain(self, name: str, is_drained: bool = True) -> None:
        self.machines.drain(name, is_drained)
        what = NodeState.DRAINED if is_drained else NodeState.UP
        self._tell(nodes=(NodeNews(name, what, self.machines.nodes[name], why="cordoned" if is_drained else ""),))

    def end(self, job: str, exit: int = 0) -> None:
        """The job ends by itself."""
        with self.machines.lock:
            life = self.machines.lives[job]
            life.over, life.exit = News.FINISHED if exit == 0 else News.FAILED, exit
            self._tell(life)
