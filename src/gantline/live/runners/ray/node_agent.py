"""What an actor does on its node: a folder, a keeper in it, and what the keeper writes there, told to whoever waits for news.

The keeper is that of one machine (`local.keeper`). The actor brings its orders into the folder and its state and output out of it, so that
the service has a copy of the folder in its home, and sees an incarnation on a cluster as it sees one on its own machine.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import shutil
import signal
import tempfile
import threading
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gantline.live.runners.job_environment import free_port
from gantline.live.runners.local.files import read_json, stamp, started_at, write_json
from gantline.live.runners.local.fork_server import handed_on
from gantline.live.runners.local.keeper import begin_keeper
from gantline.live.runners.local.output import KeptOutput, Log
from gantline.live.runners.local.ranks import combined

if TYPE_CHECKING:
    from gantline.live.runners.local.files import Values


_LOOK = 0.05  # seconds between looks at what the keeper has written
_OUTPUT = 0.5  # seconds for which output is collected before it is told
_VISIBLE = "CUDA_VISIBLE_DEVICES"


class KeeperNews(NamedTuple):
    """What has become of a keeper since it was last asked."""

    version: int  # of the state
    state: Values
    offset: int  # behind the output that comes with it
    output: bytes


class NodeAgent:
    """One node's part of a gang, or all of a gang on one node. Calls come from several threads."""

    def __init__(self, name: str, order: Values, address: str) -> None:
        self.name, self.address, self.port = name, address, free_port(address)
        self.folder = Path(tempfile.gettempdir()) / f"gantline-{os.getuid()}" / f"{name}.{os.getpid()}"
        self.folder.mkdir(mode=0o700, parents=True)
        self.tail, self.version = Tail(self.folder), 0
        self.state: Values = {}
        self.serial = order["serial"]  # of the newest order
        self.changed = threading.Condition()
        self._order, self.node = dict(order), str(order.get("node") or next(iter(order.get("nodes", ())), ""))
        self._cuda = os.environ.get(_VISIBLE, "")
        self._granted = self._asked = 0  # the epoch of the grant that the job sees, and of the newest one
        self._begin(order)

    def order(self, order: Values) -> None:
        """What shall be, unless something newer was said already."""
        with self.changed:
            if order["serial"] <= self.serial:
                return
            self.serial = order["serial"]
            self._obey(order)

    def news(self, seen: int, offset: int, wait: float) -> KeeperNews:
        """What is new: at once when the state has changed, a little later when there is output only, and after so many seconds at last."""
        end = time.monotonic() + wait
        spoken = 0.0  # since when there is output
        with self.changed:
            while self.version == seen and (now := time.monotonic()) < end:
                if self.tail.end > offset:
                    spoken = spoken or now
                    if now >= spoken + _OUTPUT:
                        break
                self.changed.wait(min(_OUTPUT, end - now))
            return KeeperNews(self.version, dict(self.state), *self.tail.read(offset))

    def dismiss(self) -> None:
        """It is over, and all that is kept of it is kept elsewhere; orders that come late find nothing to change."""
        with self.changed:
            self.serial = math.inf
        shutil.rmtree(self.folder, ignore_errors=True)

    def obtain(self, name: str, devices: Sequence[str], amounts: Mapping[str, float]) -> list[str]:
        """Wait for devices that are held one by one; what CUDA calls them."""
        return []

    # --- the keeper of this node ----------------------------------------------------------------------------------------
    def _begin(self, order: Values) -> None:
        self._write(order)
        threading.Thread(target=self._watch, name="gantline-keeper", daemon=True).start()

    def _obey(self, order: Values) -> None:
        """A grant of other devices is passed on when these are there; all else at once."""
        self._order, grant = dict(order), order.get("grant") or {}
        epoch, called_off = int(grant.get("epoch", 0)), bool((order.get("change") or {}).get("refuse"))
        if epoch > self._asked and not called_off:
            self._asked = epoch
            threading.Thread(target=self._await, args=(epoch, grant["devices"]), name="gantline-devices", daemon=True).start()
        if called_off:
            self._granted = self._asked = epoch
        if epoch > self._granted:
            order = {name: value for name, value in order.items() if name not in ("change", "grant")}
        self._pass_on(order)

    def _await(self, epoch: int, devices: Sequence[str]) -> None:
        cuda = self._obtain(devices)
        with self.changed:
            if epoch == self._asked:
                self._granted, self._cuda = epoch, cuda
                self._pass_on(self._order)

    def _obtain(self, devices: Sequence[str]) -> str:
        (amounts,) = self._order["bundles"]
        return ",".join(self.obtain(self._order["one_by_one"], devices, dict.fromkeys(amounts, 1)))

    def _pass_on(self, order: Values) -> None:
        self._write(order)
        pid = int(self.state.get("pid", -1))
        if pid > 0 and started_at(pid) == self.state.get("born"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGHUP)

    def _write(self, order: Values) -> None:
        """The order for processes on this node: where they meet, and what the engine has given this actor."""
        meet = order.get("meet") or {"MASTER_ADDR": self.address, "MASTER_PORT": str(self.port)}
        made = order.get("runtime_env", {})  # Ray has made it around this actor: ranks have it from here
        chosen = {name: os.environ[name] for name in made.get("env_vars", ()) if name in os.environ}
        env = {**handed_on(), **chosen, **order["env"], "GANTLINE_FOLDER": str(self.folder), _VISIBLE: self._cuda}
        self._saved = os.path.join(env["GANTLINE_CHECKPOINT"], "saved")
        with contextlib.suppress(OSError):
            os.makedirs(env["GANTLINE_CHECKPOINT"], mode=0o700, exist_ok=True)
        write_json(str(self.folder / "terms.json"), order.get("terms", {}), lasting=False)
        here = {**order, "env": env, "ranks": [{**rank, **meet} for rank in order["ranks"]]}
        if "working_dir" in made:
            here["cwd"] = os.getcwd()
        if change := order.get("change"):
            here["change"] = {**change, "ranks": [{**rank, **meet} for rank in change["ranks"]]}
        write_json(str(self.folder / "order.json"), here, lasting=False)
        for name in ("grant.json", "switched"):
            if value := order.get(name.removesuffix(".json")):
                write_json(str(self.folder / name), value, lasting=False)

    def _watch(self) -> None:
        """Until the keeper is gone; in a thread that nothing waits for, because the actor may be ended at any time."""
        try:
            if self._order.get("one_by_one"):
                self._cuda = self._obtain(self._order["device_names"])
                with self.changed:
                    self._write(self._order)
            keeper = begin_keeper(str(self.folder))
        except Exception as error:
            self._see({"phase": "over", "cause": "failed", "exit": 126, "why": f"its keeper cannot be started: {error}", **stamp("ended")})
            return
        poll = select.poll()
        poll.register(keeper, select.POLLIN)
        while not poll.poll(1000.0 * _LOOK):
            self._see(self._read())
        state = self._read()
        if state.get("phase") != "over":
            state |= {"phase": "over", "cause": "failed", "exit": None, "why": "its keeper was killed", **stamp("ended")}
        self._see(state)

    def _read(self) -> Values:
        found = read_json(str(self.folder / "state.json"))
        if not isinstance(found, dict):
            return dict(self.state)
        with contextlib.suppress(OSError):
            found["mark"] = os.stat(self._saved).st_mtime_ns
        if self._cuda:  # which GPUs of the node it is, Ray has decided
            found["actual"] = [f"{self.node}:{name}" for name in self._cuda.split(",")]
        if self._granted:  # what ranks and keeper have decided about it
            board = {name: read_json(str(self.folder / name)) for name in (f"switch.{self._granted}", "switched")}
            found["board"] = {name: value for name, value in board.items() if value is not None}
        return found

    def _see(self, state: Values) -> None:
        with self.changed:
            if state != self.state:
                self.state = state
                self.version += 1
                self.changed.notify_all()


