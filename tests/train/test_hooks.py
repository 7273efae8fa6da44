"""Hooks: their order, their requests, and KungFu's three policies."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.train.conftest import scheduled
from tests.train.listener import Listener

from gantline.train import Hook, InterferenceVote, Job, NoiseScaleBatch, ScheduledResize, Training
from gantline.train import terms as module
from gantline.train.membership import Membership
from gantline.train.terms import Pace, Terms

Join = Callable[..., Job]


class Diary(Hook):
    """Notes when it is called."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name, self.notes = name, notes

    def before_train(self, job: Training) -> None:
        self.notes.append(f"{self.name} begins")

    def before_epoch(self, job: Training) -> None:
        self.notes.append(f"{self.name} epoch")

    def before_step(self, job: Training) -> None:
        self.notes.append(f"{self.name} step")

    def after_step(self, job: Training) -> None:
        self.notes.append(f"step {self.name}")

    def after_epoch(self, job: Training) -> None:
        self.notes.append(f"epoch {self.name}")

    def after_train(self, job: Training) -> None:
        self.notes.append(f"ends {self.name}")


def test_hooks_run_in_order_before_and_in_reverse_after(join: Join) -> None:
    notes: list[str] = []
    job = join(hooks=[Diary("a", notes), Diary("b", notes)])
    for _ in job.loader(range(2), batch=2):
        notes.append("train")
    assert notes == [
        *("a begins", "b begins", "a epoch", "b epoch", "a step", "b step", "train"),
        *("step b", "step a", "epoch b", "epoch a", "ends b", "ends a"),
    ]


def test_a_hook_keeps_its_state_in_checkpoints(join: Join) -> None:
    class Counts(Hook):
        steps = 0

        def after_step(self, job: Training) -> None:
            self.steps += 1

        def state(self) -> dict[str, Any]:
            return {"steps": self.steps}

        def resume(self, state: Any) -> None:
            self.steps = state.get("steps", 0)

    job = join(hooks=[Counts()])
    job.keep()
    list(job.steps(4))
    again = Counts()
    join(hooks=[again])
    assert again.steps == 4


def test_a_scheduled_resize_is_requested_once_per_change(join: Join, listener: Listener) -> None:
    job = join(scheduled(listener), hooks=[ScheduledResize({0: 1, 3: 4, 5: 2})])
    requests: list[Any] = []
    for step in job.steps(8):
        requests.append((step, job.requested_gpus))
        if step in (0, 3, 5):
            assert listener.wait_for(lambda body: body.get("request") == {"gpus": job.requested_gpus})
    assert [gpus for _, gpus in requests] == [1, 1, 1, 4, 4, 2, 2, 2]
    assert sum("request" in body for body in listener.received) == 3
    with pytest.raises(ValueError, match="schedule"):
        ScheduledResize({4: 0})


def test_the_batch_follows_the_noise_by_factors(join: Join) -> None:
    """A noise scale of ten times the base batch is approached by doubling and then held; less noise shrinks the batch again."""
    job = join(hooks=[NoiseScaleBatch(every=2, per_gpu=64, max_gpus=8)])
    walk = job.loader(range(10**6), batch=32, most=1024)
    sizes = []
    for _ in range(12):
        next(walk)
        sizes.append(job.batch)
        job.noise._square, job.noise._variance, job.noise._weight = 1.0, 10.0, 1.0
    assert sizes == [32, 32, 64, 64, 128, 128, 256, 256, 320, 320, 320, 320]
    assert job.requested_gpus == 5
    for _ in range(10):
        next(walk)
        job.noise._square, job.noise._variance, job.noise._weight = 1.0, 1.0, 1.0
    assert job.batch == 32
    with pytest.raises(ValueError, match="factor is above 1"):
        NoiseScaleBatch(factor=1.0)


