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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gantline.live.job_environment import free_port
from gantline.live.local.environment import handed_on
from gantline.live.local.files import read_json, started_at, write_json
from gantline.live.local.moments import stamp
from gantline.live.ray.tail import Tail
from gantline.live.ray.tethered import begin_keeper

if TYPE_CHECKING:
    from gantline.live.local.files import Values

_LOOK = 0.05  # seconds between looks at what the keeper has written
_OUTPUT = 0.5  # seconds for which output is collected before it is told
_VISIBLE = "CUDA_VISIBLE_DEVICES"


class KeeperNews(NamedTuple):
    """What has become of a keeper since it was last asked."""

    version: int  # of the state
    state: Values
    offset: int  # behind the output that comes with it
    output: bytes


class Hands:
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
