"""The board of a large cluster: what the service spends on the whole board, on an update, and on each client that listens.

    python -m benchmarks board [--jobs 10000] [--nodes 1000] [--changes 200] [--clients 20] [--updates 20]

No scheduler runs: views of 10,000 jobs on 8,000 devices follow one another, twice a second, each with so many changes, and the real
application serves them over HTTP. Every running job has a new view each time, as in a live service, in which it has run a little longer.
Told are CPU milliseconds of the serving process: the first board for one role, the same board again, an update for one client, and for
each of all clients, operators and as many different users; and how large board and updates are.
"""

from __future__ import annotations

import argparse
import multiprocessing
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import uvicorn

from gantline.live.scheduler.view import DeviceView, JobView, QueueNow, View
from gantline.live.service import live_board as boards
from gantline.live.service.access import Caller, Role
from gantline.live.service.application import LOOPBACK, assembled
from gantline.live.service.board_stream import Audiences, Pump
from gantline.live.service.live_board import LiveBoard
from gantline.live.service.routes import history as routes

PER_NODE = 8


class Crowd:
    """A cluster whose views follow one another."""

    def __init__(self, jobs: int, nodes: int, changes: int, users: int) -> None:
        self.changes, self.users = changes, users
        self.devices = [
            DeviceView(f"n{k // PER_NODE}:{k % PER_NODE}", "h100", f"n{k // PER_NODE}", True, ()) for k in range(nodes * PER_NODE)
        ]
        self.jobs: dict[str, JobView] = {}
        self.free = list(range(len(self.devices)))
        self.running: list[str] = []
        self.waiting: list[int] = []
        for _ in range(jobs):
            self._submit()
        self._start(len(self.free) // 4)
        self.now = 0.0
        self.view = self._made()

    def _submit(self) -> None:
        id = str(len(self.jobs))
        self.jobs[id] = JobView(
            id, f"train-{id}", f"user{int(id) % self.users}", "research/nlp", "pending", "resources", "not enough free devices",
            4, 4, 4, (), 0.0, float(id), None, None, None, 0, 0, 0, 0.0, 0.0, 3600.0, "", (), (),
            {"done": 0.0, "total": 100.0}, row=int(id),
        )  # fmt: skip
        self.waiting.append(int(id))

    def _start(self, count: int) -> None:
        for row in self.waiting[:count]:
            places, self.free = self.free[:4], self.free[4:]
            if len(places) < 4:
                break
            id = str(row)
            where = tuple(self.devices[place].name for place in places)
            self.jobs[id] = replace(self.jobs[id], state="running", reason="", why="", devices=where, started=1.0)
            for place in places:
                self.devices[place] = replace(self.devices[place], jobs=(id,))
            self.running.append(id)
        self.waiting = [row for row in self.waiting if self.jobs[str(row)].state == "pending"]

    def _end(self, count: int) -> None:
        for id in self.running[:count]:
            self.jobs[id] = replace(self.jobs[id], state="succeeded", finished=self.now, devices=(), exit_code=0)
            for place in [place for place, device in enumerate(self.devices) if id in device.jobs]:
                self.devices[place] = replace(self.devices[place], jobs=())
                self.free.append(place)
        self.running = self.running[count:]

    def step(self) -> None:
        """A quarter of the changes are ends, a quarter starts, a quarter submissions, the rest reports of progress."""
        self.now += 0.5
        part = self.changes // 4
        self._end(part)
        self._start(part)
        for _ in range(part):
            self._submit()
        for place, id in enumerate(self.running):
            done = {"done": self.now, "total": 100.0} if place < part else self.jobs[id].progress
            self.jobs[id] = replace(self.jobs[id], service=self.now, progress=done)
        self.view = self._made()

    def _made(self) -> View:
        ids = [str(k) for k in range(len(self.jobs))]
        standing = QueueNow(int(2 * self.now), np.array(self.waiting, dtype=np.int64), ids, True)
        return View(self.now, "fifo", {}, dict(self.jobs), tuple(self.devices), standing=standing)


class Names:
    """A token is the name of a user; 'operator' sees everything."""

    def caller(self, token: str) -> Caller | None:
        return Caller(token, Role.OPERATOR if token == "operator" else Role.VIEWER)

    def why_not(self, token: str) -> tuple[str, str]:
        return "", ""


def serve(arguments: argparse.Namespace, line: Connection) -> None:
    """The serving process; it does as it is told, one word at a time."""
    crowd = Crowd(arguments.jobs, arguments.nodes, arguments.changes, arguments.clients)
    board = LiveBoard(lambda: crowd.view, lambda at: at)
    access = Names()
    service = SimpleNamespace(access=access, audiences=Audiences(board), pump=Pump(board, lambda: False))
    config = uvicorn.Config(assembled(service, (routes.board_router,), LOOPBACK), port=0, log_config=None, lifespan="off")  # type: ignore[arg-type]
    server = uvicorn.Server(config)
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    line.send(server.servers[0].sockets[0].getsockname()[1])
    while (word := line.recv()) != "end":
        before = time.process_time()
        if word == "step":
            crowd.step()  # the scheduler's work, not the board's
            line.send(time.process_time() - before)
        elif word == "look":
            board._looked = -boards.PAUSE
            board.look()
            line.send(time.process_time() - before)
        else:
            line.send(time.process_time())


def main(arguments: argparse.Namespace) -> None:
    """Print one line for each question."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    from benchmarks.board import serve as by_name  # run as a program, this module is not called so, and a new process imports by name

    child = multiprocessing.get_context("spawn").Process(target=by_name, args=(arguments, theirs), daemon=True)
    child.start()

    def ask(word: str) -> float:
        ours.send(word)
        return float(ours.recv())

    url = f"http://127.0.0.1:{ours.recv()}"
    operator = {"Authorization": "Bearer operator"}
    get(url, operator)  # connections, compilers
    ask("step")
    time.sleep(2 * boards.PAUSE)
    first, found = spent(ask, lambda: get(url, operator))
    again, _ = spent(ask, lambda: [get(url, operator) for _ in range(10)])
    print(
        f"{arguments.jobs} jobs, {arguments.nodes * PER_NODE} devices: the board {1000 * first:.0f} CPU ms, "
        f"{100 * again:.1f} when it is kept; {len(found.content) / 1e6:.2f} MB, "
        f"{int(found.headers['content-length']) / 1e6:.2f} compressed",
        flush=True,
    )
    for count, users in ((1, False), (arguments.clients, False), (arguments.clients, True)):
        tell(arguments, url, ask, count, users)
    ours.send("end")
    child.join(10)


def get(url: str, headers: dict[str, str]) -> httpx.Response:
    return httpx.get(f"{url}/v1/board", headers=headers, trust_env=False, timeout=60.0)


def spent(ask: Callable[[str], float], call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of the serving process for a call, and what it gave."""
    before = ask("cpu")
    found = call()
    return ask("cpu") - before, found


def tell(arguments: argparse.Namespace, url: str, ask: Callable[[str], float], count: int, users: bool) -> None:
    """So many clients listen to so many updates; what an update costs beside the scheduler's own work."""
    sizes: list[int] = []
    ready, over = threading.Barrier(count + 1), threading.Event()

    def listen(number: int) -> None:
        headers = {"Authorization": f"Bearer {f'user{number}' if users else 'operator'}"}
        version = get(url, headers).json()["version"]
        with httpx.stream("GET", f"{url}/v1/stream", params={"after": version}, headers=headers, trust_env=False, timeout=60.0) as answer:
            ready.wait()
            for line in answer.iter_lines():
                if line.startswith("data: ") and '"from"' in line[:80]:
                    sizes.append(len(line))
                if over.is_set():
                    return

    threads = [threading.Thread(target=listen, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    ready.wait()
    time.sleep(1.0)
    before, own = ask("cpu"), 0.0
    for _ in range(arguments.updates):
        own += ask("step")
        time.sleep(2 * boards.PAUSE)
    cpu = (ask("cpu") - before - own) / arguments.updates
    over.set()
    ask("step")
    for thread in threads:
        thread.join(10)
    whose = "of different users" if users else "of operators"
    print(
        f"{count} client{'s' if count != 1 else ''} {whose}: {1000 * cpu:.1f} CPU ms an update with {arguments.changes} changes, "
        f"{1000 * cpu / count:.2f} a client; {np.mean(sizes) / 1e3:.0f} kB each, "
        f"{len(sizes) / count:.0f} of {arguments.updates} updates seen",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--updates", type=int, default=20)
    main(parser.parse_args())
