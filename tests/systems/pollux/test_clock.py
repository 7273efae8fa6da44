"""Pollux' clock on the profiles that ship with Gantline: whole seconds at epoch ends, restarts, refusals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.jobs import by_job, held_by

from gantline.core.errors import GantlineError, RefusedError, TraceError, UsageError
from gantline.models.goodput.batch import BatchLimits, gain, split_batch
from gantline.models.goodput.measured import Application, packed_shape
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.systems.pollux.imitation.drive import read_jobs
from gantline.systems.pollux.imitation.jobs import Nodes
from gantline.traces.files.profiles import MADE_UP, read_profiles
from gantline.traces.trace import Trace

SHIPPED = Path(__file__).parents[3] / "examples" / "goodput_jobs.csv"


def job(name: str, arrival: float, gpus: int, app: str = "vision", batch: int = 512) -> dict[str, Any]:
    return {"job": name, "arrival": arrival, "gpus": gpus, "duration": 100.0, "app": app, "batch_size": batch}


def run(jobs: Any, policy: str = "tiresias", cluster: str = "small:4x4", **options: Any) -> Run:
    return simulate(jobs, cluster, policy, regime="pollux", profiles=MADE_UP, **options)


def seconds_alone(app: Application, shape: tuple[int, ...], batch: float, speed: float = 1.0) -> float:
    """Seconds of training on one shape from begin to end, every epoch rounded; as long as no interval cuts an epoch short."""
    training, times = app.training, app.on("small")
    limits = BatchLimits(training.base, training.most, times.local_least, times.local_most)
    local, steps = split_batch(batch, sum(shape), limits)
    total = sum(shape) * local * (steps + 1)
    step, sync = (float(column[0]) for column in times.lookup(shape, local))
    now, progress, edge_of_interval = 0.0, 0.0, 30.0  # the first interval has thirty seconds left after the start
    for epoch in range(training.epochs):
        rate = gain(*training.noise(total, epoch), total / training.base) / (step + steps * (step - sync)) * speed
        while progress + rate * (edge_of_interval - now) < training.edges[epoch]:
            progress += rate * (edge_of_interval - now)
            now, edge_of_interval = edge_of_interval, edge_of_interval + 60.0
        now += round((training.edges[epoch] - progress) / rate)
        progress = float(training.edges[epoch])
        if now == edge_of_interval:
            edge_of_interval += 60.0
    return now


@pytest.mark.parametrize(("gpus", "batch"), [(1, 64), (4, 512), (6, 1024)])
def test_one_job_takes_its_wait_its_start_and_its_epochs(gpus: int, batch: int) -> None:
    found = run([job("a", 10.0, gpus, batch=batch)])
    app = read_profiles(MADE_UP)["vision"]
    assert found.jobs["first_start"][0] == 60.0
    assert found.jobs["finish"][0] == 90.0 + seconds_alone(app, packed_shape(gpus, 4), batch)
    assert found.jobs["gpu_seconds"][0] == gpus * (found.jobs["finish"][0] - 60.0)
    assert found.jobs["restarts"][0] == 0


@pytest.mark.parametrize(("interval", "arrival", "start"), [(60, 120.0, 120.0), (60, 119.0, 120.0), (60, 120.5, 180.0), (17, 34.0, 34.0)])
def test_whoever_comes_to_an_idle_cluster_at_the_end_of_an_interval_is_in_time(interval: int, arrival: float, start: float) -> None:
    later = arrival + 6000 * interval
    found = run([job("first", arrival, 4), job("later", later, 4)], round=interval)
    assert found.jobs["first_start"].to_list() == [start, start + 6000 * interval]


@pytest.mark.parametrize("policy", ["tiresias", "optimus"])
def test_interference_is_the_simulators_not_the_policys(policy: str) -> None:
    found = run([job("a", 10.0, 3), job("b", 10.0, 3)], policy, "small:3x2", settings={"interference": 0.5})  # each on (2, 1)
    alone = seconds_alone(read_profiles(MADE_UP)["vision"], (2, 1), 512, 0.5)
    assert found.jobs["finish"].to_list() == [90.0 + alone] * 2


def test_optimus_expects_nodes_of_four_on_smaller_ones_too() -> None:
    (asked,) = read_jobs(Trace.from_records([job("a", 0.0, 4)]), read_profiles(MADE_UP), "small", np.array([2] * 8), False)
    expected = [asked.application.step_time(packed_shape(k, 4), 512 / k, 0.0) for k in (4, 8)]
    assert asked.application.predicted(512.0, 8)[[4, 8]].tolist() == expected


def test_a_job_that_does_not_fit_is_skipped_and_nobody_moves() -> None:
    found = run([job("wide", 0.0, 12), job("wider", 1.0, 8), job("slim", 2.0, 4)])
    start = by_job(found, "first_start")
    assert start["wide"] == start["slim"] == 60.0
    assert start["wider"] > 60.0
    assert found.allocations["reason"].to_list().count("finished") == 3


def test_after_its_share_a_job_gives_way_and_comes_back() -> None:
    found = run([job("long", 0.0, 16, "speech", 256), job("new", 100.0, 16)], settings={"limits": "6000"})
    assert by_job(found, "restarts")["long"] == 1
    spans = held_by(found, "long")
    assert spans["reason"].to_list() == ["resized", "finished"]
    assert spans["end"][0] == 480.0  # 6,000 GPU-seconds on sixteen devices: seen at the seventh interval


def test_devices_are_never_held_twice_and_times_are_whole_seconds() -> None:
    for policy in ("tiresias", "optimus", "pollux"):
        found = run(SHIPPED, policy, settings=small(policy))
        held = found.allocations.explode("devices").sort("devices", "start")
        same = held["devices"][1:] == held["devices"][:-1]
        assert (held["start"][1:] >= held["end"][:-1]).filter(same).all()
        assert found.summary["completed"] == 24
        assert all(value == math.floor(value) for value in found.jobs["finish"].to_list())


def small(policy: str) -> dict[str, Any]:
    return {"size": 20, "generations": 10} if policy == "pollux" else {}


def test_interference_slows_jobs_that_span_a_shared_node_down_and_avoidance_keeps_them_apart() -> None:
    def found(avoid: bool, slower: float, seed: int = 0) -> dict[str, Any]:
        how = {"avoid": avoid, "interference": slower, **small("pollux")}
        return run(SHIPPED, "pollux", "small:8x2", settings=how, seed=seed).summary

    assert found(True, 0.0)["log_hash"] == found(True, 0.9)["log_hash"]
    seeds = range(2)  # what the search finds differs from seed to seed by as much as the slowdown
    slow, fast = (sum(found(False, slower, seed)["average_jct"] for seed in seeds) for slower in (0.9, 0.0))
    assert slow > 1.02 * fast


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"cluster": "small:2x4,large:1x8"}, UsageError, "devices of one type"),
        ({"cluster": "tiny:2x4"}, GantlineError, "no profile of 'vision' on 'tiny'"),
        ({"settings": {"limits": (60.0, 600.0)}}, RefusedError, "two queues"),
    ],
)
def test_what_it_has_not_is_refused(change: dict[str, Any], error: type[GantlineError], told: str) -> None:
    with pytest.raises(error, match=told):
        run([job("a", 0.0, 1)], **change)


class Mover:
    """Moves everybody in every interval."""

    def decide(self, now: float, active: Sequence[int], held: Mapping[int, Nodes]) -> dict[int, Nodes]:
        return {job: ((held[job] or (job,))[0] + 1 & 3,) for job in active}


def test_a_run_in_which_no_job_progresses_is_given_up_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gantline.systems.pollux.imitation.drive._decider", lambda *_: Mover())
    assert run([job("a", 0.0, 1)], round=60.0).summary["completed"] == 1
    found = run([job("a", 0.0, 1), job("b", 99.0, 1)], round=30.0)  # no longer than a start takes
    assert found.summary["completed"] == 0
    assert "none progressed for 200 intervals" in found.incidents[-1]
    assert found.allocations["reason"].to_list()[-1] == "end"


def test_jobs_without_a_profile_or_a_batch_are_named() -> None:
    with pytest.raises(TraceError, match="job 'a': no profile of 'bert'"):
        run([job("a", 0.0, 1, "bert")])
    lacking = job("a", 0.0, 1)
    del lacking["batch_size"]
    with pytest.raises(TraceError, match="its application and its batch"):
        run([lacking])
    made_up = simulate([job("a", 0.0, 1)], "small:1x4", "pollux", regime="pollux")
    assert made_up.summary["profiles"] == "made up"  # and it says so


def test_the_generator_needs_no_list_of_jobs() -> None:
    from gantline.traces.generators import generate

    trace = generate("pollux", seed=2, jobs=40)
    assert len(trace) == 40
    assert np.diff(trace.frame["arrival"].to_numpy()).min() >= 0.0
    with pytest.raises(GantlineError, match="'jobs': 0 is not above zero"):
        generate("pollux", jobs=0)
