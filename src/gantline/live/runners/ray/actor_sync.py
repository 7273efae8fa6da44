"""Carries orders of incarnations to their keepers, and state and output of these back into the home.

Two threads. One does tasks that need Ray's control store, which may be away for a while: devices and keepers are asked for and given back
there, one after the other. The other receives news, which come from keepers directly.

An end is written down before its keeper is ended, and told after the devices are given back.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from gantline.live.runners.local.files import read_json, write_json
from gantline.live.runners.local.output import Log
from gantline.live.runners.ray.connection import Handle, RayNode
from gantline.live.runners.ray.incarnation import RayIncarnation
from gantline.live.runners.ray.node_agent import KeeperNews
from gantline.live.runners.ray.packages import Packages, broken

if TYPE_CHECKING:
    from gantline.live.runners.local.files import Values

_LOG = logging.getLogger("gantline.live")
_WAIT = 20.0  # seconds for which a keeper may have no news
_PATIENCE = 10.0  # seconds that the end of a gang on a lost node may take before the loss is told without it
_AGAIN = 1.0  # seconds before something that failed is tried again


@dataclass
class FollowedKeeper:
    """An incarnation with a keeper, and how much of its output is here."""

    one: RayIncarnation
    actor: Handle
    log: Log
    offset: int = 0
    version: int = -1
    state: Values = field(default_factory=dict)


class ActorSync:
    """`ring` is called when something has arrived."""

    def __init__(self, prefix: str, ring: Callable[[], None], packages: Packages) -> None:
        from gantline.live.runners.ray import actors  # the module that needs Ray: whoever makes a sync has found it

        self.prefix, self.ring, self._packages, self._actors = prefix, ring, packages, actors
        self.node_of: Callable[[str], RayNode | None] = lambda name: None
        self._doubtful: dict[str, FollowedKeeper] = {}  # whose keeper is gone, or a part of it, and it is not known yet why
        self._held: dict[str, FollowedKeeper] = {}  # by name
        self._single: dict[str, set[str]] = {}  # devices of an incarnation that Ray holds one by one, so that some can be given back
        self._there: set[str] | None = None  # keepers that were there when they were adopted
        self._asking, self._is_closed = threading.Lock(), False
        self._tasks: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._answers: queue.Queue[tuple[FollowedKeeper, Handle] | None] = queue.Queue()
        self._silent: deque[tuple[float, FollowedKeeper]] = deque()  # keepers that did not answer, and when each is asked again
        self._threads = [
            threading.Thread(target=work, name=f"gantline-ray-{work.__name__[1:]}", daemon=True) for work in (self._run, self._receive)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self, patience: float) -> None:
        """Carry nothing more; keepers go on. A thread that still used Ray after it is shut down would end the process: all are waited for,
        but not beyond `patience`, because those that wait for Ray's control store may do so for long."""
        end = time.monotonic() + patience
        with self._asking:
            self._is_closed = True
        self._tasks.put(None)
        self._answers.put(None)
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, end - time.monotonic()))

    # --- out ------------------------------------------------------------------------------------------------------------
    def begin(self, one: RayIncarnation) -> None:
        """Ask for devices and a keeper."""
        self._tasks.put(partial(self._begin, one))

    def send(self, one: RayIncarnation) -> None:
        """Let the keeper know the order as it is now; one that has no keeper yet begins with it."""
        held = self._held.get(one.name)
        if held is not None:
            held.actor.order.remote(dict(one.order))

    def hold(self, one: RayIncarnation, devices: Sequence[str]) -> None:
        """Let an incarnation have these devices and no others, where Ray holds each of them by itself."""
        self._tasks.put(partial(self._hold, one, tuple(devices)))

    def end_keeper(self, one: RayIncarnation, state: Values) -> None:
        """End its keeper, wherever that is, and give its devices back; then it is what `state` says."""
        self._tasks.put(partial(self._end, one, state))

    def shortage(self, one: RayIncarnation) -> str:
        """Which of its nodes cannot be had."""
        gone = [name for name in one.order["nodes"] if self.node_of(name) is None]
        return f"node {gone[0]} is not there" if gone else f"other programs of the cluster use devices of {', '.join(one.order['nodes'])}"

    # --- after a restart ------------------------------------------------------------------------------------------------
    def find_keepers(self) -> None:
        """Find out which keepers are there."""
        self._there = self._actors.names(self.prefix)
        for group in self._actors.groups(self.prefix):
            name, _, device = group.rpartition("/")
            if name in self._there:
                self._single.setdefault(name, set()).add(device)

    def adopt(self, one: RayIncarnation) -> bool:
        """Go on with a keeper that an earlier service has left; False: there is none."""
        assert self._there is not None
        actor = self._actors.find(one.name) if one.name in self._there else None
        if actor is None:
            return False
        self._follow(one, actor)
        self.send(one)  # it may have been written down and not sent
        return True

    def tidy_up(self) -> None:
        """End keepers, and give back devices, of incarnations that are over or were never written down."""
        kept = {*self._held, *(f"{name}/{device}" for name in self._held for device in self._single.get(name, ()))}
        for name in (self._actors.names(self.prefix) | self._actors.groups(self.prefix)) - kept:
            self._actors.release(name)

    # --- tasks --------------------------------------------------------------------------------------------------------
    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            while not self._is_closed:
                try:
                    task()
                    break
                except Exception:
                    _LOG.exception("Ray did not do what it was asked; it is asked again")
                    time.sleep(_AGAIN)

    def _begin(self, one: RayIncarnation) -> None:
        if one.is_being_ended or one.over:
            return
        nodes = [self.node_of(name) for name in one.order["nodes"]]
        if any(node is None for node in nodes):
            self._end(one, {"phase": "over", "cause": "failed", "exit": None, "fault": "node", "why": self.shortage(one)})
            return
        ids = [node.id for node in nodes if node is not None]
        try:
            self._packages.bring(one.order.get("runtime_env", {}))
        except FileNotFoundError as error:
            self._end(one, broken(error))
            return
        actor = self._actors.find(one.name) or self._actors.begin(one.name, dict(one.order), ids, one.order["bundles"])
        self._follow(one, actor)
        if one.order.get("one_by_one"):
            self._hold(one, one.order["device_names"])

    def _hold(self, one: RayIncarnation, devices: Sequence[str]) -> None:
        if one.name not in self._held:
            return  # it is over
        has, (amounts,) = self._single.setdefault(one.name, set()), one.order["bundles"]
        for device in set(devices) - has:
            node = self.node_of(device.rpartition(":")[0])
            if node is not None:  # else its loss ends the gang
                self._actors.hold(f"{one.name}/{device}", node.id, dict.fromkeys(amounts, 1))
                has.add(device)
        for device in has - set(devices):
            self._actors.release(f"{one.name}/{device}")
            has.discard(device)

    def _end(self, one: RayIncarnation, state: Values, done: Callable[[], None] | None = None) -> None:
        """Write the end down, give the devices back, then let it be seen, or say that it is done."""
        write_json(str(one.folder / "state.json"), state)
        self._actors.release(one.name)
        for device in self._single.pop(one.name, ()):
            self._actors.release(f"{one.name}/{device}")
        self._held.pop(one.name, None)
        self._doubtful.pop(one.name, None)
        if done is not None:
            done()
            return
        one.arrived = state
        self.ring()

    # --- in -------------------------------------------------------------------------------------------------------------
    def _follow(self, one: RayIncarnation, actor: Handle) -> None:
        log = Log(str(one.folder / "log"), int(one.order.get("log_bytes", 64 << 20)))
        held = FollowedKeeper(one, actor, log, int(read_json(str(one.folder / "fetched")) or 0))
        self._held[one.name] = held
        self._ask(held)

    def _ask(self, held: FollowedKeeper) -> None:
        over = held.state.get("phase") == "over"
        with self._asking:
            if self._is_closed:
                return
            reference = held.actor.news.remote(held.version, held.offset, 0.0 if over else _WAIT)
            reference.future().add_done_callback(lambda answer: self._answers.put((held, answer)))

    def _receive(self) -> None:
        while (answered := self._next_answer()) is not None:
            held, answer = answered
            if self._held.get(held.one.name) is not held:
                continue  # it was called back
            try:
                self._take(held, KeeperNews(*answer.result()))
            except Exception as error:
                self._miss(held, error)

    def _next_answer(self) -> tuple[FollowedKeeper, Handle] | None:
        """The next answer; keepers that gave none are asked again meanwhile."""
        while True:
            wait = self._silent[0][0] - time.monotonic() if self._silent else None
            if wait is not None and wait <= 0.0:
                self._ask(self._silent.popleft()[1])
                continue
            with suppress(queue.Empty):
                return self._answers.get(timeout=wait)

    def _take(self, held: FollowedKeeper, news: KeeperNews) -> None:
        one = held.one
        if news.output:
            held.log.write(news.output)
            held.offset = news.offset
            write_json(str(one.folder / "fetched"), held.offset, lasting=False)
        is_new, held.version = news.state != held.state, news.version
        held.state = dict(news.state)
        if held.state.get("phase") == "over":
            if news.output:
                self._ask(held)  # there may be more
                return
            held.log.close()
            if held.state.get("fault"):
                self._doubtful[one.name] = held
            else:
                held.actor.dismiss.remote()
                self._tasks.put(partial(self._end, one, held.state))
            return
        if is_new:
            write_json(str(one.folder / "state.json"), held.state, lasting=False)
            one.arrived = dict(held.state)
            self.ring()
        self._ask(held)

    def _miss(self, held: FollowedKeeper, error: Exception) -> None:
        """No answer: the keeper cannot be reached for a while, or is gone."""
        from ray.exceptions import ActorDiedError, RuntimeEnvSetupError

        if isinstance(error, RuntimeEnvSetupError):
            self._tasks.put(partial(self._end, held.one, broken(error)))
            return
        if not isinstance(error, ActorDiedError):
            _LOG.warning("no news of %s: %s", held.one.name, str(error).splitlines()[0])
            self._silent.append((time.monotonic() + _AGAIN, held))
            return
        why = next((line.strip() for line in str(error).splitlines() if "dead because" in line), "its keeper was ended")
        held.state |= {"phase": "over", "cause": "failed", "exit": None, "fault": "?", "why": why}
        self._doubtful[held.one.name] = held

    # --- losses ---------------------------------------------------------------------------------------------------------
    def lose(self, nodes: set[str]) -> list[tuple[RayIncarnation, Values]]:
        """Nodes are lost: end what is left of the gangs on them. What these are then is for the caller to let be seen, with the loss."""
        found = []
        for held in [held for held in list(self._held.values()) if nodes & set(held.one.order["nodes"])]:
            why = f"node {min(nodes & set(held.one.order['nodes']))} is lost"
            state = {**held.state, "phase": "over", "cause": "failed", "exit": None, "fault": "node", "why": why}
            done = threading.Event()
            self._tasks.put(partial(self._end, held.one, state, done.set))
            done.wait(_PATIENCE)
            found.append((held.one, state))
        return found

    def settle(self, verdict: Callable[[str], str]) -> None:
        """Where it is known by now whose fault it is that a keeper is gone, its incarnation is over."""
        for held in list(self._doubtful.values()):
            faults = {verdict(name) for name in held.one.order["nodes"]}
            if "node" in faults or faults == {"engine"}:
                del self._doubtful[held.one.name]
                fault = "node" if "node" in faults else "engine"
                self._tasks.put(partial(self._end, held.one, {**held.state, "fault": fault}))
