"""Versions of the board: a client that applies the changes has what the whole board says, in any role, whatever happens to jobs."""

from __future__ import annotations

import gzip
import json
import random
from typing import Any

import numpy as np
import pytest
from tests.live.service.board_mirror import Mirror, events_in

from gantline.live.scheduler.view import DeviceView, JobView, QueueNow, View
from gantline.live.service import live_board as boards
from gantline.live.service.board_stream import Audience
from gantline.live.service.live_board import LiveBoard, queue_change

USERS = ("ann", "ben", "eve")


class Story:
    """A scheduler that does anything to jobs and devices, one view after another."""

    def __init__(self, seed: int, devices: int = 6) -> None:
        self.draw = random.Random(seed)
        self.jobs: dict[str, JobView] = {}
        self.devices = tuple(DeviceView(f"n{k // 2}:{k % 2}", "v100", f"n{k // 2}", True, ()) for k in range(devices))
        self.now = 0.0
        self.next = 0
        self.view = View(0.0, "fifo", {})

    def job(self, id: str, **changed: Any) -> JobView:
        base: dict[str, Any] = {
            "id": id, "name": f"job {id}", "user": self.draw.choice(USERS), "queue": "", "state": "pending", "reason": "resources",
            "why": "not enough free devices", "gpus": 1, "min_gpus": 1, "max_gpus": 1, "devices": (), "priority": 0.0,
            "submitted": self.now, "started": None, "finished": None, "exit_code": None, "epoch": 0, "restarts": 0, "failures": 0,
            "service": 0.0, "work": 0.0, "estimate": None, "array": "", "held": (), "lines": (), "progress": {}, "row": self.next,
        }  # fmt: skip
        if id in self.jobs:
            base |= {name: getattr(self.jobs[id], name) for name in base}
        return JobView(**{**base, **changed})

    def step(self) -> None:
        """Some jobs come, start, run on, end, come back or leave for the archive; devices are cordoned."""
        self.now += 1.0
        jobs = dict(self.jobs)
        for _ in range(self.draw.randrange(4)):
            id = str(self.next)
            jobs[id] = self.job(id)
            self.next += 1
        for id in self.draw.sample(sorted(jobs), min(3, len(jobs))):
            kind, job = self.draw.choice(["start", "tick", "tick", "end", "back", "archive", "rename"]), jobs[id]
            self.jobs[id] = job
            if kind == "start" and job.finished is None:
                jobs[id] = self.job(id, state="running", started=self.now, devices=(self.draw.choice(self.devices).name,))
            elif kind == "tick":
                jobs[id] = self.job(id, service=self.now)
            elif kind == "end" and job.finished is None:
                jobs[id] = self.job(id, state="succeeded", finished=self.now, devices=())
            elif kind == "back" and job.finished is not None:
                jobs[id] = self.job(id, state="pending", finished=None)
            elif kind == "archive" and job.finished is not None:
                del jobs[id]
            elif kind == "rename":
                jobs[id] = self.job(id, name=f"job {id} at {self.now}")
        self.jobs = jobs
        held = {name: id for id, job in jobs.items() for name in job.devices}
        place = self.draw.randrange(len(self.devices))
        self.devices = tuple(
            DeviceView(one.name, one.type, one.node, one.up != (k == place), (held[one.name],) if one.name in held else ())
            for k, one in enumerate(self.devices)
        )
        waiting = [int(job.id) for job in jobs.values() if job.state == "pending"]
        if self.draw.random() < 0.3:
            self.draw.shuffle(waiting)
        standing = QueueNow(int(self.now), np.array(waiting, dtype=np.int64), [str(k) for k in range(self.next)], True)
        self.view = View(self.now, "fifo", {}, jobs, self.devices, standing=standing)


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "PAUSE", 0.0)


def whole(audience: Audience) -> Mirror:
    return Mirror(json.loads(gzip.decompress(audience.whole()[1])))


