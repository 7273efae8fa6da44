"""Windows of the past: what was held when, as a picture and as lines, live and of a stored run."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
from tests.live.service.asking import over
from tests.live.service.conftest import LIMIT, Running, until

from gantline.core.errors import UsageError
from gantline.live.scheduler.view import DeviceView, View
from gantline.live.service.client import Client
from gantline.live.service.occupancy import LivePast, Occupancy, occupancy_of
from gantline.live.service.past_windows import fair_shares, gantt_of, means, series_of_window
from gantline.simulator.simulate import simulate
from gantline.traces.trace import Trace


def state(number: int, time: float, job: str, state: str, *devices: str) -> dict[str, Any]:
    return {"number": number, "event": "state", "time": time, "job": job, "state": state, "devices": list(devices)}


class Events:
    def __init__(self, *rows: dict[str, Any]) -> None:
        self.rows, self.read = list(rows), 0

    def events(self, *, after: int = 0, limit: int = 2) -> list[dict[str, Any]]:
        found = [row for row in self.rows if row["number"] > after][:2]
        self.read += len(found)
        return found


def past_of(store: Events, now: float, **jobs: Any) -> LivePast:
    devices = tuple(DeviceView(f"n{k // 2}:{k % 2}", "v100", f"n{k // 2}", True, ()) for k in range(4))
    return LivePast(store, lambda: View(now, "fifo", {}, jobs, devices), lambda at: 1000.0 + at, lambda: 1000.0 + now)


def known(id: str, state: str, queue: str, gpus: int, submitted: float = 0.0) -> Any:
    return SimpleNamespace(id=id, name="", user="ann", queue=queue, gpus=gpus, state=state, submitted=submitted)


STORY = (
    state(1, 0, "1", "pending"), state(2, 0, "2", "pending"), state(3, 0, "1", "starting", "n0:0", "n0:1"),
    state(4, 1, "1", "running", "n0:0", "n0:1"), state(5, 4, "1", "succeeded"), state(6, 4, "2", "running", "n1:1"),
    {"number": 7, "event": "finished", "time": 5.0, "job": "1"},
)  # fmt: skip


def every_job(job: object) -> bool:
    return True


def painted(found: dict[str, Any]) -> list[str]:
    """The picture as text: a letter per pixel, the last of a job's id."""
    rows = [["."] * found["width"] for _ in found["rows"]]
    for row, left, right, job in zip(*(found["spans"][name] for name in ("row", "x0", "x1", "job")), strict=True):
        rows[row][left:right] = found["jobs"]["id"][job][-1] * (right - left)
    return ["".join(row) for row in rows]


def test_events_become_stays_and_each_is_read_once() -> None:
    store = Events(*STORY)
    past = past_of(store, 8.0)
    found = past.occupancy()
    assert [(found.jobs[j].id, a, b) for j, a, b in zip(found.job, found.start, found.stop)] == [("1", 1000, 1004), ("2", 1004, 1008)]
    assert [(found.jobs[j].id, a, b) for j, a, b in zip(found.wait_job, found.wait_start, found.wait_stop)] == [("2", 1000, 1004)]
    store.rows.append(state(8, 6, "2", "pending"))
    again = past.occupancy()
    assert again.stop.tolist() == [1004, 1006]
    assert store.read == len(store.rows)


def test_a_picture_shows_who_has_which_device_and_a_zoom_draws_it_again() -> None:
    past = past_of(Events(*STORY), 8.0).occupancy()
    assert painted(gantt_of(past, 1000, 1008, 8, 10, every_job)) == ["1111....", "1111....", "........", "....2222"]
    assert painted(gantt_of(past, 1003, 1005, 4, 10, every_job)) == ["11..", "11..", "....", "..22"]
    small = gantt_of(past, 1000, 1008, 4, 2, every_job)
    assert [row["count"] for row in small["rows"]] == [2, 2]
    assert painted(small) == ["11..", "..22"]
    assert small["spans"]["busy"][0] > small["spans"]["busy"][1], "one of two devices is busy"
    hidden = gantt_of(past, 1000, 1008, 8, 10, lambda job: job.id == "2")
    assert sorted(hidden["jobs"]["id"]) == ["-", "2"]
    with pytest.raises(UsageError, match="too many"):
        gantt_of(past, 1000, 1008, 10**7, 4, every_job)


def test_lines_are_means_and_shares_by_weight() -> None:
    past = past_of(Events(*STORY), 8.0).occupancy()
    found = series_of_window(past, 1000, 1008, 4, {}, every_job)
    assert (found["busy"], found["running"], found["waiting"]) == ([2, 2, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0])
    assert found["held"]["user"] == {"": [2, 2, 1, 1]}
    assert means(np.array([0.0, 1.0, 2.0]), np.array([0.5]), np.array([9.0]), np.array([4.0])).tolist() == [2.0, 4.0]
    demand = np.array([[1.0, 8.0], [8.0, 8.0], [8.0, 0.0]])
    shares = fair_shares(demand, np.array([1.0, 1.0, 2.0]), 8.0)
    assert np.allclose(shares.T, [[1.0, 7 / 3, 14 / 3], [4.0, 4.0, 0.0]]), "what one does not ask for is shared by the others"


