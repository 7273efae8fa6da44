"""What a tiny job costs a live service from its submission to its end, with few jobs that have ended and with many.

    python -m benchmarks ended [--ended 30000] [--jobs 300] [--rows-only] [--record LABEL]

A service is started in a process of its own, in a temporary home with eight CPU slots, and `jobs` jobs (``true``) are submitted by four
clients, each answer awaited. Then its store is filled with `ended` jobs that have ended, it is started again, archives what is not kept at
hand, and does the same once more. Told are CPU milliseconds per job of the service and of all that starts and keeps jobs, jobs a second
from the first submission to the last end, the memory that each job leaves behind, and the ratio of both costs.

Before that, and alone with ``--rows-only``, the loop by itself: journals of tiny jobs are folded by loops whose tables have rows of 0,
30,000 and 100,000 jobs that have ended, in turns, so that whatever else the machine does falls on all of them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks._measure import History
from benchmarks.live import cpu_seconds

from gantline.core.inputs import Input, News, Report, Submit
from gantline.core.options import Option
from gantline.live.jobs.spec_file import spec_of
from gantline.live.runners.local.devices import declared
from gantline.live.scheduler.loop_thread import WallClock
from gantline.live.scheduler.setup import Setup, checkpoint_of, make_loop
from gantline.live.service.client import ENDED, Client
from gantline.live.store import SqlStore
from gantline.live.store.records import Entry
from gantline.live.wall_time import Live

CLIENTS = 4


class Server:
    """A service on a home, until it is told to go."""

    def __init__(self, home: Path) -> None:
        command = [sys.executable, "-m", "gantline", "up", "--home", str(home), "--devices", "cpu:8"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        self.process.stdout.readline()
        self.client = Client(home=home, timeout=300.0)

    def close(self) -> None:
        self.client.shutdown()
        self.client.close()
        self.process.wait(300)

    @property
    def memory(self) -> float:
        """Resident bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * 4096.0

    def keepers(self) -> float:
        """CPU seconds of the process that forks keepers, and of all that have ended."""
        told = [file.read_text().split() for file in Path(f"/proc/{self.process.pid}/task").glob("*/children")]
        return sum(cpu_seconds(int(pid)) + _of_children(int(pid)) for pids in told for pid in pids)


def _of_children(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) / 100.0


def tiny_jobs(server: Server, home: Path, jobs: int) -> dict[str, float]:
    """Run them; what each cost."""

    def submit(count: int) -> None:
        with Client(home=home, timeout=300.0) as client:
            for _ in range(count):
                client.submit(["true"], name="tiny")

    def left() -> int:
        return sum(count for state, count in server.client.status()["jobs"].items() if state not in ENDED)

    submit(20)
    while left():
        time.sleep(0.05)
    used, kept, memory, began = cpu_seconds(server.process.pid), server.keepers(), server.memory, time.monotonic()
    threads = [threading.Thread(target=submit, args=(jobs // CLIENTS,)) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while left():
        time.sleep(0.5)
    count, took = jobs // CLIENTS * CLIENTS, time.monotonic() - began
    return {
        "service": 1000 * (cpu_seconds(server.process.pid) - used) / count,
        "keepers": 1000 * (server.keepers() - kept) / count,
        "a_second": count / took,
        "kilobytes": (server.memory - memory) / count / 1000,
    }


def fill(home: Path, count: int) -> None:
    """So many jobs have ended, as a store would know them."""
    store = SqlStore.open(home / "gantline.sqlite")
    found = store.checkpoint()
    assert found is not None
    saved, first = found[1], int(found[1]["rows"]) + 1
    spec = spec_of({"name": "old", "run": ["true"]}).to_json()
    about: dict[str, Any] = {"spec": spec, "launch": {"command": ["true"]}, "asked": {"gpus": 1}, "user": "ann", "state": "succeeded"}
    for begin in range(first, first + count, 5000):
        entries = []
        for number in range(begin, min(begin + 5000, first + count)):
            times = {"submitted": float(number), "started": number + 0.1, "finished": number + 1.1, "served": 1.0, "ended_epoch": 1}
            entries.append(Entry("job", {"id": str(number), **about, **times, "exit_code": 0}))
            entries += [Entry("event", {"time": float(number), "job": str(number), "event": "state", "state": "running"})] * 4
        store.append(entries)
    store.append([Entry("checkpoint", {**saved, "rows": first + count})])
    store.close()


def loop_with(ended: int) -> Live:
    """A loop under FIFO whose tables have rows and options of so many jobs that have ended."""
    cluster, setup, clock = declared("cpu:8").cluster, Setup(), WallClock(0.0)
    saved = checkpoint_of(make_loop(setup, None, cluster, None, clock), setup, 0.0)
    loop = make_loop(setup, {**saved, "rows": ended}, cluster, None, clock)
    for _ in range(ended):
        loop.state.tables.options.append(Option(0, 1, 1.0))
    return loop


def in_the_loop(rows: tuple[int, ...], jobs: int = 1200, each: int = 100) -> dict[int, float]:
    """CPU milliseconds that a tiny job costs the loop, by how many have ended."""
    loops, used = {ended: loop_with(ended) for ended in rows}, dict.fromkeys(rows, 0.0)
    for begin in range(-each, jobs, each):  # the first ones compile
        for ended, loop in loops.items():
            script: list[tuple[float, Input]] = []
            for row in range(ended + begin + each, ended + begin + 2 * each):
                at = loop.state.now + 0.1 * (len(script) + 1)
                script.append((at, Submit(at, {"id": f"tiny-{row}", "gpus": 1, "user": "ann"})))
                script.append((at + 0.01, Report(News.STARTED, row, 1, at + 0.01, 0.0, (0,))))
                script.append((at + 0.02, Report(News.FINISHED, row, 1, at + 0.02)))
            before = time.process_time()
            loop.fold(script)
            used[ended] += time.process_time() - before if begin >= 0 else 0.0
    return {ended: 1000 * seconds / jobs for ended, seconds in used.items()}


def main(arguments: argparse.Namespace) -> None:
    history, found = History(arguments.record), []
    for ended, cost in in_the_loop((0, 30_000, 100_000)).items():
        before = history.add(f"tiny job in the loop, {ended} ended", cost / 1000)
        print(f"a tiny job in the loop with {ended} ended: {cost:.2f} ms {before}", flush=True)
    if arguments.rows_only:
        history.write()
        return
    with tempfile.TemporaryDirectory(prefix="gantline-ended-") as folder:
        home = Path(folder) / "home"
        for ended in (0, arguments.ended):
            server = Server(home)
            try:
                if ended:
                    server.close()
                    fill(home, ended)
                    server = Server(home)
                    while server.client.status()["archived"] < ended - 10_000:
                        time.sleep(1.0)
                    print(
                        f"archived {server.client.status()['archived']} jobs: {cpu_seconds(server.process.pid):.1f} CPU seconds", flush=True
                    )
                costs = tiny_jobs(server, home, arguments.jobs)
            finally:
                server.close()
            found.append(costs)
            told = ", ".join(f"{name} {value:.3g}" for name, value in costs.items())
            before = history.add(f"tiny live job, {ended} ended", (costs["service"] + costs["keepers"]) / 1000)
            print(f"a tiny job with {ended} ended: {told} {before}", flush=True)
    few, many = ((costs["service"] + costs["keepers"]) for costs in found)
    print(f"CPU per job with {arguments.ended} ended over that with none: {many / few:.2f}")
    history.write()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ended", type=int, default=30_000)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--rows-only", action="store_true")
    parser.add_argument("--record")
    main(parser.parse_args())
