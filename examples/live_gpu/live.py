"""The jobs on real processes, by a scheduler in this process; every order that it gives is kept, so that it can be given again.

So are the first and the last step of every incarnation of a job: they tell an error of starts from one of speeds and one of ends.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import workload

from gantline.engine.executor import Order
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.scheduler.setup import Setup
from gantline.live.store.records import MemoryStore

ENDED = ("succeeded", "failed", "cancelled", "timeout", "rejected")
_LOOK = 0.2  # seconds between two looks at how they are


class Orders:
    """The orders of a scheduler, each once, however often it is repeated."""

    def __init__(self, runner: LocalRunner) -> None:
        self.given: dict[tuple[str, int, int], tuple[float, Order]] = {}
        self._send, runner.send = runner.send, self.send  # type: ignore[method-assign]

    def send(self, order: Order, now: float) -> None:
        self.given.setdefault((order.verb.value, order.row, order.epoch), (now, order))
        self._send(order, now)

    def rows(self, ids: list[str]) -> list[dict[str, Any]]:
        """As plain values: when, what, which job (by its place among those submitted), on which devices."""
        place = {id: at for at, id in enumerate(ids)}
        return [
            {"time": round(now, 4), "order": order.verb.value, "job": place[self.names[order.row]], "devices": list(order.devices)}
            for now, order in self.given.values()
        ]

    names: list[str]


@contextmanager
def scheduler(setup: Setup, devices: str, how: dict[str, Any], home: Path) -> Iterator[tuple[Scheduler, Orders]]:
    """For the length of a run; no process outlives it. `how` is what the runner takes beside the devices."""
    runner = LocalRunner(home, devices, **how)
    orders, found = Orders(runner), Scheduler(MemoryStore(), runner, setup=setup)
    found.start()
    try:
        found.rehearse()  # so that everything is compiled
        yield found, orders
    finally:
        found.stop(drain=True, timeout=30.0)


def incarnations(log: Path, offset: float) -> list[list[float]]:
    """What a job noted of its steps, by incarnation: when it noted the first and the last, and how many it had made at each."""
    found: list[list[float]] = []
    for line in log.read_text().splitlines() if log.exists() else ():
        now, made = line.split()
        if not found or int(made) < found[-1][3]:  # a process counts its own steps
            found.append([round(float(now) - offset, 4), int(made), 0.0, 0])
        found[-1][2:] = round(float(now) - offset, 4), int(made)
    return found


def run_policy(setup: Setup, devices: str, jobs: list[workload.Work], how: dict[str, Any], limit: float) -> dict[str, Any]:
    """One policy: submit as the jobs arrive, wait, and see."""
    home = Path(tempfile.mkdtemp(prefix="gantline-live-"))
    try:
        return _run(setup, devices, jobs, how, limit, home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _run(setup: Setup, devices: str, jobs: list[workload.Work], how: dict[str, Any], limit: float, home: Path) -> dict[str, Any]:
    logs = [home / f"steps{place}" for place in range(len(jobs))]
    with scheduler(setup, devices, how, home / "service") as (machine, orders):
        time.sleep(0.5)
        start, ids, began = time.monotonic(), [], []
        for job, log in zip(jobs, logs):
            time.sleep(max(0.0, start + job.arrival - time.monotonic()))
            began.append(time.monotonic())
            ids.append(machine.submit(replace(job, env={**job.env, "GANTLINE_TRIAL_LOG": str(log)}))[0])
        while not all(one.state in ENDED for one in machine.view().jobs.values()):
            if time.monotonic() - start > limit:
                left = [id for id, one in machine.view().jobs.items() if one.state not in ENDED]
                raise RuntimeError(f"{len(left)} jobs did not end within {limit:g} s: {', '.join(left[:5])}")
            time.sleep(_LOOK)
        shown = machine.view().jobs
        orders.names = list(machine.loop.state.tables.ids)
        offset = min(at - shown[id].to_json()["submitted"] for id, at in zip(ids, began))  # of this clock to the scheduler's
        rows = []
        for id, job, log in zip(ids, jobs, logs):
            one = shown[id].to_json()
            if one["state"] != "succeeded":
                raise RuntimeError(f"{job.kind} {one['state']}: {one['why']}")
            came, began, gone = one["submitted"], one["started"], one["finished"]
            times = {"arrival": round(came, 4), "jct": round(gone - came, 4), "wait": round(began - came, 4)}
            rows.append({"kind": job.kind, "gpus": job.gpus, **times, "epochs": one["epoch"], "steps": incarnations(log, offset)})
        return {"jobs": rows, "orders": orders.rows(ids)}
