"""One node's part of a gang: a task of its step, which is the keeper of the ranks on this node (`local.keeper`).

It differs from a keeper of the service's own machine in where orders come from and where state and output go to: the streams of the step
(`messages`). Slurm does not close these when `srun` is killed. So both sides give signs of life, and a part that has heard nothing for
longer than its lease ends its ranks.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import selectors
import shutil
import signal
import socket
import tempfile
import time

from gantline.live.host import Lease
from gantline.live.runners.local.files import write_json
from gantline.live.runners.local.keeper import Keeper
from gantline.live.runners.local.keeping import watch_over
from gantline.live.runners.local.output import Log
from gantline.live.runners.slurm.messages import BEAT, LEASE, WholeLines, in_short, send_news, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantline.live.runners.local.files import Values

_UNTIL_KILLED = 1e9  # seconds: Slurm itself ends what has not ended after its KillWait
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")


def main() -> None:
    """The program of a task."""
    node = os.environ["SLURMD_NODENAME"]
    step = f"{os.environ['SLURM_JOB_ID']}.{os.environ['SLURM_STEP_ID']}"
    send_news({"node": node, "step": step, "port": _free_port()})
    lines = WholeLines()
    order = _first_order(lines)
    if order is None:
        return
    folder = tempfile.mkdtemp(prefix="gantline-")
    try:
        _write(folder, order, node)
        watch_over(folder, lambda: PartKeeper(folder, node, lines).run())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _first_order(lines: WholeLines) -> Values | None:
    """The first order, once it has come; None: the gang does not begin."""
    while select.select([0], [], [], LEASE)[0] and (data := os.read(0, 65536)):
        whole = lines.add(data)
        for place, line in enumerate(whole):
            if order := json.loads(line).get("order"):
                lines.begun = b"".join(one + b"\n" for one in whole[place + 1 :]) + lines.begun
                return dict(order)
    return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _write(folder: str, order: Values, node: str) -> None:
    """The order for this node: its own ranks, and the devices that it is given here."""
    number = order["nodes"].index(node)
    first, count = sum(order["parts"][:number]), order["parts"][number]
    env = {**order["env"], **_visible(order["places"][number]), "GANTLINE_FOLDER": folder}
    here = {**order, "env": env, "ranks": [{**rank, **order["meet"]} for rank in order["ranks"][first : first + count]]}
    if len(order["nodes"]) > 1:
        here["first_rank"] = first
    with contextlib.suppress(OSError):
        os.makedirs(env["GANTLINE_CHECKPOINT"], mode=0o700, exist_ok=True)
    write_json(os.path.join(folder, "terms.json"), order.get("terms", {}), lasting=False)
    write_json(os.path.join(folder, "order.json"), here, lasting=False)


def _visible(places: Sequence[int]) -> dict[str, str]:
    """Of the devices that the allocation has here, as Slurm names them to a step, those that the gang has; none where it names none."""
    found = {}
    for name in _VISIBLE:
        if os.environ.get(name):
            named = os.environ[name].split(",")
            found[name] = ",".join(named[place] for place in places if place < len(named))
    return {_VISIBLE[0]: "", **found} if found else dict.fromkeys(_VISIBLE, "")


class Stream(Log):
    """Output that goes on to the keeper of the gang, which keeps it."""

    def __init__(self) -> None:
        self.lost = 0

    def write(self, data: bytes) -> None:
        self.lost += write(1, data)

    def close(self) -> int:
        return self.lost


class PartKeeper(Keeper):
    """Keeps the ranks of one node."""

    def __init__(self, folder: str, node: str, lines: WholeLines, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(folder)
        self.node, self.lines_in = node, lines
        self.lease = Lease(LEASE, clock)
        self.spoken = 0.0
        self.mark = -1
        self.ended_by_slurm = False

    def open_log(self) -> Log:
        return Stream()

    def run(self) -> int:
        self.selector.register(0, selectors.EVENT_READ, "orders")
        for line in self.lines_in.add(b""):
            self.receive(line)
        return super().run()

    def handle(self, number: int) -> None:
        """Slurm sends SIGTERM to all processes of a step when the allocation ends, some time before it kills them."""
        signal.signal(number, self._note_end if number == signal.SIGTERM else lambda *_: None)

    def _note_end(self, *_: object) -> None:
        self.ended_by_slurm = True

    # --- in -------------------------------------------------------------------------------------------------------------
    def read(self, pipe: int) -> bool:
        if pipe != 0:
            return super().read(pipe)
        data = os.read(0, 65536)
        for line in self.lines_in.add(data):
            self.receive(line)
        if not data:
            self.give_up()
        return False

    def receive(self, line: bytes) -> None:
        self.lease.renew()
        if (order := json.loads(line).get("order")) and not self.ended_by_slurm:
            _write(self.folder, order, self.node)

    def look(self) -> None:
        super().look()
        if self.ended_by_slurm and self.order.get("grace") != _UNTIL_KILLED:
            write_json(self.path("order.json"), {**self.order, "want": "stop", "grace": _UNTIL_KILLED}, lasting=False)
            super().look()

    def signal(self, number: int) -> None:
        """Signal the ranks; where Slurm ends them it has sent SIGTERM itself, and a second one would interrupt what saves."""
        if not (self.ended_by_slurm and number == signal.SIGTERM):
            super().signal(number)

    def reap(self) -> None:
        if self.ended_by_slurm and not self.asked_stop:  # ranks may be quicker: what they do then is no failure
            self.look()
        super().reap()

    # --- out ------------------------------------------------------------------------------------------------------------
    def write_state(self, **news: object) -> None:
        super().write_state(**news)
        self.speak()

    def speak(self) -> None:
        self.spoken = time.monotonic()
        send_news({"node": self.node, "state": in_short({**self.state, "mark": self.mark})})

    def count(self) -> None:
        super().count()
        now = time.monotonic()
        with contextlib.suppress(OSError):
            mark = os.stat(os.path.join(self.order["env"]["GANTLINE_CHECKPOINT"], "saved")).st_mtime_ns
            if mark != self.mark:
                self.mark, self.spoken = mark, 0.0
        if now > self.spoken + BEAT:
            self.speak()
        if self.lease.is_over:
            self.give_up()

    def give_up(self) -> None:
        """Nothing is heard of the gang any more."""
        if 0 in self.selector.get_map():
            self.selector.unregister(0)
        self.kill()

    def end(self) -> None:
        if 0 in self.selector.get_map():
            self.selector.unregister(0)
        super().end()