# Reads a log by offset while its keeper writes it and drops what is too old (`local.output.Log`).

MOST = 1 << 20  # bytes in one piece


class Tail:
    """One log in its folder. Offsets count all bytes that were ever written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def end(self) -> int:
        """How many bytes have been written."""
        return self._piece(0, 0)[0]

    def read(self, offset: int) -> tuple[int, bytes]:
        """What follows that offset, and the offset behind it; older bytes that are gone are passed over."""
        end, data = self._piece(offset, MOST)
        return (end, data) if data else (offset, b"")

    def _piece(self, offset: int, count: int) -> tuple[int, bytes]:
        kept = KeptOutput(self.folder)
        try:
            data = kept.read(offset, count)
            return (max(offset, kept.first) + len(data) if count else kept.size), data
        finally:
            kept.close()


# The keeper of a gang on several nodes: an actor on the first of them, which has an actor with `NodeAgent` on each of
# the others.
#
# These belong to it: Ray ends them when it ends. A gang runs whole or not at all: where one part fails or is lost,
# the others are ended.

_WAIT = 10.0  # seconds after which a part is asked again though nothing is new
_ENDS_ALL = ("failed", "stopped")


class GangPart(Protocol):
    """One node's part of the gang."""

    def order(self, order: Values) -> None: ...

    def news(self, seen: int, offset: int, wait: float) -> KeeperNews: ...

    def dismiss(self) -> None: ...