def test_a_majority_of_slow_ranks_leaves_and_a_minority_does_not(join: Join) -> None:
    def run(others_vote: float) -> tuple[int, int | None]:
        vote = InterferenceVote(window=4)
        environment = {"WORLD_SIZE": "3", "GANTLINE_GPUS": "3", "RANK": "1"}
        job = join(environment, hooks=[vote], sum_over_ranks=lambda values: _vote(values, others_vote))
        job.step = 0
        for number in range(1, 13):
            job.step, job.step_samples, job.step_seconds = number, 10, 1.0 if number <= 8 else 2.0
            vote.after_step(job)
        return vote.votes, job.requested_gpus

    assert run(others_vote=1.0) == (1, 2)
    assert run(others_vote=0.0) == (0, None)


def test_an_even_speed_is_no_reason_to_vote(join: Join) -> None:
    acts: list[int] = []
    vote = InterferenceVote(window=3, threshold=0.8, act=lambda job: acts.append(job.step))
    job = join()
    for number in range(1, 31):
        job.step, job.step_samples, job.step_seconds = number, 10, 1.2 if number % 6 > 3 else 1.0
        vote.after_step(job)
    assert acts == []
    for number in range(31, 37):
        job.step, job.step_samples, job.step_seconds = number, 10, 1.6
        vote.after_step(job)
    assert acts == [33]  # then slow is the new usual


def _vote(values: list[float], others: float) -> list[float]:
    return [values[0] + others * values[0]] if len(values) == 1 else values


# What a training loop is told while it runs: other CPUs and caps between two steps, a shift as a delay of one step.


class Clock:
    """Time that passes in steps and pauses only."""

    def __init__(self) -> None:
        self.now, self.pauses = 100.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(round(seconds, 6))
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(module, "time", found)
    return found


def write(folder: Path, at: int, **terms: Any) -> None:
    (folder / "terms.json").write_text(json.dumps(terms))
    os.utime(folder / "terms.json", ns=(at, at))


def member(folder: Path, rank: int = 0, world: int = 1) -> Membership:
    environment = {
        "GANTLINE_FOLDER": str(folder),
        "GANTLINE_CHECKPOINT": str(folder / "saved"),
        "RANK": str(rank),
        "WORLD_SIZE": str(world),
    }
    return Membership.read(environment)


def test_a_shift_is_a_delay_of_one_step_and_a_shift_back_the_rest_of_a_period(tmp_path: Path, clock: Clock) -> None:
    job = Job(member(tmp_path))
    for step in job.steps(40):
        clock.now += 2.0  # a step
        if step == 10:
            write(tmp_path, 1, offset=0.5)
        if step == 20:
            write(tmp_path, 2, offset=0.2)
        if step == 30:
            write(tmp_path, 3, offset=0.2, cpus=4)
    assert clock.pauses == [0.5, 1.7]


def test_the_first_step_is_delayed_by_the_shift_that_a_job_starts_with(tmp_path: Path, clock: Clock) -> None:
    write(tmp_path, 1, offset=0.3)
    for _ in Job(member(tmp_path)).steps(3):
        clock.now += 1.0
    assert clock.pauses == [0.3]


def test_only_the_first_rank_waits_because_the_others_wait_for_it(tmp_path: Path, clock: Clock) -> None:
    write(tmp_path, 1, offset=0.3)
    for _ in Job(member(tmp_path, 1, 2), sum_over_ranks=lambda values: values).steps(3):
        clock.now += 1.0
    assert clock.pauses == []


def test_other_amounts_are_told_once_between_two_steps(tmp_path: Path) -> None:
    job, seen = Job(member(tmp_path)), list[tuple[int, Terms]]()
    job.on_terms(lambda it: seen.append((it.step, it.terms)))
    for step in job.steps(6):
        if step == 2:
            write(tmp_path, 1, cpus=6, memory_cap=24, fraction=0.5)
    assert seen == [(3, Terms(cpus=6, memory_cap=24, fraction=0.5))]


def test_half_a_file_or_none_changes_nothing(tmp_path: Path) -> None:
    pace = Pace(tmp_path)
    assert not pace.look()
    (tmp_path / "terms.json").write_text('{"cpus": ')
    assert not pace.look()
    assert not Pace(None).look()
