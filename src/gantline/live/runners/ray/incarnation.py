"""One incarnation of a job on a Ray cluster. Its folder in the home has what an actor's folder has: the sync carries it to and fro."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gantline.engine.executor import Order
from gantline.live.jobs.launch import Launch, slots_only
from gantline.live.jobs.spec_parts import SETUP
from gantline.live.runners.job_environment import gang_ranks, grant_environment
from gantline.live.runners.local.execution import Execution
from gantline.live.runners.local.files import make_private, read_json, write_json
from gantline.live.runners.local.fork_server import handed_on
from gantline.live.runners.local.incarnation import OVERDUE, Incarnation, Loss
from gantline.live.runners.local.orders import Writer
from gantline.live.runners.runner_context import Task

if TYPE_CHECKING:
    from gantline.live.runners.local.files import Values


START_LIMIT = 120.0  # seconds that Ray has to find the devices and to start a keeper
_NEVER_BEGAN = 1.0  # seconds after which one that shall stop before it has begun is called back


class KeeperSync(Protocol):
    """What goes between an incarnation and its keeper (`sync.ActorSync`)."""

    prefix: str  # of the names of all keepers of this home

    def begin(self, one: RayIncarnation) -> None: ...

    def send(self, one: RayIncarnation) -> None: ...

    def hold(self, one: RayIncarnation, devices: Sequence[str]) -> None: ...

    def adopt(self, one: RayIncarnation) -> bool: ...

    def end_keeper(self, one: RayIncarnation, state: Values) -> None: ...

    def shortage(self, one: RayIncarnation) -> str: ...


@dataclass
class RayIncarnation(Incarnation):
    """One incarnation, under one epoch."""

    sync: KeeperSync = field(kw_only=True)
    checkpoints: Path = field(kw_only=True)
    arrived: Values | None = None  # a state that has not been read yet
    begun: float = field(default_factory=time.monotonic)
    is_being_ended: bool = False
    is_settled: bool = False  # it has no other devices than those that it runs on

    @property
    def name(self) -> str:
        """Of its keeper and its placement group."""
        return f"{self.sync.prefix}{self.job}/{self.folder.name}"

    @property
    def start_limit(self) -> float:
        """Seconds that Ray has to start it: those for its devices, and what its environment may take."""
        made = self.order.get("runtime_env") or {}
        return START_LIMIT + (float(made.get("config", {}).get("setup_timeout_seconds", SETUP)) if made else 0.0)

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint" if self.is_trial else self.checkpoints / self.job / "checkpoint"

    def start(self) -> None:
        """Write the order down, and ask Ray for devices and a keeper."""
        make_private(self.folder)
        self.write_order()
        self.sync.begin(self)

    def write_order(self, **news: Any) -> None:
        super().write_order(serial=int(self.order.get("serial", 0)) + 1, **news)

    def announce(self, grant: Values, /, **news: object) -> None:
        """The actor brings the grant into the folder that the job sees, once the devices are there."""
        super().announce(grant, **news, grant=grant)
        self.sync.hold(self, [*self.order["device_names"], *grant["devices"]])
        self.is_settled = False

    def settle(self, devices: Sequence[str]) -> None:
        """It goes on with these devices: all others that it had are given back."""
        if list(devices) != self.order["device_names"]:
            self.write_order(device_names=list(devices))
        elif self.is_settled:
            return
        self.sync.hold(self, devices)
        self.is_settled = True

    def look_again(self) -> None:
        """Let the actor know that the job has reported its switch to the service, where that is not how it reports."""
        if read_json(str(self.folder / "switched")) == self.epoch != self.order.get("switched") and "switched" not in self._board():
            self.write_order(switched=self.epoch)

    def _board(self) -> Values:
        found = self.state.get("board")
        return found if isinstance(found, dict) else {}

    def _copy_board(self) -> None:
        """What the job and its keeper have decided is in this folder, too."""
        for name, value in self._board().items():
            if read_json(str(self.folder / name)) != value:
                write_json(str(self.folder / name), value)

    def signal(self, number: int) -> None:
        if number == signal.SIGHUP:
            self.sync.send(self)

    def read(self) -> bool:
        if self.seen < 0:  # what an earlier service has written down
            found = super().read()
            self.seen = max(self.seen, 0)
            self._copy_board()
            return found
        arrived, self.arrived = self.arrived, None
        if arrived is None or arrived == self.state:
            return False
        self.state = arrived
        self._copy_board()
        return True

    def keeper_gone(self) -> bool:
        return False  # the sync says so by a state

    def abandoned(self) -> bool:
        """Whether an earlier service left no keeper: asked once, when it is adopted."""
        if self.sync.adopt(self):
            return False
        lost = {"phase": "over", "cause": "failed", "exit": None, "fault": "engine", "why": "its keeper is not there any more"}
        self.state = {**self.state, **lost} if self.state or self.order else self.state
        self.close()
        return True

    def hurry(self) -> None:
        """Call back what does not begin, or does not stop, in time."""
        if self.over or self.is_being_ended:
            return
        now = time.monotonic()
        if self.stopping and now > self.stopping + (float(self.order.get("grace", 10.0)) + OVERDUE if self.state else _NEVER_BEGAN):
            self._end_keeper({"cause": "stopped", "forced": bool(self.state)})
        elif not self.state and now > self.begun + self.start_limit:
            why = f"Ray did not start it within {self.start_limit:g} s: {self.sync.shortage(self)}"
            self._end_keeper({"cause": "failed", "fault": "engine", "why": why})

    def _end_keeper(self, end: Values) -> None:
        self.is_being_ended = True
        self.sync.end_keeper(self, {**self.state, "phase": "over", "exit": None, **end})

    def mark(self) -> int:
        return int(self.state.get("mark", -1))

    def end_strays(self) -> None:
        """What an actor has started ends with it."""

    def forget(self) -> None:
        with contextlib.suppress(OSError):
            super().forget()

    def _watch_again(self) -> None:
        """The sync does."""


# What is written into the order of an incarnation on a Ray cluster: as on one machine, and its nodes with what it
# needs of each.


@dataclass
class RayWriter(Writer):
    """Writes orders for a cluster. What this machine has in its environment is of no use on others: actors add their own."""

    by_node: Callable[[tuple[int, ...]], Mapping[str, list[int]]] = lambda devices: {}
    resource: Callable[[str], str] = lambda node: "CPU"  # what Ray calls the devices of a node

    def order(self, order: Order, task: Task, one: Incarnation) -> Values:
        assert isinstance(one, RayIncarnation)
        written, places = super().order(order, task, one), self.by_node(order.devices)
        ranks = gang_ranks(task.launch, places, "", 0)  # where they meet is known when they have a node
        env = {name: value for name, value in written["env"].items() if name not in handed_on() or name in task.launch.env}
        changes = "devices" in task.launch.changes and len(places) == 1
        return {
            **written, "env": env, "ranks": [rank.env for rank in ranks], "nodes": list(places),
            "parts": [sum(rank.node == name for rank in ranks) for name in places],
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
        env = {**grant_environment(order, list(map(self.name, devices))), "GANTLINE_JOINING": "1"}
        ranks = [rank.env for rank in gang_ranks(launch, self.by_node(tuple(devices)), "", 0)][len(members) :]
        return {"epoch": order.epoch, "members": list(members), "env": env, "ranks": ranks}


# Carries out orders on a Ray cluster: as on one machine, but for how keepers begin, and what Ray holds for them.


class RayKeepers:
    """Keepers are actors."""

    def begin(self, one: Incarnation, launch: Launch) -> None:
        assert isinstance(one, RayIncarnation)
        one.start()

    def judge(self, one: Incarnation, alive: Sequence[Incarnation]) -> None:
        """Nothing more is known."""


@dataclass
class RayExecution(Execution):
    """Carries out one order at a time, in the runner's thread."""

    def carry_out(self, order: Order | Loss) -> None:
        super().carry_out(order)
        one = None if isinstance(order, Loss) else self.known.get(self.contact.task(order.row).job)
        if one is not None:
            self._settle(one)

    def look(self, one: Incarnation) -> None:
        super().look(one)
        self._settle(one)

    def _settle(self, one: Incarnation) -> None:
        """What it has is what Ray holds for it, unless it is about to change."""
        assert isinstance(one, RayIncarnation)
        if one.order.get("one_by_one") and not one.over and not one.switching:
            one.settle([self.writer.name(device) for device in one.devices])
