"""A live service under load: submissions a second with a long queue, and how long decisions take as it grows.

    python -m benchmarks live [--queued 1000] [--rate 50] [--seconds 10] [--deep 10000] [--policy fifo]

A service is started in a process of its own, in a temporary home, with two CPU slots that one job holds all the time. First `queued` jobs
are put into the queue, as arrays; then single jobs are submitted over HTTP at `rate` a second by several clients, each answer awaited
(acknowledged means durable); then the queue is filled to `deep`. Told are rates, latencies in seconds, the service's CPU seconds, and what
a decision and a list of all jobs take in milliseconds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from gantline.live.service.client import Client

CLIENTS = 16


def cpu_seconds(pid: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def decisions(client: Client) -> tuple[float, float]:
    """How many there were, and how long they took together."""
    told = dict(line.rsplit(" ", 1) for line in client.metrics().splitlines() if not line.startswith("#"))
    return float(told["gantline_resched_duration_seconds_count"]), float(told["gantline_resched_duration_seconds_sum"])


def fill(client: Client, queued: int) -> None:
    """Put that many jobs into the queue, a thousand at a time."""
    for first in range(0, queued, 1000):
        client.submit(["sleep", "1"], array=f"0-{min(1000, queued - first) - 1}", resources={"gpus": 2})
    client.snapshot()  # is taken between two steps: all of that has been decided on


def submit_at(home: Path, rate: float, seconds: float) -> dict[str, float]:
    """Submit at that rate; what the clients saw."""
    latencies: list[float] = []
    lock, began = threading.Lock(), time.monotonic()
    total = int(rate * seconds)

    def one(number: int) -> None:
        with Client(home=home) as client:
            for place in range(number, total, CLIENTS):
                time.sleep(max(0.0, began + place / rate - time.monotonic()))
                at = time.monotonic()
                client.submit(["sleep", "1"], resources={"gpus": 2})
                with lock:
                    latencies.append(time.monotonic() - at)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    return {"rate": total / took, **{f"p{share}": float(np.percentile(latencies, share)) for share in (50, 90, 99)}}


def looked(client: Client, pid: int, times: int = 200) -> dict[str, float]:
    """Milliseconds per decision, of CPU per submission, and for a list of all jobs, while single jobs come in."""
    before, used = decisions(client), cpu_seconds(pid)
    for _ in range(times):
        client.submit(["sleep", "1"], resources={"gpus": 2})
    after, spent = decisions(client), cpu_seconds(pid) - used
    at = time.monotonic()
    client.jobs(limit=100_000)
    listed = time.monotonic() - at
    decision = (after[1] - before[1]) / max(after[0] - before[0], 1)
    return {"ms_per_decision": 1000 * decision, "cpu_ms_per_submission": 1000 * spent / times, "ms_per_listing": 1000 * listed}


def main(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="gantline-load-") as folder:
        home = Path(folder) / "home"
        command = [sys.executable, "-m", "gantline", "up", "--home", str(home), "--devices", "cpu:2", "--policy", arguments.policy]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert server.stdout is not None
        server.stdout.readline()
        try:
            with Client(home=home, timeout=300.0) as client:
                client.submit(["sleep", "100000"], resources={"gpus": 2})
                report(client, home, server.pid, arguments)
                client.shutdown()
        finally:
            server.wait(300)


def report(client: Client, home: Path, pid: int, arguments: argparse.Namespace) -> None:
    def tell(what: str, **values: Any) -> None:
        told = (f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}" for key, value in values.items())
        print(f"{what}: {', '.join(told)}", flush=True)

    fill(client, arguments.queued)
    used = cpu_seconds(pid)
    seen = submit_at(home, arguments.rate, arguments.seconds)
    tell(f"{arguments.rate:g} submissions a second with {arguments.queued} queued", **seen, cpu=cpu_seconds(pid) - used)
    tell("then", queued=client.status()["jobs"].get("pending", 0), **looked(client, pid))
    fill(client, max(0, arguments.deep - client.status()["jobs"].get("pending", 0)))
    tell("then", queued=client.status()["jobs"].get("pending", 0), **looked(client, pid))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--queued", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--deep", type=int, default=10_000)
    parser.add_argument("--policy", default="fifo")
    main(parser.parse_args())