def test_a_queue_that_waits_is_due_its_share_from_submission_on() -> None:
    store = Events(state(1, 1, "1", "running", "n0:0", "n0:1", "n1:0"))
    jobs = {"1": known("1", "running", "large", 3, submitted=0.5), "2": known("2", "pending", "small", 4, submitted=0.0)}
    past = past_of(store, 8.0, **jobs).occupancy()
    found = series_of_window(past, 1004, 1008, 2, {"small": 3.0}, every_job)
    assert (found["waiting"], found["held"]["queue"]["large"]) == ([1, 1], [3, 3])
    assert found["due"]["queue"] == {"large": [1, 1], "small": [3, 3]}
    assert sorted(past.wait_stop - past.wait_start) == [0.5, 8.0]


@pytest.mark.parametrize(("begin", "end", "words"), [(5.0, 5.0, "empty"), (9.0, 5.0, "before it begins")])
def test_a_window_that_is_empty_or_reversed_is_refused(begin: float, end: float, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        past_of(Events(), 8.0).occupancy().window(begin, end, 10.0)


def test_a_service_without_a_past_has_an_empty_picture() -> None:
    past = past_of(Events(), 8.0).occupancy()
    begin, end = past.window(None, None, 86400.0)
    assert painted(gantt_of(past, begin, end, 3, 10, every_job)) == ["..."] * 4
    assert series_of_window(past, begin, end, 2, {}, every_job)["busy"] == [0, 0]


def test_a_stored_run_adds_up_to_what_its_jobs_held_and_waited() -> None:
    jobs = Trace.from_records([{"job": str(k), "arrival": 10.0 * k, "duration": 50.0 + 7 * k, "gpus": 1 + k % 3} for k in range(12)])
    run = simulate(jobs, "2x2", "las", round=20)
    past: Occupancy = occupancy_of(run)
    assert past.nodes == [("node0", 2), ("node1", 2)]
    sizes = np.diff(past.first)
    assert math.isclose(float(((past.stop - past.start) * sizes).sum()), float(run.jobs["gpu_seconds"].sum()))
    waited = np.bincount(past.wait_job, past.wait_stop - past.wait_start, minlength=12)
    assert np.allclose(waited, run.jobs["queueing"].to_numpy())
    found = series_of_window(past, past.begin, past.end, 7, {}, every_job)
    piece = (past.end - past.begin) / 7
    assert math.isclose(sum(found["busy"]) * piece, float(run.jobs["gpu_seconds"].sum()), rel_tol=1e-4)


def test_jobs_of_a_run_that_was_stopped_wait_or_run_to_its_end() -> None:
    jobs = Trace.from_records([{"job": str(k), "arrival": 5.0 * k, "duration": 60.0, "gpus": 2} for k in range(6)])
    past = occupancy_of(simulate(jobs, "1x2", "las", round=20, until=100.0))
    held = np.bincount(past.job, past.stop - past.start, minlength=len(past.jobs))
    waited = np.bincount(past.wait_job, past.wait_stop - past.wait_start, minlength=len(past.jobs))
    assert past.end == 100.0
    assert np.allclose(held + waited, [100.0 - 5.0 * int(job.id) for job in past.jobs]), "none of them has ended"


def test_windows_over_http(service: Running, owner: Client, tmp_path: Path) -> None:
    (id,) = owner.submit(["sleep", "1"], name="seen")
    over(owner, id)

    def get(path: str, **params: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {service.token}"}
        return httpx.get(f"{service.url}{path}", params=params, headers=headers, trust_env=False, timeout=LIMIT)

    job = owner.job(id)
    window = {"from": job["submitted"] - 1, "to": job["ended"] + 1}
    found = until(lambda: (now := get("/v1/gantt", **window, width=50).json())["jobs"]["id"] == [id] and now)
    assert found["jobs"]["name"] == ["seen"]
    assert [row["name"] for row in found["rows"]] == ["cpu:0", "cpu:1", "cpu:2", "cpu:3"]
    series = get("/v1/series", **window, width=20).json()
    assert len(series["time"]) == 21
    assert sum(series["busy"]) * (window["to"] - window["from"]) / 20 > 0.5
    for wrong in ({"from": 5, "to": 5}, {"from": 9, "to": 5}, {"from": "nan"}, {"width": 0}, {"width": 10**6}, {"since": 3}):
        told = get("/v1/gantt", **wrong)
        assert told.status_code == 400, wrong
        assert told.json()["error"]["what"]
    looker = owner.create_token("past-looker", "viewer")["token"]
    given = {"headers": {"Authorization": f"Bearer {looker}"}, "params": window, "trust_env": False, "timeout": LIMIT}
    assert httpx.get(f"{service.url}/v1/gantt", **given).json()["jobs"]["id"] == ["-"]
