"""A service as large as the dashboard must bear, without a scheduler: 1,000 nodes of eight devices and 10,000 jobs on a board.

So the browser's side can be measured and pictured without 8,000 devices.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

import gantline.live.dashboard
from gantline.live.scheduler.view import DeviceView, JobView, QueueNow, View
from gantline.live.service.board_stream import Audience, frame
from gantline.live.service.guard import POLICY, TYPES
from gantline.live.service.live_board import COLUMNS, LiveBoard

STATIC = Path(gantline.live.dashboard.__file__).parent / "static"
USERS = ("ann", "bob", "chen", "dora", "emeka", "fatima", "goran", "hana", "ines", "jun")
QUEUES = ("research/nlp", "research/vision", "product", "platform")
SIZES = (1, 1, 1, 2, 4, 8, 8, 16)


class LargeCluster:
    """Jobs on devices; a step ends some of those that run, starts those that have waited longest, and takes new ones in."""

    def __init__(self, nodes: int = 1000, jobs: int = 10_000, seed: int = 7) -> None:
        self.random, self.number, self.now = random.Random(seed), 0, time.time()
        cordoned, reserved = self.random.sample(range(nodes), 12), self.random.sample(range(nodes), 6)
        self.devices = [
            DeviceView(
                f"n{node:04d}:{k}",
                "h100" if node % 3 else "a100",
                f"n{node:04d}",
                node not in cordoned,
                (),
                ("maintenance",) * (node in reserved and k < 4),
            )
            for node in range(nodes)
            for k in range(8)
        ]
        self.jobs: dict[str, JobView] = {}
        self.queue: list[str] = []
        self.places: dict[str, list[int]] = {}
        for _ in range(jobs):
            self.submit(self.now - self.random.uniform(0, 90_000))
        self.start_waiting()

    def view(self) -> View:
        waiting = QueueNow(waiting=np.array([self.jobs[id].row for id in self.queue]))
        return View(self.now, "fifo", {}, dict(self.jobs), tuple(self.devices), standing=waiting)

    def submit(self, at: float) -> None:
        self.number += 1
        id, gpus = str(self.number), self.random.choice(SIZES)
        name = f"train-{self.random.choice(('bert', 'vit', 'llama', 'unet'))}-{self.number % 97}"
        user, queue = self.random.choices(USERS, range(10, 0, -1))[0], self.random.choice(QUEUES)
        zeros: dict[str, Any] = dict.fromkeys(("priority", "epoch", "restarts", "failures", "service", "work"), 0)
        blanks: dict[str, Any] = dict.fromkeys(("started", "finished", "exit_code"))
        nothing: dict[str, Any] = dict.fromkeys(("devices", "held", "lines"), ())
        self.jobs[id] = JobView(
            id, name, user, queue, "pending", "no-room", "not enough free devices", gpus, gpus, gpus,
            submitted=at, estimate=7200.0, array="", progress={}, row=self.number, **zeros, **blanks, **nothing,
        )  # fmt: skip
        self.queue.append(id)

    def start_waiting(self) -> None:
        free = [at for at, device in enumerate(self.devices) if device.up and not device.jobs and not device.windows]
        while self.jobs[id := self.queue[0]].gpus <= len(free):
            gpus = self.jobs[id].gpus
            self.places[id], free = free[:gpus], free[gpus:]
            names = tuple(self.devices[at].name for at in self.places[id])
            begun = {"state": "running", "reason": "", "why": "", "devices": names, "started": self.now, "epoch": 1}
            self.jobs[id] = replace(self.jobs[id], **begun, progress={"done": self.random.randrange(1000), "total": 1000})
            self.occupy(self.queue.pop(0), id)

    def occupy(self, id: str, *jobs: str) -> None:
        for at in self.places[id]:
            self.devices[at] = replace(self.devices[at], jobs=jobs)

    def end(self, id: str) -> None:
        self.occupy(id)
        del self.places[id], self.jobs[id]

    def step(self, ends: int = 10) -> None:
        """So many jobs end and as many come; a few say how far they are."""
        self.now = time.time()
        for _ in range(ends):
            self.end(self.random.choice([*self.places]))
            self.submit(self.now)
            self.start_waiting()
            for id in self.random.sample([*self.places], 3):
                done = min(1000, self.jobs[id].progress["done"] + 1)
                self.jobs[id] = replace(self.jobs[id], progress={"done": done, "total": 1000})

    def explain(self, id: str) -> dict[str, Any]:
        job, now = self.jobs[id], time.time()
        told: dict[str, Any] = {"job": id, "state": job.state, "since": 0}
        if job.state != "pending":
            return told | {"lines": [f"{id} is running on {len(job.devices)} devices"], "forecast": None}
        place, free = self.queue.index(id), sum(device.up and not device.jobs for device in self.devices)
        runs, waits = [*self.places][:5], self.queue[:place][:5]
        ahead = [{"job": one, "gpus": self.jobs[one].gpus, "holds": True, "ends_in": 600.0 * n} for n, one in enumerate(runs, 1)]
        ahead += [{"job": one, "gpus": self.jobs[one].gpus, "holds": False, "ends_in": None} for one in waits]
        why = f"{id} waits: not enough free devices: needs {job.gpus} devices, {free} of {len(self.devices)} are free"
        change = {"what": "priority", "value": 1.0, "sentence": "with priority 1 it would start now (it has 0)"}
        times = {"starts_at_p50": 2400, "starts_at_p90": 4100, "ends_at_p50": 9700, "ends_at_p90": 14_000}
        forecast = {"status": "ready", "changes": [change], **{name: now + after for name, after in times.items()}}
        places = {"position": place + 1, "waiting": len(self.queue), "ranked": True, "ahead_waiting": place, "ahead": ahead}
        return told | places | {"lines": [why], "forecast": forecast}


class LargeService:
    """Serves a cluster on loopback; `pace` seconds lie between two of the `updates` that are sent once they are let go."""

    def __init__(self, cluster: LargeCluster, pace: float, updates: int) -> None:
        self.cluster, self.pace, self.updates = cluster, pace, updates
        self.board = LiveBoard(cluster.view, lambda at: at)
        self.audience = Audience(self.board, None)
        self.go, self.over = threading.Event(), threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.over.set()
        self.go.set()
        self.server.shutdown()
        self.server.server_close()

    def beats(self, until: threading.Event) -> Iterator[bytes]:
        yield frame("beat", {"now": time.time(), "version": ""})
        while not until.wait(2.0):
            yield frame("beat", {"now": time.time(), "version": ""})

    def frames(self) -> Iterator[bytes]:
        """One stream: beats, updates as soon as they are let go, beats."""
        yield from self.beats(self.go)
        for _ in range(self.updates):
            before = self.board.number
            self.cluster.step()
            self.board.look()
            yield from map(self.audience.frame, self.board.since(before))
            time.sleep(self.pace)
        yield from self.beats(self.over)

    def answer(self, path: str) -> Any:
        _, _, kind, *parts = path.split("/")
        if kind == "me":
            may = ["submit", "act", "change_job", "change_nodes"]
            return {"user": "ann", "role": "operator", "expires": None, "kind": "live", "may": may}
        if kind != "jobs":
            return None
        if parts[-1] == "explain":
            return self.cluster.explain(parts[0])
        row = dict(zip(COLUMNS, self.board.rows[int(parts[0])], strict=True))
        states = [{"time": row["started"], "event": "state", "state": "running", "epoch": 1, "devices": []}] if row["started"] else []
        return {**row, "devices": [], "spec": {}, "history": states, "lines": [], "progress": {}, "labels": {}}

    def handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = urlsplit(self.path).path
                if path == "/v1/stream":
                    self.say("text/event-stream")
                    try:
                        for part in service.frames():
                            self.wfile.write(part)
                    except (BrokenPipeError, ConnectionResetError):
                        return
                elif path == "/v1/board":
                    self.say("application/json", service.audience.whole()[1], encoding="gzip")
                elif path.startswith("/v1/"):
                    found = service.answer(path)
                    body = found or {"error": {"what": "no such route"}}
                    self.say("application/json", json.dumps(body).encode(), 200 if found else 404)
                else:
                    file = STATIC / (path.removeprefix("/dashboard/").strip("/") or "index.html")
                    self.say(TYPES[file.suffix], file.read_bytes())

            def say(self, kind: str, body: bytes | None = None, status: int = 200, encoding: str = "identity") -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-encoding", encoding)
                self.send_header("content-security-policy", POLICY)
                if body is not None:
                    self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        return Handler