class SpreadGang(NodeAgent):
    """All parts as one: it is asked and answers as a gang on one node does."""

    _parts: list[GangPart]

    @abstractmethod
    def far(self, name: str, order: Values, bundle: int) -> GangPart:
        """A part on another node, in that bundle of the gang's placement group."""

    def _begin(self, order: Values) -> None:
        self._log = Log(str(self.folder / "log"), int(order.get("log_bytes", 64 << 20)))
        self._asked_stop = self._ended_all = False
        self._order = dict(order)
        own = NodeAgent(f"{self.name}.0", self._part(order, 0), self.address)
        self._parts = [own, *(self.far(f"{self.name}.{k}", self._part(order, k), k) for k in range(1, len(order["parts"])))]
        self._states: list[Values] = [{} for _ in self._parts]
        for number in range(len(self._parts)):
            threading.Thread(target=self._follow, args=(number,), name=f"gantline-part-{number}", daemon=True).start()

    def _obey(self, order: Values) -> None:
        self._order = dict(order)
        self._asked_stop |= order.get("want") == "stop"
        for number, part in enumerate(self._parts):
            part.order(self._part(order, number))

    def dismiss(self) -> None:
        for part in self._parts:
            part.dismiss()
        super().dismiss()

    def _part(self, order: Values, number: int) -> Values:
        """The order for one part: its ranks, and where all of them meet."""
        sizes = order["parts"]
        first = sum(sizes[:number])
        meet = {"MASTER_ADDR": self.address, "MASTER_PORT": str(self.port)}
        return {
            **order,
            "node": order["nodes"][number],
            "ranks": order["ranks"][first : first + sizes[number]],
            "first_rank": first,
            "meet": meet,
        }

    def _follow(self, number: int) -> None:
        """Collect state and output of one part until it is over."""
        part, seen, offset, over = self._parts[number], -1, 0, False
        while True:
            try:
                news = part.news(seen, offset, 0.0 if over else _WAIT)
            except Exception as error:  # Ray has many words for an actor that is gone
                news = KeeperNews(
                    seen + 1, {"phase": "over", "cause": "failed", "exit": None, "fault": "?", "why": _why(error)}, offset, b""
                )
            seen, offset = news.version, news.offset
            with self.changed:
                self._log.write(news.output)
                over = news.state.get("phase") == "over"
                if over and news.output:
                    continue  # there may be more
                self._states[number] = news.state
                if over and news.state.get("cause") in _ENDS_ALL and not self._asked_stop and not self._ended_all:
                    self._ended_all = True
                    self._end_others(number)
                self._see(combined(self._states, self._asked_stop))
            if over:
                return

    def _end_others(self, number: int) -> None:
        for other, part in enumerate(self._parts):
            if other != number:
                order = {**self._part(self._order, other), "want": "stop", "grace": 0.0, "serial": self.serial + 0.5}
                part.order(order)


def _why(error: Exception) -> str:
    return f"a node's part of the gang was lost: {str(error).splitlines()[0]}"
