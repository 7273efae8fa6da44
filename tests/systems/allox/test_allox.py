"""One event of AlloX: who starts, on what, and why not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.systems.allox.in_seconds import single

from gantline.core.errors import UsageError
from gantline.systems.allox.policies.decision import Machines, Waiting, decide

CPU, GPU = 0, 1
NO_MORE = np.zeros(0)


def machines(kinds: list[int], busy_until: list[float], free: np.ndarray = NO_MORE) -> Machines:
    release = np.array(busy_until)
    return Machines(np.array(kinds), release, release == 0.0, free)


def start(waiting: Waiting, given: Machines, *, score: list[float] | None = None, **settings: float) -> list[tuple[int, int]]:
    users = int(waiting.owner.max()) + 1
    scores = np.zeros(users) if score is None else np.array(score)
    found, _ = decide(waiting, given, scores, np.ones(users), **({"now": 0.0} | settings))  # type: ignore[arg-type]
    return list(zip(found.jobs.tolist(), found.kinds.tolist()))


def jobs(*rows: tuple[int, float, float], gain: float = 0.1) -> Waiting:
    """Jobs of (user, CPU time, GPU time), all there from the beginning."""
    time = np.array([row[1:] for row in rows])
    return single(np.array([row[0] for row in rows]), np.zeros(len(rows)), time, np.full(time.shape, gain))


def test_with_low_alpha_the_user_with_least_progress_goes_first() -> None:
    waiting = jobs((0, 99, 5), (1, 99, 50))
    one_gpu = machines([GPU], [0.0])
    assert start(waiting, one_gpu, alpha=0.1, score=[0.4, 0.2]) == [(1, GPU)]
    assert start(waiting, one_gpu, alpha=1.0, score=[0.4, 0.2]) == [(0, GPU)]


def test_turns_change_as_jobs_start() -> None:
    waiting = jobs((0, 99, 5), (0, 99, 6), (1, 99, 50), gain=0.25)
    two_gpus = machines([GPU, GPU], [0.0, 0.0])
    assert start(waiting, two_gpus, alpha=0.5) == [(0, GPU), (2, GPU)]


def test_alpha_widens_until_nothing_useful_stays_idle() -> None:
    waiting = jobs((0, 9000, 50), (1, 30, 400))
    gpu_is_busy = machines([CPU, GPU], [0.0, 20.0])
    assert start(waiting, gpu_is_busy, alpha=0.5, score=[0.0, 0.9]) == [(1, CPU)]


def test_an_idle_machine_is_taken_before_one_that_should_be_free_by_now() -> None:
    overdue_first = Machines(np.array([GPU, GPU]), np.array([70.0, 100.0]), np.array([False, True]), NO_MORE)
    assert start(jobs((0, 99, 5)), overdue_first, now=100.0) == [(0, GPU)]


def test_an_aged_job_takes_the_machine_on_which_it_ends_first() -> None:
    waiting = jobs((0, 60, 50), (1, 99, 5))
    given = machines([CPU, GPU], [0.0, 120.0])
    assert start(waiting, given, now=100.0, age=0.0) == [(0, CPU)]


def test_a_job_without_a_duration_is_refused() -> None:
    with pytest.raises(UsageError, match="duration of zero or below"):
        start(jobs((0, 5, 0)), machines([CPU], [0.0]))
