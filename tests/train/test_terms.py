"""What a training loop is told while it runs: other CPUs and caps between two steps, a shift as a delay of one step."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gantline.train import terms as module
from gantline.train.job import Job
from gantline.train.membership import Membership
from gantline.train.terms import Pace, Terms


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
