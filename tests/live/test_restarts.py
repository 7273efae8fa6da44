"""A job that starts again and again without progress is an incident, once; one that gets on is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.live.specs import running, submit, until, until_running

from gantline.core.inputs import Action
from gantline.live.scheduler import observer as restarts
from gantline.live.scheduler.observer import Restarts
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store.records import MemoryStore


def starts_again(scheduler: Scheduler, job: str, times: int) -> None:
    for _ in range(times):
        until_running(scheduler, job)
        epoch = scheduler.view().jobs[job].epoch
        scheduler.request([job], Action.REQUEUE)
        until(lambda epoch=epoch: scheduler.view().jobs[job].epoch > epoch)
    until_running(scheduler, job)


def test_the_third_restart_in_ten_minutes_without_progress_is_an_incident(tmp_path: Path) -> None:
    store = MemoryStore()
    with running(tmp_path, "cpu:1", store=store) as scheduler:
        job = submit(scheduler, "sleep 600")
        starts_again(scheduler, job, 2)
        assert not scheduler.view().incidents
        starts_again(scheduler, job, 2)
        (incident,) = scheduler.view().incidents
        assert f"job {job} has restarted 3 times in 10 minutes" in incident
        assert scheduler.view().counters["stuck"] == 1
        assert [event["job"] for event in store.event_log if event["event"] == "restarts"] == [job]
        scheduler.request([job], Action.CANCEL)
        until(lambda: scheduler.view().counters["stuck"] == 0)


def test_a_job_that_goes_on_from_what_it_has_saved_is_none(tmp_path: Path) -> None:
    with running(tmp_path, "cpu:1") as scheduler:
        job = submit(scheduler, "trap 'exit 15' TERM; while true; do sleep 0.02; done", resumes=True)
        starts_again(scheduler, job, 4)
        assert not scheduler.view().incidents
        scheduler.request([job], Action.CANCEL)


@pytest.mark.parametrize(
    ("life", "told"),
    [
        ([(1, 0, 0, 0), (2, 0, 0, 10), (3, 0, 0, 20), (4, 0, 0, 30)], [4]),
        ([(1, 0, 0, 0), (2, 0, 0, 10), (2, 0, 0, 15), (2, 0, 0, 16), (3, 0, 0, 20)], []),  # orders that are repeated
        ([(1, 0, 0, 0), (2, 0, 0, 10), (3, 5, 0, 20), (4, 5, 0, 30), (5, 5, 0, 40)], []),  # it has saved in between
        ([(1, 0, 0, 0), (2, 0, 0, 10), (3, 0, 7, 20), (4, 0, 7, 30), (5, 0, 7, 40), (6, 0, 7, 50)], [6]),  # it has reported, and no more
        ([(1, 0, 0, 0), (2, 0, 0, 10), (3, 0, 0, 20), (4, 0, 0, 11 + restarts.WITHIN)], []),  # seldom
        ([(1, 0, 0, 0), (2, 0, 0, 1), (3, 0, 0, 2), (4, 0, 0, 3), (5, 5, 0, 5), (6, 5, 0, 6), (7, 5, 0, 7), (8, 5, 0, 8)], [4, 8]),
    ],
)  # fmt: skip
def test_what_counts(life: list[tuple[int, float, float, float]], told: list[int]) -> None:
    """Epochs with the saved and the reported work, and the time at which they began."""
    found = Restarts()
    assert [epoch for epoch, saved, reported, now in life if found.starts("1", epoch, saved, reported, now)] == told
