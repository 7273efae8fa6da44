"""Grants that hold until they are revoked, against leases that a central scheduler renews (Blox, EuroSys 2024, figure 19).

    python -m benchmarks leases [--gpus 8,32,64] [--rounds 5]

A service is started in a process of its own with so many CPU slots and as many running jobs of one slot. Gantline's grants are optimistic:
a job that keeps its devices is told nothing, and one that must go is asked to. Measured is what that costs the service in a round, and how
long it takes until a job that was revoked has stopped; and beside it the same round if every job asked the service whether its lease still
holds, as a central renewal has it: one request per job, over HTTP, one after the other as Blox' scheduler reads them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.live import cpu_seconds

from gantline.live.service.client import Client

ROUND = 2.0  # seconds of a round in which nothing changes


def main(arguments: argparse.Namespace) -> None:
    print("GPUs  renewed centrally, ms a round  (CPU ms)   until revoked, CPU ms a round  revoked after, ms   ratio")
    for gpus in (int(each) for each in arguments.gpus.split(",")):
        central, central_cpu, quiet_cpu, revoked = measured(gpus, arguments.rounds)
        ratio = central_cpu / max(quiet_cpu, 0.01)
        print(f"{gpus:4d}  {central:29.1f}  {central_cpu:9.1f}   {quiet_cpu:27.1f}  {revoked:17.1f}   {ratio:5.1f}", flush=True)


def measured(gpus: int, rounds: int) -> tuple[float, float, float, float]:
    """Milliseconds of a central renewal and of its CPU, of CPU in a round without one, and until a revoked job has gone."""
    with tempfile.TemporaryDirectory(prefix="gantline-leases-") as folder:
        home = Path(folder) / "home"
        command = [sys.executable, "-m", "gantline", "up", "--home", str(home), "--devices", f"cpu:{gpus}", "--policy", "fifo"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert server.stdout is not None
        server.stdout.readline()
        try:
            with Client(home=home, timeout=300.0) as client:
                client.submit(["sleep", "100000"], array=f"0-{gpus - 1}")
                while client.status()["jobs"].get("running", 0) < gpus:
                    time.sleep(0.2)
                names = [job["id"] for job in client.jobs(limit=100_000)]
                found = (*renewed(client, server.pid, names, rounds), quiet(server.pid, rounds), revoke(client, names[:rounds]))
                client.shutdown()
                return found
        finally:
            server.wait(300)


def renewed(client: Client, pid: int, names: list[str], rounds: int) -> tuple[float, float]:
    """Every job asks once a round."""
    used, began = cpu_seconds(pid), time.monotonic()
    for _ in range(rounds):
        for name in names:
            client.job(name)
    return 1000 * (time.monotonic() - began) / rounds, 1000 * (cpu_seconds(pid) - used) / rounds


def quiet(pid: int, rounds: int) -> float:
    """The service's own CPU in a round in which no grant changes."""
    used = cpu_seconds(pid)
    time.sleep(ROUND * rounds)
    return 1000 * (cpu_seconds(pid) - used) / rounds


def revoke(client: Client, names: list[str]) -> float:
    """From the request to the end of the process."""
    began = time.monotonic()
    for name in names:
        client.cancel(name)
        while client.job(name)["state"] in ("running", "stopping"):
            time.sleep(0.005)
    return 1000 * (time.monotonic() - began) / len(names)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", default="8,32,64")
    parser.add_argument("--rounds", type=int, default=5)
    main(parser.parse_args())
