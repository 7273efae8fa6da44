"""What an array costs the service: CPU seconds to take it in, for the next single submission, and to cancel a thousand of its jobs.

    python -m benchmarks arrays [--tasks 5000]

A service is started in a process of its own, in a temporary home, with two CPU slots that one job holds all the time, so that nothing of
the array starts. Each figure is the service's CPU time until it has been idle for a second.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.live import cpu_seconds

from gantline.live.service.client import Client


def main(tasks: int) -> None:
    with tempfile.TemporaryDirectory(prefix="gantline-arrays-") as folder:
        home = Path(folder) / "home"
        command = [sys.executable, "-m", "gantline", "up", "--home", str(home), "--devices", "cpu:2"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert server.stdout is not None
        server.stdout.readline()
        try:
            with Client(home=home, timeout=300.0) as client:
                measure(client, server.pid, tasks)
                client.shutdown()
        finally:
            server.wait(300)


def measure(client: Client, pid: int, tasks: int) -> None:
    def cost(what: str, act: Callable[[], Any]) -> Any:
        before = cpu_seconds(pid)
        found = act()
        client.status()
        time.sleep(1.0)
        print(f"{what}: {cpu_seconds(pid) - before:.2f} CPU seconds", flush=True)
        return found

    client.submit(["sleep", "100000"], resources={"gpus": 2})
    cost("idle for a second", lambda: None)
    ids = cost(f"an array of {tasks}", lambda: client.submit(["true"], array=f"0-{tasks - 1}", resources={"gpus": 2}))
    cost("the next single job", lambda: client.submit(["true"], resources={"gpus": 2}))
    cost("cancelling a thousand", lambda: client.cancel(*ids[:1000]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=5000)
    main(parser.parse_args().tasks)
