"""Profiles on the engine: jobs go as measured; Pollux and Sia know what was fitted to what they have shown, others the measured speeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.jobs import held_by

from gantline.core.errors import GantlineError, RefusedError, TraceError
from gantline.models.goodput.batch import gain
from gantline.models.goodput.measured import Application, packed_shape
from gantline.models.goodput.online import OnlineGoodput, OnlineJob
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.files.profiles import MADE_UP, example_profiles
from gantline.traces.trace import Trace

EXAMPLES = Path(__file__).parents[3] / "examples"
SMALL = {"size": 20, "generations": 10}


def job(name: str, arrival: float, gpus: int, app: str = "vision", batch: int = 512, kind: str = "adaptive") -> dict[str, Any]:
    return {"job": name, "arrival": arrival, "gpus": gpus, "duration": 100.0, "app": app, "batch_size": batch, "kind": kind}


def run(jobs: Any, policy: str = "sia", cluster: str = "small:4x4", **options: Any) -> Run:
    return simulate(jobs, cluster, policy, profiles=MADE_UP, **options)


def shipped(count: int) -> Trace:
    trace = Trace.load(EXAMPLES / "goodput_jobs.csv")
    return Trace(trace.frame.head(count), trace.source)


def trained_in(app: Application, batch: int, step: float) -> float:
    """Seconds to the last epoch where a step with this batch takes so long."""
    training = app.training
    edges = [0.0, *training.edges.tolist()]
    gains = [gain(*training.noise(batch, epoch), batch / training.base) for epoch in range(len(edges) - 1)]
    return sum((edge - before) * step / worth for before, edge, worth in zip(edges, edges[1:], gains))


@pytest.mark.parametrize(
    ("policy", "gpus", "batch"),
    [("sia", 1, 64), ("sia", 4, 512), ("sia", 8, 1024), ("pollux", 4, 512), ("las", 4, 512), ("optimus", 8, 1024)],
)
def test_a_rigid_job_takes_what_was_measured_to_the_last_epoch(policy: str, gpus: int, batch: int) -> None:
    app = example_profiles()["vision"]
    local = batch // gpus
    steps = -(-local // 128) - 1
    step, sync = app.on("small").seconds(packed_shape(gpus, 4), -(-local // (steps + 1)))
    seconds = trained_in(app, batch, step + steps * (step - sync))
    found = run(
        [job("a", 5.0, gpus, batch=batch, kind="rigid")], policy, settings={"size": 40, "generations": 20} if policy == "pollux" else {}
    )
    assert found.jobs["finish"][0] - found.jobs["first_start"][0] == pytest.approx(seconds, rel=1e-9)
    assert found.allocations["gpus"].to_list() == [gpus]


def test_on_the_engine_pollux_does_as_in_its_own_simulator() -> None:
    jobs = shipped(10)
    engine = run(jobs, "pollux", round=60.0, costs="30", settings=SMALL)
    own = run(jobs, "pollux", regime="pollux", settings=SMALL)
    assert engine.summary["average_jct"] == pytest.approx(own.summary["average_jct"], rel=0.15)
    assert engine.summary["belief_error_seen"] < 0.02
    assert engine.summary["belief_error_seen"] < engine.summary["belief_error_elsewhere"] < 0.5
    assert engine.summary["estimates"] == "fitted"


def test_jobs_begin_small_at_most_double_and_sia_keeps_to_its_configurations() -> None:
    found = run([job("a", 0.0, 4), job("b", 90.0, 4, "speech", 128)], cluster="small:4x4,large:2x8", round=60.0)
    for name in ("a", "b"):
        sizes = held_by(found, name)["gpus"].to_list()
        assert sizes[0] == 1
        assert all(size <= 2 * max(sizes[:place]) for place, size in enumerate(sizes) if place)
        assert max(sizes) > 2
        assert set(sizes) <= {1, 2, 4, 8, 12, 16}
    assert found.summary["belief_error_elsewhere"] > 0.0
    scaled = run([job("a", 0.0, 2, kind="strong-scaling")], round=600.0)
    assert scaled.allocations["gpus"].to_list() == [1, 2]  # no more than it asks for


def test_what_was_never_tried_is_judged_by_what_was() -> None:
    app = example_profiles()["vision"]
    model = OnlineGoodput({"a": OnlineJob(app, 100.0)}, ("small", "large"), (4, 8))
    sizes = np.array([1, 2, 4])
    assert model.goodputs(None, "a", 0, sizes) is None
    step, sync = app.on("small").seconds((1,), 64)
    learned = {"a": {"seen": {"small": [[1.0, 1.0, 64.0, np.log(step - sync), np.log(step)]]}, "batch": 64.0, "noise": [1.0, 20.0]}}
    here, there = model.goodputs(learned, "a", 0, sizes), model.goodputs(learned, "a", 1, sizes)
    assert here is not None
    assert there is not None
    assert here[0, 1] > 1.5 * here[0, 0] > 0.0  # hopeful: nothing is known of averaging
    assert not here[:, 2].any()  # twice what it ever had, no more
    assert there == pytest.approx(here * app.on("large").single / app.on("small").single)


def test_policies_that_size_jobs_know_measured_speeds_and_keep_to_what_kinds_and_limits_allow() -> None:
    jobs = [job(name, 0.0, 2, batch=128, kind=kind) for name, kind in zip("abc", ["adaptive", "strong-scaling", "rigid"])]
    found = run(jobs, "afs", cluster="small:3x4", placement="consolidated", round=60.0)
    widest = dict(found.allocations.group_by("job").agg(pl.col("gpus").max()).iter_rows())
    assert widest == {"a": 4, "b": 2, "c": 2}  # on more than a node it would be slower
    limited = run([{**jobs[0], "max_gpus": 3}], "afs", round=60.0)
    assert limited.allocations["gpus"].to_list() == [3]


@pytest.mark.parametrize(("policy", "sizes"), [("fifo", {4}), ("afs", {2, 4, 6, 8}), ("sia", {2, 4, 8}), ("pollux", {2, 4, 6, 8})])
def test_a_pipeline_runs_in_whole_replicas_as_long_as_was_measured(policy: str, sizes: set[int]) -> None:
    app = example_profiles()["vision"]
    pipeline = {**job("a", 0.0, 4, kind="hybrid"), "stages": "small:2"}
    found = run([pipeline], policy, "small:2x4", settings=SMALL if policy == "pollux" else {}, round=3600.0)
    assert set(found.allocations["gpus"].to_list()) <= sizes
    if policy == "fifo":
        forward, sync = (float(each[0]) for each in app.on("small").lookup((4,), 1))
        seconds = trained_in(app, 2 * 48, 3 * (2 - 1 + 48) * forward + sync)
        assert found.jobs["service"][0] == pytest.approx(seconds, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"cluster": "tiny:2x4"}, TraceError, "no profile for any device of 'tiny:2x4'"),
        ({"jobs": [job("a", 0.0, 1, "bert")]}, TraceError, "trains 'bert', of which there is no profile"),
        (
            {"jobs": [job("a", 0.0, 8, batch=64)], "policy": "fifo"},
            TraceError,
            "asks for 8 devices; its batch and the cluster allow at most 4",
        ),
        (
            {"jobs": [{**job("a", 0.0, 4, kind="hybrid"), "stages": "small:3"}], "policy": "fifo"},
            TraceError,
            "in 3s, the stages of its pipeline",
        ),
        ({"scaling": "learned"}, RefusedError, "from --profiles and from scaling at once"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], error: type[GantlineError], told: str) -> None:
    with pytest.raises(error, match=told):
        run(change.pop("jobs", [job("a", 0.0, 1)]), **change)
