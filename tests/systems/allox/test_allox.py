"""One event of AlloX: who starts, on what, and why not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.systems.allox.in_seconds import match, single

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


def test_all_heads_start_when_everyone_competes() -> None:
    given = machines([CPU, GPU, GPU], [0.0, 0.0, 4.0])
    waiting = jobs((0, 30, 10), (1, 12, 9), (0, 500, 20))
    found, _ = match(waiting.time, given.kind, given.release)
    heads = found.starting(given.idle)
    assert sorted(start(waiting, given)) == sorted((int(j), int(given.kind[found.machine[j]])) for j in heads)


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


def test_a_job_waits_for_a_better_machine_than_the_idle_one() -> None:
    assert start(jobs((0, 9000, 50)), machines([CPU, GPU], [0.0, 20.0])) == []


def test_an_idle_machine_is_taken_before_one_that_should_be_free_by_now() -> None:
    overdue_first = Machines(np.array([GPU, GPU]), np.array([70.0, 100.0]), np.array([False, True]), NO_MORE)
    assert start(jobs((0, 99, 5)), overdue_first, now=100.0) == [(0, GPU)]


def test_memory_holds_a_job_back_but_not_the_others() -> None:
    time = np.array([[5.0], [7.0]])
    need = np.array([[[90.0]], [[10.0]]])
    waiting = single(np.zeros(2, dtype=np.int64), np.zeros(2), time, need=need)
    assert start(waiting, machines([0, 0], [0.0, 0.0], free=np.array([64.0]))) == [(1, 0)]


def gang(width: int, time: float, *others: float, arrival: float = 0.0) -> Waiting:
    """A gang, then single jobs, all on one type."""
    count = 1 + len(others)
    return Waiting(
        np.arange(count),
        np.zeros(count, dtype=np.int64),
        np.array([arrival] + [arrival + 1.0] * len(others)),
        np.array([[time], *[[other] for other in others]]),
        np.zeros((count, 1)),
        np.zeros((count, 1, 0)),
        np.array([[width]] + [[1]] * len(others)),
    )


def test_a_gang_starts_when_enough_machines_are_idle() -> None:
    assert start(gang(3, 10.0), machines([0] * 3, [0.0] * 3)) == [(0, 0)]
    assert start(gang(3, 10.0), machines([0] * 3, [0.0, 0.0, 5.0])) == []


def test_an_aged_gang_keeps_machines_for_itself() -> None:
    given = machines([0] * 3, [0.0, 0.0, 5.0])
    assert start(gang(3, 10.0, 4.0), given, now=100.0, age=1000.0) == [(1, 0)]
    assert start(gang(3, 10.0, 4.0), given, now=100.0, age=99.5) == []


def test_an_aged_job_takes_the_machine_on_which_it_ends_first() -> None:
    waiting = jobs((0, 60, 50), (1, 99, 5))
    given = machines([CPU, GPU], [0.0, 120.0])
    assert start(waiting, given, now=100.0, age=0.0) == [(0, CPU)]


def test_a_job_without_a_duration_is_refused() -> None:
    with pytest.raises(UsageError, match="duration of zero or below"):
        start(jobs((0, 5, 0)), machines([CPU], [0.0]))
