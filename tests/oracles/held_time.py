"""Held time and utilization worked out from the table of allocations alone, moment by moment and device by device."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.jobs import by_job

from gantline.lab.report.metrics import measure
from gantline.simulator.run import Run


def held_time(run: Run) -> dict[str, tuple[float, float]]:
    """Per job: seconds with devices until it finished, and devices times seconds until they were given back."""
    finish = by_job(run, "finish")
    spans: dict[str, list[tuple[float, float, int]]] = {job: [] for job in finish}
    for row in run.allocations.iter_rows(named=True):
        spans[row["job"]].append((row["start"], row["end"], row["gpus"]))
    found = {}
    for job, held in spans.items():
        last = finish[job] if finish[job] == finish[job] else float("inf")
        moments = sorted({min(moment, last) for start, end, _ in held for moment in (start, end)})
        seconds = sum(b - a for a, b in pairwise(moments) if any(start <= a and b <= end for start, end, _ in held))
        found[job] = seconds, sum((end - start) * gpus for start, end, gpus in held)
    return found


def utilization(run: Run) -> float:
    """Device-seconds in use over device-seconds of devices that were up, from the first tracked arrival to the end."""
    jobs = run.jobs if run.track is None else run.jobs[run.track[0] : run.track[1]]
    begin, end = jobs["arrival"].min(), run.summary["end"]
    if run.track is not None and not jobs["state"].is_in(["running", "waiting", "future"]).any():
        end = jobs["finish"].fill_nan(None).max()
    held: dict[int, list[tuple[float, float]]] = {}
    for row in run.allocations.iter_rows(named=True):
        for device in row["devices"]:
            held.setdefault(device, []).append((max(row["start"], begin), min(row["end"], end)))
    busy = 0.0
    for spans in held.values():
        moments = sorted({moment for span in spans for moment in span})
        busy += sum(b - a for a, b in pairwise(moments) if any(start <= a and b <= stop for start, stop in spans))
    there = run.summary["gpus"] * (end - begin)
    for sign, marks in ((1, run.summary["joined_gpus"]), (-1, run.summary["down_gpus"])):
        for (since, count), (until, _) in pairwise([*marks, (end, 0)]):
            there += sign * count * max(0.0, min(until, end) - max(since, begin))
    return busy / there


def assert_accounts_agree(run: Run) -> None:
    """Every number that is told agrees with the log, and the summary with the metrics."""
    known = held_time(run)
    for row in run.jobs.iter_rows(named=True):
        seconds, gpu_seconds = known[row["job"]]
        assert row["held"] == pytest.approx(seconds, abs=1e-6)
        assert row["gpu_seconds"] == pytest.approx(gpu_seconds, abs=1e-6)
        if row["state"] == "completed":
            assert row["queueing"] == pytest.approx(row["jct"] - seconds, abs=1e-6)
            assert row["queueing"] >= -1e-6
    told, measured = run.summary, measure(run)
    low, high = run.track or (0, run.jobs.height)
    assert told["gpu_hours"] * 3600 == pytest.approx(run.jobs["gpu_seconds"][low:high].sum())
    assert measured["gpu_hours"] == pytest.approx(told["gpu_hours"])
    if told["average_queueing"] is not None:
        assert measured["queueing_mean"] == pytest.approx(told["average_queueing"], abs=1e-6)
    if told["utilization"] is not None:
        assert told["utilization"] == pytest.approx(utilization(run), rel=1e-9, abs=1e-12)
        assert measured["utilization"] == told["utilization"] <= 1.0 + 1e-9
