"""A service as large as the dashboard must bear, made of nothing but its answers: 1,000 nodes of eight devices and 10,000 jobs.

It speaks the board's own language (`docs/dashboard.md`), so that the browser's side can be measured and pictured without 8,000 devices.
"""

from __future__ import annotations

import gzip
import json
import random
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import gantline.live.dashboard

STATIC = Path(gantline.live.dashboard.__file__).parent / "static"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json"}
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
COLUMNS = (
    *("key", "id", "name", "user", "queue", "state", "reason", "why", "gpus", "min_gpus", "max_gpus", "held", "priority", "submitted"),
    *("started", "ended", "restarts", "resizes", "failures", "exit_code", "array", "done", "total", "throughput", "loss", "estimate"),
    *("work", "epoch"),
)
USERS = ("ann", "bob", "chen", "dora", "emeka", "fatima", "goran", "hana", "ines", "jun")
QUEUES = ("research/nlp", "research/vision", "product", "platform")
SIZES = (1, 1, 1, 2, 4, 8, 8, 16)


class LargeCluster:
    """Jobs on devices; a step ends some of those that run, starts those that have waited longest, and takes new ones in."""

    def __init__(self, nodes: int = 1000, jobs: int = 10_000, seed: int = 7) -> None:
        self.random, self.nodes, self.number = random.Random(seed), nodes, 0
        self.devices: list[list[int]] = [[] for _ in range(nodes * 8)]
        self.states = ["u"] * len(self.devices)
        for node in self.random.sample(range(nodes), 12):
            self.states[node * 8 : node * 8 + 8] = ["c"] * 8
        for node in self.random.sample(range(nodes), 6):
            self.states[node * 8 : node * 8 + 4] = ["r"] * 4
        self.jobs: dict[int, dict[str, Any]] = {}
        self.queue: list[int] = []
        self.places: dict[int, list[int]] = {}
        self.key = 0
        self.now = time.time()
        self.forget_changes()
        for _ in range(jobs):
            self.submit(self.now - self.random.uniform(0, 90_000))
        self.start_waiting()
        self.forget_changes()

    def forget_changes(self) -> None:
        self.changed: set[int] = set()
        self.touched: set[int] = set()
        self.gone: list[int] = []
        self.dropped: list[int] = []
        self.added: list[list[int]] = []

    def submit(self, at: float) -> int:
        self.key += 1
        gpus = self.random.choice(SIZES)
        blank = dict.fromkeys(COLUMNS)
        self.jobs[self.key] = blank | {
            "key": self.key,
            "id": str(self.key),
            "name": f"train-{self.random.choice(('bert', 'vit', 'llama', 'unet'))}-{self.key % 97}",
            "user": self.random.choices(USERS, range(10, 0, -1))[0],
            "queue": self.random.choice(QUEUES),
            "state": "pending",
            "reason": "no-room",
            "why": "not enough free devices",
            "gpus": gpus,
            "min_gpus": gpus,
            "max_gpus": gpus,
            "held": 0,
            "priority": 0,
            "submitted": at,
            "restarts": 0,
            "resizes": 0,
            "failures": 0,
            "array": "",
            "estimate": 7200.0,
            "work": 0.0,
            "epoch": 0,
        }
        self.added.append([len(self.queue), self.key])
        self.queue.append(self.key)
        self.changed.add(self.key)
        return self.key

    def start_waiting(self) -> None:
        free = [at for at, keys in enumerate(self.devices) if not keys and self.states[at] == "u"]
        for key in [*self.queue]:
            job = self.jobs[key]
            if job["gpus"] > len(free):
                break
            mine, free = free[: job["gpus"]], free[job["gpus"] :]
            job |= {"state": "running", "reason": "", "why": "", "held": len(mine), "started": self.now, "epoch": 1}
            job |= {"done": self.random.randrange(1000), "total": 1000}
            self.places[key] = mine
            for at in mine:
                self.devices[at] = [key]
            self.touched.update(mine)
            self.queue.remove(key)
            self.dropped.append(key)
            self.changed.add(key)

    def end(self, key: int) -> None:
        for at in self.places.pop(key):
            self.devices[at] = []
            self.touched.add(at)
        del self.jobs[key]
        self.gone.append(key)
        self.changed.discard(key)

    def step(self, changes: int = 200) -> dict[str, Any]:
        """The differences of one update, in which about so many jobs and devices change."""
        self.now = time.time()
        before = self.version
        self.forget_changes()
        while len(self.changed) + len(self.touched) + len(self.gone) < changes:
            self.end(self.random.choice([*self.places]))
            self.submit(self.now)
            self.start_waiting()
            for key in self.random.sample([*self.places], 3):
                self.jobs[key]["done"] = min(1000, self.jobs[key]["done"] + 1)
                self.changed.add(key)
        self.number += 1
        return {
            "version": self.version,
            "from": before,
            "now": self.now,
            "head": self.head(),
            "gone": self.gone,
            "jobs": [[self.jobs[key][name] for name in COLUMNS] for key in sorted(self.changed)],
            "queue": {"drop": [key for key in self.dropped if key not in {added for _, added in self.added}], "all": self.queue}
            if {key for _, key in self.added} & {*self.dropped}
            else {"drop": self.dropped, "add": [[len(self.queue) - len(self.added) + n, key] for n, (_, key) in enumerate(self.added)]},
            "devices": [[at, self.states[at], self.devices[at]] for at in sorted(self.touched)],
        }

    @property
    def version(self) -> str:
        return f"large.{self.number}"

    def head(self) -> dict[str, Any]:
        busy, oldest = sum(bool(keys) for keys in self.devices), min((self.jobs[key]["submitted"] for key in self.queue), default=None)
        return {
            "policy": "fifo",
            "settings": {},
            "in_charge": "",
            "deciding": True,
            "devices": len(self.devices),
            "busy": busy,
            "cordoned": self.states.count("c"),
            "running": len(self.places),
            "waiting": len(self.queue),
            "held": 0,
            "oldest": oldest,
            "stuck": 0,
        }

    def board(self) -> dict[str, Any]:
        jobs = [*self.jobs.values()]
        return {
            "version": self.version,
            "now": time.time(),
            "head": self.head(),
            "columns": COLUMNS,
            "queue": self.queue,
            "jobs": {name: [job[name] for job in jobs] for name in COLUMNS},
            "nodes": {
                "name": [f"n{at:04d}" for at in range(self.nodes)],
                "type": ["h100" if at % 3 else "a100" for at in range(self.nodes)],
                "first": [8 * at for at in range(self.nodes)],
                "count": [8] * self.nodes,
            },
            "devices": {"state": "".join(self.states), "jobs": self.devices},
        }

    def record(self, key: int) -> dict[str, Any]:
        job = self.jobs[key]
        states = [{"time": job["started"], "event": "state", "state": "running", "epoch": 1, "devices": []}] if job["started"] else []
        return {**job, "devices": [], "spec": {}, "history": states, "lines": [], "progress": {}, "labels": {}}

    def explain(self, key: int) -> dict[str, Any]:
        job, now = self.jobs[key], time.time()
        if job["state"] != "pending":
            return {
                "job": job["id"],
                "state": job["state"],
                "lines": [f"{job['id']} is running on {job['held']} devices"],
                "forecast": None,
                "since": 0,
            }
        place, free = self.queue.index(key), sum(not keys and state == "u" for keys, state in zip(self.devices, self.states, strict=True))
        holders = [
            {"job": self.jobs[one]["id"], "gpus": self.jobs[one]["gpus"], "holds": True, "ends_in": 600.0 * n}
            for n, one in enumerate([*self.places][:5], 1)
        ]
        ahead = [
            {"job": self.jobs[one]["id"], "gpus": self.jobs[one]["gpus"], "holds": False, "ends_in": None} for one in self.queue[:place][:5]
        ]
        why = f"{job['id']} waits: not enough free devices: needs {job['gpus']} devices, {free} of {len(self.devices)} are free"
        change = {"what": "priority", "value": 1.0, "sentence": "with priority 1 it would start now (it has 0)"}
        forecast = {
            "status": "ready",
            "starts_at_p50": now + 2400,
            "starts_at_p90": now + 4100,
            "ends_at_p50": now + 9700,
            "ends_at_p90": now + 14_000,
        }
        return {
            "job": job["id"],
            "state": "pending",
            "position": place + 1,
            "waiting": len(self.queue),
            "ranked": True,
            "ahead_waiting": place,
            "ahead": [*holders, *ahead],
            "lines": [why],
            "since": 0,
            "forecast": {**forecast, "changes": [change]},
        }


