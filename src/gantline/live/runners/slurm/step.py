"""Keeps one incarnation of a job: a step of the allocation, with a part on each of the gang's nodes (`part`).

A process of the service's machine that outlives the service, with the same folder as a keeper of one machine (`local.keeper`), so that the
service sees no difference. It runs `srun`, whose streams go between it and the parts (`messages`). A gang begins when all parts are there:
whole or not at all. Where one of them fails or falls silent, the others are ended.

While slurmctld is away no step can be made, and `srun` is tried again; what runs goes on, and can be stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time

from gantline.live.host import Lease
from gantline.live.runners.local.files import read_json, stamp
from gantline.live.runners.local.keeping import WAKE, Keeping, watch_over
from gantline.live.runners.local.output import Log
from gantline.live.runners.local.ranks import combined
from gantline.live.runners.slurm.messages import BEAT, LEASE, WholeLines, end_step, news_in, srun_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gantline.live.runners.local.files import Values

_TICK = 0.5  # seconds between checks of what no signal reports
_AGAIN = 1.0  # seconds before a step is asked for again while slurmctld is away
_START_LIMIT = 120.0  # seconds that Slurm has to start all parts
_LEAVE = 4.0  # seconds that srun has to end by itself, and after SIGTERM
_AWAY = (b"Unable to contact slurm controller", b"Connection refused", b"Socket timed out", b"Connection timed out", b"Zero Bytes were")


def keep(folder: str) -> int:
    """Keep the incarnation of that folder until it is over, with a process above that outlives its keeper."""
    return watch_over(folder, lambda: GangKeeper(folder).run())


class GangKeeper(Keeping):
    def __init__(self, folder: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(folder)
        self.clock = clock
        self.order = read_json(self.path("order.json")) or {}
        self.nodes: list[str] = list(self.order.get("nodes", ()))
        self.begun: dict[str, Values] = {}  # the first word of each part, by node
        self.states: dict[str, Values] = {node: {} for node in self.nodes}
        self.leases: dict[str, Lease] = {}  # of the parts that have been heard of, by node
        self.sent: Values = {}  # the newest order that the parts have
        self.ends_all = False
        self.ends_at_once = False
        self.asked_stop = False
        self.srun: subprocess.Popen[bytes] | None = None
        self.said: list[bytes] = []  # Slurm's own last lines
        self.news = WholeLines()
        self.spoken, self.tried, self.began = 0.0, 0.0, time.monotonic()
        self.leaving = 0.0  # since when srun has nothing more to do

    # --- life -----------------------------------------------------------------------------------------------------------
    def run(self) -> int:
        self.listen()
        self.log = Log(self.path("log"), self.order.get("log_bytes", 64 << 20))
        self.write_state()
        while not self.over():
            for key in self.wait(_TICK):
                self.read(key)
            self.look()
            self.send()
            self.judge()
            self.let_go()
        self.end()
        return 0

    def over(self) -> bool:
        """Whether nothing of the gang is left, and nothing more will come."""
        given_up = self.asked_stop or self.ends_all
        if self.srun is None:
            if not given_up and time.monotonic() > self.tried + _AGAIN:
                self.start()
            return given_up
        if self.srun.poll() is None:
            return False
        self.drain()
        if self.sent or given_up:
            return True
        self.srun = None  # nothing has begun: it is tried again, for a while, and for as long as slurmctld is away
        if any(sign in line for sign in _AWAY for line in self.said):
            self.began = time.monotonic()
        return False

    # --- the step -------------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Ask Slurm for a step; its parts say so when they are there."""
        self.tried, self.said, self.news, self.begun = time.monotonic(), [], WholeLines(), {}
        pipe = subprocess.PIPE
        self.srun = subprocess.Popen(
            self.order["srun"], stdin=pipe, stdout=pipe, stderr=pipe, env=srun_environment(), cwd="/", start_new_session=True, bufsize=0
        )
        assert self.srun.stdout is not None
        assert self.srun.stderr is not None
        for stream, data in ((self.srun.stdout, "output"), (self.srun.stderr, "news")):
            os.set_blocking(stream.fileno(), False)
            self.selector.register(stream, selectors.EVENT_READ, data)

    def read(self, key: selectors.SelectorKey) -> bool:
        """Whether there may be more."""
        try:
            data = os.read(key.fd, 65536)
        except BlockingIOError:
            return False
        if key.data == "output":
            self.log.write(data)
        else:
            for line in self.news.add(data):
                self.hear(line)
        if not data:
            self.selector.unregister(key.fileobj)
        return bool(data)

    def drain(self) -> None:
        """Read what is left of the streams of a srun that has ended, and close them."""
        assert self.srun is not None
        for key in list(self.selector.get_map().values()):
            if key.data != WAKE:
                while self.read(key):
                    pass
                if key.fd in self.selector.get_map():
                    self.selector.unregister(key.fileobj)
        for stream in (self.srun.stdin, self.srun.stdout, self.srun.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def hear(self, line: bytes) -> None:
        """One line of a part, or of Slurm."""
        news = news_in(line)
        if news is None:
            self.said = [*self.said, line.strip()][-20:]
            return
        node = news["node"]
        self.leases.setdefault(node, Lease(LEASE, self.clock)).renew()
        if "state" not in news:
            self.begun[node] = news
            self.write_state(step=news["step"])
        elif self.states[node].get("phase") != "over":
            self.states[node] = news["state"] | ({"ended": time.time()} if news["state"].get("phase") == "over" else {})
            self.spread()

    def spread(self) -> None:
        """What one part is may end the others, and is what the gang is."""
        ended = [state for state in self.states.values() if state.get("phase") == "over"]
        self.ends_all |= not self.asked_stop and any(state["cause"] != "finished" for state in ended)
        # a part that was stopped, though not by us, was stopped by Slurm, which has the others save, too
        self.ends_at_once |= self.ends_all and any(state["cause"] not in ("finished", "stopped") for state in ended)
        found = combined(list(self.states.values()), self.asked_stop)
        if found["phase"] == "over":
            return  # news_in when srun has ended, too
        first = stamp("started") if found["phase"] == "running" and "started" not in self.state else {}
        news = {**{name: found[name] for name in ("phase", "revision", "lost", "mark")}, **first}
        if news.items() - self.state.items():
            self.write_state(**news)

    # --- what shall be --------------------------------------------------------------------------------------------------
    def look(self) -> None:
        """Read the order as it is now."""
        order = read_json(self.path("order.json"))
        if order is not None:
            self.order = order
        self.asked_stop |= self.order.get("want") == "stop"
        for node in self.order.get("lost_nodes", ()):
            self.give_up(node, f"node {node} is lost")

    def send(self) -> None:
        """Tell the parts what shall be, and that the gang is there still."""
        if self.srun is None or self.leaving or len(self.begun) < len(self.nodes):
            return
        end = {"want": "stop", **({"grace": 0.0} if self.ends_at_once else {})} if self.ends_all else {}
        order = {**self.order, **end, "meet": self.meet()}
        if not self.sent and order["want"] == "stop":
            return
        if order != self.sent:
            self.sent = order
            self.write({"order": order})
        elif time.monotonic() > self.spoken + BEAT:
            self.write({})

    def meet(self) -> dict[str, str]:
        """Where the ranks find each other: on the first node, at a port that is free there."""
        return {"MASTER_ADDR": self.order["address"], "MASTER_PORT": str(self.begun[self.nodes[0]]["port"])}

    def write(self, message: Values) -> None:
        assert self.srun is not None
        assert self.srun.stdin is not None
        self.spoken = time.monotonic()
        with contextlib.suppress(OSError):  # srun has ended: that is seen elsewhere
            left = memoryview(json.dumps(message).encode() + b"\n")
            while left:
                left = left[os.write(self.srun.stdin.fileno(), left) :]

    # --- the end --------------------------------------------------------------------------------------------------------
    def judge(self) -> None:
        """Give up parts that are silent, and a gang that does not come together."""
        if self.sent:
            for node in self.nodes:
                if self.leases[node].is_over:
                    self.give_up(node, f"its part on node {node} has been silent for {LEASE:g} s")
        elif time.monotonic() > self.began + _START_LIMIT and not self.asked_stop:
            for node in self.nodes:
                if node not in self.begun:
                    self.give_up(node, f"Slurm did not start its part on node {node} within {_START_LIMIT:g} s{self.reason()}")

    def give_up(self, node: str, why: str) -> None:
        if node in self.states and self.states[node].get("phase") != "over":
            self.states[node] = {**self.states[node], "phase": "over", "cause": "failed", "exit": None, "fault": "?", "why": why}
            self.spread()

    def reason(self) -> str:
        """What srun has said about it."""
        found = (line.decode(errors="replace").removeprefix("srun: ") for line in reversed(self.said) if b"error" in line)
        return next((f" ({line.removeprefix('error: ')})" for line in found), "")

    def let_go(self) -> None:
        """Let srun end when it has nothing more to do: by itself, then by a signal which ends the step, then by one that ends only srun."""
        if self.srun is None or self.srun.poll() is not None:
            return
        done = all(state.get("phase") == "over" for state in self.states.values())
        never = not self.sent and (self.asked_stop or self.ends_all)
        if not self.leaving and (done or never):
            self.leaving = time.monotonic()
            assert self.srun.stdin is not None
            with contextlib.suppress(OSError):
                self.srun.stdin.close()
        late = time.monotonic() - self.leaving if self.leaving else 0.0
        if late > _LEAVE:
            self.srun.send_signal(signal.SIGKILL if late > 2 * _LEAVE else signal.SIGTERM)

    def end_rest(self) -> None:
        """Where srun has ended before its parts, by another's hand, they are news_in by Slurm."""
        lost = self.order.get("lost_nodes", ())
        left = [node for node in self.nodes if node not in lost and self.states[node].get("phase") != "over"]
        if left and self.state.get("step"):
            end_step(self.state["step"], LEASE)

    def end(self) -> None:
        """Srun has ended, or was never there."""
        if not self.sent and self.asked_stop:
            self.write_state(phase="over", cause="stopped", exit=None, forced=False, **stamp("ended"))
            return
        self.end_rest()
        for node in self.nodes:
            self.give_up(node, f"Slurm has ended its part on node {node}{self.reason()}")
        found = combined(list(self.states.values()), self.asked_stop)
        if found["cause"] == "stopped" and not self.asked_stop:
            found |= {"cause": "failed", "exit": None, "fault": "?", "why": "Slurm has ended its step"}
        if found["cause"] == "failed" and found.get("fault") and found.get("why"):
            self.log.write(f"gantline: {found['why']}\n".encode())
        found["lost"] = found.get("lost", 0) + self.log.close()
        self.write_state(**{**found, **stamp("ended")})