@pytest.mark.parametrize("user", [None, "ann", "stranger"])
@pytest.mark.parametrize("seed", range(8))
def test_changes_add_up_to_the_whole_board(user: str | None, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "ENDED_SHOWN", 3)
    story = Story(seed)
    board = LiveBoard(lambda: story.view, lambda at: at)
    audience = Audience(board, user)
    story.step()
    mirror, number = whole(audience), board.number
    for _ in range(60):
        story.step()
        board.look()
        for change in board.since(number):
            ((_, told),) = events_in(audience.frame(change))
            mirror.apply(told)
        number = board.number
        assert mirror.same_as(whole(audience))
        states = [job.state for job in story.jobs.values()]
        counted = {"busy": sum(bool(one.jobs) for one in story.devices), "cordoned": sum(not one.up for one in story.devices)}
        counted |= {"running": states.count("running"), "waiting": states.count("pending"), "devices": len(story.devices)}
        assert {name: mirror.head[name] for name in counted} == counted
        shown = {row[1] for row in mirror.rows.values()} - {"-"}
        assert shown <= {job.id for job in story.jobs.values() if user in (None, job.user)}
        assert len(mirror.rows) >= sum(job.finished is None for job in story.jobs.values()), "a job that others have is absent"


def test_of_other_users_one_learns_only_that_their_jobs_are_there() -> None:
    story = Story(1)
    story.jobs = {"0": story.job("0", user="ben", name="secret", queue="hidden", why="hidden", progress={"loss": 3.25}, priority=17.0)}
    story.view = View(1.0, "fifo", {}, story.jobs, story.devices)
    text = gzip.decompress(Audience(LiveBoard(lambda: story.view, lambda at: at), "ann").whole()[1]).decode()
    assert '"id":["-"]' in text
    assert '"state":["pending"]' in text
    for hidden in ("ben", "secret", "hidden", "3.25", "17.0"):
        assert hidden not in text


def test_a_job_that_only_ran_on_is_no_change() -> None:
    story = Story(2)
    story.jobs = {"0": story.job("0", state="running", started=0.0)}
    story.view = View(1.0, "fifo", {}, story.jobs, story.devices)
    board = LiveBoard(lambda: story.view, lambda at: at)
    first = board.look()
    story.view = View(2.0, "fifo", {}, {"0": story.job("0", service=2.0, work=2.0)}, story.devices)
    assert board.look() == first
    story.view = View(3.0, "las", {}, {"0": story.job("0", service=3.0)}, story.devices)
    assert board.look() == first + 1
    assert board.head["policy"] == "las"


def test_versions_of_another_life_and_of_long_ago_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(3)
    story.step()
    board, other = (LiveBoard(lambda: story.view, lambda at: at) for _ in range(2))
    board.look()
    other.look()
    first = board.version
    assert board.number_of(first) == 1
    for odd in (other.version, "", "x", ".", f"{first}0", f"{first.partition('.')[0]}.-1", "9" * 500):
        assert board.number_of(odd) is None
    for _ in range(boards._REMEMBERED + 5):
        story.step()
        board.look()
    assert board.number_of(first) is None
    latest = board.number_of(board.version)
    assert latest == board.number
    assert board.since(latest) == []


def test_other_nodes_are_another_board() -> None:
    story = Story(4)
    story.step()
    board = LiveBoard(lambda: story.view, lambda at: at)
    board.look()
    before, layout = board.version, board.layout
    story.view = View(9.0, "fifo", {}, story.jobs, (*story.devices, DeviceView("new:0", "a100", "new", True, ())))
    board.look()
    assert board.layout == layout + 1
    assert board.number_of(before) is None
    assert board.nodes[-1] == ("new", "a100", 6, 1)


def test_an_order_is_told_by_what_entered_and_left_or_as_a_whole() -> None:
    before = np.array([1, 2, 3])
    assert queue_change(before, np.array([1, 2, 3])) is None
    assert queue_change(before, np.array([2, 4, 3, 5])) == {"drop": [1], "add": [[1, 4], [3, 5]]}
    assert queue_change(before, np.array([3, 2, 1])) == {"all": [3, 2, 1]}


def test_many_jobs_that_ended_long_ago_do_not_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "ENDED_SHOWN", 5)
    story = Story(5)
    for k in range(50):
        story.next = k
        story.jobs[str(k)] = story.job(str(k), state="succeeded", finished=float(k % 10))
    story.view = View(60.0, "fifo", {}, story.jobs, story.devices)
    board = LiveBoard(lambda: story.view, lambda at: at)
    board.look()
    assert [row[1] for row in board.rows.values()] == ["9", "19", "29", "39", "49"]