class LargeService:
    """Serves a cluster on loopback; `pace` seconds lie between two updates, and `updates` of them are sent (None: no end)."""

    def __init__(self, cluster: LargeCluster, pace: float = 0.5, updates: int | None = None, changes: int = 200) -> None:
        self.cluster, self.pace, self.updates, self.changes = cluster, pace, updates, changes
        self.go = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.updates = 0
        self.go.set()
        self.server.shutdown()
        self.server.server_close()

    def frames(self) -> Iterator[bytes]:
        """One stream: a beat at once, then updates as soon as they are let go."""
        yield b'event: beat\ndata: {"now": %d, "version": ""}\n\n' % time.time()
        while not self.go.wait(4.0):
            yield b'event: beat\ndata: {"now": %d, "version": ""}\n\n' % time.time()
        sent = 0
        while self.updates is None or sent < self.updates:
            yield b"event: changes\ndata: " + json.dumps(self.cluster.step(self.changes)).encode() + b"\n\n"
            sent += 1
            time.sleep(self.pace)
        while self.updates:
            yield b'event: beat\ndata: {"now": %d, "version": ""}\n\n' % time.time()
            time.sleep(2.0)

    def answer(self, path: str) -> Any:
        cluster, parts = self.cluster, path.strip("/").split("/")
        if path == "/v1/me":
            return {
                "user": "ann",
                "role": "operator",
                "expires": None,
                "kind": "live",
                "may": ["submit", "act", "change_job", "change_nodes"],
            }
        if path == "/v1/board":
            return cluster.board()
        if parts[:2] == ["v1", "jobs"]:
            return cluster.explain(int(parts[2])) if parts[-1] == "explain" else cluster.record(int(parts[2]))
        return None

    def handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = urlsplit(self.path).path
                if path == "/v1/stream":
                    self.send_response(200)
                    self.send_header("content-type", "text/event-stream")
                    self.end_headers()
                    try:
                        for frame in service.frames():
                            self.wfile.write(frame)
                            self.wfile.flush()
                    except (BrokenPipeError, ConnectionResetError):
                        return
                elif path.startswith("/v1/"):
                    found = service.answer(path)
                    self.say(
                        200 if found is not None else 404,
                        json.dumps(found or {"error": {"what": "no such route"}}).encode(),
                        "application/json",
                    )
                else:
                    file = STATIC / (path.removeprefix("/dashboard/").strip("/") or "index.html")
                    self.say(200, file.read_bytes(), TYPES[file.suffix])

            def say(self, status: int, body: bytes, kind: str) -> None:
                self.send_response(status)
                packed = gzip.compress(body, 1)
                self.send_header("content-type", kind)
                self.send_header("content-encoding", "gzip")
                self.send_header("content-security-policy", CSP)
                self.send_header("content-length", str(len(packed)))
                self.end_headers()
                self.wfile.write(packed)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        return Handler
