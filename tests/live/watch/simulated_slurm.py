"""Recordings of a Slurm cluster that is simulated: what `squeue` and `sacct` would have shown of a queue, look by look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.live.watch.recordings import HEADS, NOW, recording

from gantline.simulator.simulate import simulate
from gantline.traces.trace import Trace

AGE_WEIGHT, MAX_AGE = 1000, 86_400
SETTINGS = {"age_weight": AGE_WEIGHT, "max_age": MAX_AGE, "depth": 200, "window": 3600.0}  # as the recordings say
GPUS, NODES = 12, 3
SHOWN_AFTER_END = 300  # seconds for which squeue goes on showing a job (MinJobAge)
SIZES, LIMITS = (1, 1, 1, 2, 2, 4, 4, 8), (300, 600, 1800)


@dataclass(frozen=True)
class Queue:
    """Jobs that arrive at a load (1: as much work as the devices do), after hours at another load that accounting remembers."""

    load: float
    seed: int
    hours: float = 1.0
    before: float = 8.0  # hours that pass before the first look
    load_before: float = 0.8
    every: float = 600.0  # seconds between looks
    accounting: bool = True

    def record(self, folder: Path) -> None:
        """Write the looks."""
        folder.mkdir(parents=True, exist_ok=True)
        jobs = self.jobs()
        for number in range(int(self.hours * 3600 / self.every) + 1):
            at = self.before * 3600 + number * self.every
            (folder / f"{int(at):08}.txt").write_text(shown(jobs, at, self.accounting), encoding="utf-8")

    def jobs(self) -> list[dict[str, Any]]:
        """All that come, with what became of them."""
        rng, rows, at = np.random.default_rng(self.seed), [], 0.0
        while at < (self.before + self.hours) * 3600:
            gpus, limit, share = int(rng.choice(SIZES)), int(rng.choice(LIMITS)), float(rng.beta(0.8, 1.6))
            row = {"job": str(len(rows) + 1), "arrival": round(at), "gpus": gpus, "nodes": -(-gpus // 4), "time_limit": limit}
            rows.append({**row, "duration": max(round(share * limit), 5), "priority": int(rng.choice((0, 0, 0, 0, 20)))})
            load = self.load if at >= self.before * 3600 else self.load_before
            at += rng.exponential(np.mean(SIZES) * np.mean(LIMITS) / 3.0 / (GPUS * load)) if load else np.inf
        run = simulate(Trace.from_records(rows), f"{NODES}x{GPUS // NODES}", "slurm", settings=SETTINGS, estimates="limit")
        held = {one["job"]: {key: one[key] for key in ("start", "end")} | {"hosts": one["nodes"]} for one in run.allocations.to_dicts()}
        return [{**row, **held[row["job"]]} for row in rows]


def shown(jobs: list[dict[str, Any]], at: float, accounting: bool) -> str:
    """What is seen of them at an instant of the simulation."""
    zero = NOW - 30 * 86_400
    lines = [_queued(job, at, zero) for job in jobs if job["arrival"] <= at < job["end"] + SHOWN_AFTER_END]
    head = "JobID|User|Partition|Submit|Start|ElapsedRaw|Timelimit|State|AllocTRES|ReqTRES|NNodes|Priority"
    past = "\n".join([head, *(_accounted(job, at, zero) for job in jobs if job["arrival"] <= at)])
    rest = {"time": f"{zero + int(at)} +0000", **({"past": past} if accounting else {})}
    return recording(lines, **rest)


def _queued(job: Mapping[str, Any], at: float, zero: int) -> str:
    waits = at < job["start"]
    state = "PENDING" if waits else "RUNNING" if at < job["end"] else "COMPLETED"
    row = {
        "JOBID": job["job"], "USER": "ann", "PARTITION": "main", "PRIORITY": _priority(job, at),
        "SUBMIT_TIME": str(zero + job["arrival"]), "NODES": str(job["nodes"]), "CPUS": "1", "TIME_LIMIT": _spelled(job["time_limit"]),
        "TASKS": "1", "TRES_ALLOC": "cpu=1,node=1,billing=1", "STATE": state, "REASON": "Priority" if waits else "None",
        "TRES_PER_NODE": f"gres:gpu:{job['gpus'] // job['nodes']}",
    }  # fmt: skip
    if not waits:
        row |= {"START_TIME": str(zero + int(job["start"])), "NODELIST": ",".join(f"node{node}" for node in job["hosts"])}
    if state == "COMPLETED":
        row["END_TIME"] = str(zero + int(job["end"]))
    return "|".join(row.get(head, "N/A") for head in HEADS) + "|"


def _accounted(job: Mapping[str, Any], at: float, zero: int) -> str:
    waits = at < job["start"]
    state = "PENDING" if waits else "RUNNING" if at < job["end"] else "COMPLETED"
    spent = 0 if waits else int(min(at, job["end"]) - job["start"])
    tres = f"cpu=1,gres/gpu={job['gpus']},node={job['nodes']}"
    cells = (
        job["job"], "ann", "main", str(zero + job["arrival"]), "Unknown" if waits else str(zero + int(job["start"])), str(spent),
        _spelled(job["time_limit"]), state, "" if waits else tres, tres, str(job["nodes"]), _priority(job, at),
    )  # fmt: skip
    return "|".join(cells)


def _priority(job: Mapping[str, Any], at: float) -> str:
    """With what age adds up to now or to its start, in squeue as in accounting."""
    age = min((min(at, job["start"]) - job["arrival"]) / MAX_AGE, 1.0)
    return str(1000 + job["priority"] + int(AGE_WEIGHT * age))


def _spelled(seconds: int) -> str:
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
