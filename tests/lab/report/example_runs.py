"""Runs to report on, made by a tiny seeded scheduler: whole gangs, no preemption, first come or shortest first."""

from __future__ import annotations

import heapq
import math

import numpy as np
import polars as pl

from gantline.lab.report.frames import ALLOCATIONS, EVENTS, JOBS, SERIES, StoredRun


def example_run(
    jobs: int = 60, nodes: int = 2, per_node: int = 4, seed: int = 0, shortest_first: bool = False, **options: object
) -> StoredRun:
    """A consistent run of Poisson arrivals on small nodes.

    Options: ``gap`` (mean seconds between arrivals, default 700), ``until`` (stop then, leaving jobs unfinished),
    ``names`` and ``users`` (lists to draw from), ``name`` (of the run).
    """
    rng = np.random.default_rng(seed)
    arrival = np.cumsum(rng.exponential(float(options.get("gap", 700.0)), jobs))  # type: ignore[arg-type]
    gang = rng.choice([1, 2, 4], jobs, p=[0.6, 0.3, 0.1])
    duration = np.round(rng.lognormal(7.0, 1.2, jobs), 3)
    names = list(options.get("names", [])) + [f"job-{i}" for i in range(jobs)]  # type: ignore[call-overload]
    users = list(options.get("users", ["ann", "bob", "cy"]))  # type: ignore[call-overload]
    until = float(options.get("until", math.inf))  # type: ignore[arg-type]
    owner = [users[k] for k in rng.integers(0, len(users), jobs)]
    total, free = nodes * per_node, set(range(nodes * per_node))
    waiting: list[int] = []
    running: list[tuple[float, int]] = []
    start, held, series, events = {}, {}, [], []
    arrived, now = 0, 0.0
    while arrived < jobs or running:
        now = min(arrival[arrived] if arrived < jobs else math.inf, running[0][0] if running else math.inf)
        if now > until:
            break
        while running and running[0][0] == now:
            i = heapq.heappop(running)[1]
            free |= set(held[i])
            events.append((now, "finish", names[i], ""))
        while arrived < jobs and arrival[arrived] == now:
            waiting.append(arrived)
            events.append((now, "arrive", names[arrived], owner[arrived]))
            arrived += 1
        waiting.sort(key=lambda i: (duration[i] if shortest_first else arrival[i], i))
        while waiting and gang[waiting[0]] <= len(free):
            i = waiting.pop(0)
            start[i], held[i] = now, sorted(free)[: gang[i]]
            free -= set(held[i])
            heapq.heappush(running, (now + duration[i], i))
            events.append((now, "start", names[i], ""))
        series.append((now, len(waiting), len(running), total - len(free), 0, total, sum(gang[i] for i in waiting)))
    end = min(now, until)
    return _frames(names, arrival, gang, duration, owner, start, held, series, events, end, options, per_node, seed)


def _frames(names, arrival, gang, duration, owner, start, held, series, events, end, options, per_node, seed):  # type: ignore[no-untyped-def]
    rows, gangs = [], []
    for i in range(len(arrival)):
        if arrival[i] > end:
            continue
        began = start.get(i, math.nan)
        finish = began + duration[i] if began + duration[i] <= end else math.nan
        state = "completed" if finish == finish else "running" if i in start else "waiting"
        served = min(end, began + duration[i]) - began if i in start else 0.0
        jct = finish - arrival[i]
        queueing, deadline = jct - served, arrival[i] + 2 * duration[i] if i % 3 == 0 else math.nan
        times = (names[i], arrival[i], began, finish, jct, gang[i], 0, 0, queueing, began - arrival[i], served)
        queue = "batch" if i % 2 else "express"
        rows.append((*times, served, served * gang[i], 0.0, owner[i], queue, "", duration[i], deadline, state))
        if i in start:
            on = sorted({d // per_node for d in held[i]})
            ended = "finished" if state == "completed" else "end"
            gangs.append((names[i], began, began + served, "v100", on, held[i], gang[i], ended))
    gangs.sort(key=lambda row: row[1])
    summary = {"name": options.get("name", "example"), "policy": "fifo", "seed": seed, "gantline": "0.1.0"}
    return StoredRun(
        pl.DataFrame(rows, schema=JOBS, orient="row"),
        pl.DataFrame(gangs, schema=ALLOCATIONS, orient="row"),
        pl.DataFrame(events, schema=EVENTS, orient="row"),
        pl.DataFrame(series, schema=SERIES, orient="row"),
        summary,
    )


def job_rows(*rows: dict[str, object]) -> pl.DataFrame:
    """A jobs frame from partial rows: what is not said takes a plain value for a completed one-GPU job."""
    plain = {name: "" if dtype == pl.String else 0 if dtype == pl.Int64 else math.nan for name, dtype in JOBS.items()}
    plain |= {"arrival": 0.0, "gpus": 1, "work_lost": 0.0, "gpu_seconds": 0.0, "state": "completed"}
    return pl.DataFrame([plain | {"job": f"j{i}"} | row for i, row in enumerate(rows)], schema=JOBS)
