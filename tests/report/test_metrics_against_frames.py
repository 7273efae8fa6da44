"""Metrics are sums over arrays: they agree with the same metrics in polars' words, and a simulation's own arrays with its frames."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.oracles.frame_metrics import measure_frames
from tests.oracles.frame_metrics import steadiness as steadiness_of_frames
from tests.oracles.frame_series import series_of as series_of_frames
from tests.report.example_runs import example_run

from gantline import simulate
from gantline.core.cluster import Node
from gantline.core.node_events import NodeEvent
from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.report.frames import StoredRun
from gantline.report.metrics import Window, measure, steadiness
from gantline.simulator.run import Run


@dataclass(frozen=True)
class Together(Policy):
    """All jobs share one device."""

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.assign([Assignment(k, group=0, mode=Mode.SPACE) for k in range(len(snapshot.jobs))])


def jobs(count: int, seed: int, **more: object) -> list[dict[str, object]]:
    draw = np.random.default_rng(seed)
    arrivals = np.sort(draw.integers(0, 40 * count, count)).astype(float)
    return [
        {
            "job": f"j{k}",
            "arrival": float(arrival),
            "gpus": int(draw.choice([1, 2, 4, 8])),
            "duration": float(draw.integers(1, 900)),
            "user": f"u{draw.integers(4)}",
            "deadline": float(arrival + draw.integers(900, 3000)) if k % 3 == 0 else None,
            **more,
        }
        for k, arrival in enumerate(arrivals)
    ]


LOST = [NodeEvent(500, "node0", "down"), NodeEvent(1500, "node0", "up"), NodeEvent(900, "late", "join", Node("late", "gpu", 4))]
RUNS = {
    "fifo": lambda: simulate(jobs(60, 1), "2x8", "fifo"),
    "stopped and resumed at a cost": lambda: simulate(jobs(80, 2), "2x8", "las", round=60, costs=20),
    "nodes fail and join": lambda: simulate(jobs(50, 3), "3x4", "srtf", round=60, node_events=LOST),
    "stopped early": lambda: simulate(jobs(60, 4), "1x8", "fifo", until=1500),
    "a window": lambda: simulate(jobs(60, 5), "2x8", "srtf", track=(10, 40)),
    "elastic": lambda: simulate(jobs(40, 6, min_gpus=1, max_gpus=8, gpus=4), "2x8", "optimus", round=60),
    "one device for all": lambda: simulate(jobs(12, 7, gpus=1), "1x4", Together()),
    "none": lambda: simulate(jobs(1, 8), "1x8", "fifo"),
}


def frames_of(run: Run) -> StoredRun:
    return StoredRun(run.jobs, run.allocations, run.events, run.series, run.summary)


def equal(found: dict[str, float], expected: dict[str, float]) -> None:
    assert list(found) == list(expected)
    for key, value in expected.items():
        assert found[key] == pytest.approx(value, rel=1e-11, abs=1e-9, nan_ok=True), key


@pytest.mark.parametrize("name", RUNS)
def test_a_simulation_is_measured_as_its_frames_say(name: str) -> None:
    run = RUNS[name]()
    expected = measure_frames(frames_of(run))
    equal(measure(run), expected)
    equal(measure(frames_of(run)), expected)
    assert steadiness(run) == steadiness_of_frames(run)
    told = run.summary
    series = series_of_frames(run.jobs, run.allocations, told["gpus"], told["joined_gpus"], told["down_gpus"])
    assert_frame_equal(run.series, series)


@pytest.mark.parametrize("window", [Window(5, 30), Window(0, None, 400.0), Window(20, 21)], ids=str)
@pytest.mark.parametrize("until", [None, 4000.0])
def test_windows_measure_the_same_jobs(window: Window, until: float | None) -> None:
    run = example_run(jobs=60, seed=9, gap=150, **({"until": until} if until else {}))
    asked = {"node_gpus": [4, 4], "prices": {"v100": 2.0}, "watts": {"v100": 300.0}, "rho": "contention"}
    equal(measure(run, window=window, **asked), measure_frames(run, window=window, **asked))  # type: ignore[arg-type]


def test_racks_and_nodes_that_joined_later() -> None:
    run = example_run(jobs=40, seed=2)
    wide = run.allocations.with_columns(
        nodes=pl.Series([[k % 3, 3 + k % 2] if k % 4 else [] for k in range(run.allocations.height)], dtype=pl.List(pl.Int32))
    )
    racked = replace(run, allocations=wide, summary={**run.summary, "node_racks": [(0, 1), (1, 3)]})
    equal(measure(racked), measure_frames(racked))
    assert 0 < measure(racked)["cross_rack"] < 1


def test_empty_cells_and_rows_out_of_order_are_read_alike() -> None:
    run = example_run(jobs=30, seed=3, gap=100, until=2500.0)
    holes = run.jobs.with_columns(
        user=pl.when(pl.col("gpus") > 2).then(None).otherwise("user"),
        work_lost=pl.lit(None, dtype=pl.Float64),
        state=pl.when(pl.col("gpus") == 4).then(pl.lit("rejected")).otherwise("state"),
        met=pl.when(pl.col("gpus") == 1).then(pl.col("finish") < 1500),
    )
    mixed = replace(run, jobs=holes.reverse(), allocations=run.allocations.reverse(), series=run.series.reverse())
    equal(measure(mixed, node_gpus=[4, 4]), measure_frames(mixed, node_gpus=[4, 4]))
