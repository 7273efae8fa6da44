"""Device types of a mixed cluster, each for itself: use, queue and fragmentation."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from gantline import simulate
from gantline.lab.report.html import render_report
from gantline.lab.report.metrics import per_type
from gantline.lab.report.terminal import run_summary

JOBS = [
    {"job": "fast-1", "arrival": 0.0, "gpus": 2, "duration": 100.0, "type": "v100", "queue": "research"},
    {"job": "fast-2", "arrival": 0.0, "gpus": 2, "duration": 100.0, "type": "v100", "queue": "research"},
    {"job": "slow-1", "arrival": 0.0, "gpus": 1, "duration": 50.0, "type": "k80", "queue": "service"},
    {"job": "slow-2", "arrival": 0.0, "gpus": 1, "duration": 200.0, "type": "k80", "queue": "service"},
    {"job": "slow-3", "arrival": 0.0, "gpus": 2, "duration": 20.0, "type": "k80", "queue": "service"},
]


def test_each_type_has_its_use_its_queue_and_its_fragmentation() -> None:
    run = simulate(JOBS, "v100:1x2,k80:1x2", "fifo", settings={"backfill": "skip"})
    v100, k80 = per_type(run).iter_rows(named=True)
    assert run.summary["end"] == 220.0
    assert (v100["type"], v100["gpus"], v100["jobs"]) == ("v100", 2, 2)
    assert v100["utilization"] == pytest.approx(400 / 440)
    assert v100["queue_mean"] == pytest.approx(100 / 220)  # fast-2 waits for 100 s
    assert v100["fragmentation"] == 0.0
    assert (k80["type"], k80["gpu_hours"]) == ("k80", pytest.approx(290 / 3600))
    assert k80["queue_mean"] == pytest.approx(200 / 220)  # slow-3 waits for 200 s,
    assert k80["fragmentation"] == pytest.approx(1.0)  # and from 50 s on for the second of two GPUs


def test_a_shared_gpu_is_in_use_once() -> None:
    jobs = [{"job": f"j{k}", "arrival": 0.0, "gpus": 1, "duration": 100.0, "gpu_demand": 0.4, "type": "a"} for k in range(2)]
    run = simulate(jobs, "a:1x1,b:1x1", "sharing")
    a, b = per_type(run).iter_rows(named=True)
    assert a["utilization"] == pytest.approx(1.0)
    assert (b["jobs"], b["utilization"]) == (0, 0.0)


def test_reports_and_the_terminal_show_types_and_queues() -> None:
    run = simulate(JOBS, "v100:1x2,k80:1x2", "fifo")
    page = render_report([run])
    assert "<h2>Device types</h2>" in page
    assert "<h2>Queues</h2>" in page
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(run_summary(run))
    told = console.export_text()
    assert "v100" in told
    assert "fragmented" in told
    assert "research" in told
    assert "GPU-h" in told
