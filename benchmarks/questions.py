"""Questions about a long queue: what the immediate answer costs the service, and the shared forecast its worker.

    python -m benchmarks questions [--waiting 1000,10000] [--policy fifo] [--asked 50]

A service is started in a process of its own, with two CPU slots that one job holds; so many jobs wait, and one after the other is asked
about. Told are milliseconds of wall time and of the service's CPU time for an immediate `explain`, CPU seconds of the service and of
the process that answers until the shared forecast is there, with how many futures it rests on, and those for the changes of one job.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.live import cpu_seconds

from gantline.live.service.client import Client


def workers(pid: int) -> list[int]:
    """Those that answer questions."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    found = [int(one) for thread in threads for one in (thread / "children").read_text(encoding="ascii").split()]
    return [one for one in found if b"questions.worker" in Path(f"/proc/{one}/cmdline").read_bytes()]


def main() -> None:
    """Print one line for each length of the queue."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", default="1000,10000")
    parser.add_argument("--policy", default="fifo")
    parser.add_argument("--asked", type=int, default=50)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        up = [sys.executable, "-m", "gantline", "up", "--devices", "cpu:2", "--policy", given.policy, "--home", str(home), "--detach"]
        subprocess.run(up, check=True, stdout=subprocess.DEVNULL)
        try:
            with Client(home=home, timeout=600.0) as client:
                client.submit(["sleep", "100000"], resources={"gpus": 2}, estimate="1h")
                pid, there = int(client.status()["pid"]), 0
                for waiting in map(int, given.waiting.split(",")):
                    while there < waiting:
                        client.submit(["sleep", "1"], array=f"0-{min(1000, waiting - there) - 1}", estimate="10m")
                        there += min(1000, waiting - there)
                    client.snapshot()
                    tell(client, pid, waiting, given.asked)
        finally:
            subprocess.run([sys.executable, "-m", "gantline", "down", "--home", str(home)], check=False, stdout=subprocess.DEVNULL)


def tell(client: Client, pid: int, waiting: int, asked: int) -> None:
    """One line."""
    last = client.jobs(limit=1)[0]["id"]
    client.explain(last, wait=True)  # connections and compilers are warm
    before, began = cpu_seconds(pid), time.monotonic()
    for _ in range(asked):
        found = client.explain(last)
    wall, cpu = (time.monotonic() - began) / asked, (cpu_seconds(pid) - before) / asked
    client.cancel(client.jobs(state="pending", limit=2)[0]["id"])
    busy = {one: cpu_seconds(one) for one in workers(pid)}
    before = cpu_seconds(pid)
    forecast = client.forecast()
    spent = sum(cpu_seconds(one) - busy.get(one, 0.0) for one in workers(pid))
    busy = {one: cpu_seconds(one) for one in workers(pid)}
    client.explain(client.jobs(state="pending", limit=2)[0]["id"], wait=True)  # another job: the forecast is there, its changes are not
    changes = sum(cpu_seconds(one) - busy.get(one, 0.0) for one in workers(pid))
    print(
        f"{waiting} waiting: explain {1000 * wall:.1f} ms, {1000 * cpu:.1f} ms of CPU (number {found['position']}); forecast of "
        f"{len(forecast['jobs'])} jobs from {forecast['samples']} futures: {spent:.2f} CPU s there, {cpu_seconds(pid) - before:.2f} in "
        f"the service; which change would start a job: {changes:.2f} CPU s",
        flush=True,
    )


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
