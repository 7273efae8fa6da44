"""Questions put to another process."""

from __future__ import annotations

import pytest
from tests.lab.questions.test_explain import JOBS

from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.lab.questions.asker import Asker

NOW = {"now": 600, "cluster": "2x4", "jobs": JOBS}


@pytest.fixture(scope="module")
def asker():
    found = Asker()
    yield found
    found.close()


def question(ask, **more):
    return {"ask": ask, "snapshot": NOW, "policy": "fifo", "samples": 2, "sigma": 0.0, **more}


def test_one_worker_answers_one_question_after_the_other(asker):
    assert asker.ask(question("explain", job="new"))["waits_for"] == ["small"]
    pid = asker._worker.pid
    assert [one["job"] for one in asker.ask(question("forecast", jobs=["wide"]))["jobs"]] == ["wide"]
    assert asker.ask(question("what-if", other="srtf"))["other"] == "srtf"
    assert asker._worker.pid == pid


def test_the_past_is_asked_about_with_its_rows(asker):
    rows = [
        {"job": f"j{k}", "arrival": 10.0 * k, "gpus": 2, "duration": 100.0 - k, "started": 10.0 * k, "ended": 120.0 + 9 * k}
        for k in range(9)
    ]
    found = asker.ask({"ask": "past", "policy": "fifo", "jobs": rows, "cluster": "1x4", "other": "srtf", "replicas": 2})
    assert found["jobs"] == 9
    assert {one["metric"] for one in found["errors"]} == {"jct_mean", "queueing_mean", "makespan"}
    with pytest.raises(UsageError, match="no jobs"):
        asker.ask({"ask": "past", "policy": "fifo", "jobs": [], "cluster": "1x4", "other": "srtf"})


def test_refusals_come_back_as_what_they_were(asker):
    with pytest.raises(NotFoundError, match="no job 'nobody'"):
        asker.ask(question("explain", job="nobody"))
    with pytest.raises(UsageError, match="no question 'sing'"):
        asker.ask(question("sing"))
    assert asker.ask(question("explain", job="new"))["act"] == "waits"


def test_a_snapshot_is_sent_once_for_questions_about_it_and_read_whenever_it_is_sent(asker):
    def about_now(**more):
        asked = {name: value for name, value in question("explain", job="new", **more).items() if name != "snapshot"}
        return asker.ask(asked, "7", lambda: sent.append(NOW) or NOW)

    sent = []
    with pytest.raises(NotFoundError, match="no policy 'fifi'"):
        about_now(policy="fifi")  # refused before the snapshot was decoded
    assert [about_now()["act"], about_now()["act"], len(sent)] == ["waits", "waits", 2]

    emptier = {**NOW, "jobs": [job for job in JOBS if job["id"] == "new"]}
    asker._about = ""  # as where another service takes over the worker and its own states have the same names
    asked = {name: value for name, value in question("explain", job="new").items() if name != "snapshot"}
    assert asker.ask(asked, "7", lambda: emptier)["act"] == "starts"


def test_an_answer_that_takes_too_long_is_given_up_and_the_next_one_comes(asker, tmp_path):
    slow = tmp_path / "slow.py"
    slow.write_text(
        """
import time
from dataclasses import dataclass

from gantline import OrderPolicy


@dataclass(frozen=True)
class Slow(OrderPolicy):
    def key(self, snapshot):
        time.sleep(600)
"""
    )
    asker.limit = 0.2
    with pytest.raises(RefusedError, match=r"no answer within 0\.2 s"):
        asker.ask({**question("explain", job="new"), "policy": f"{slow}:Slow"})
    assert asker._worker is None
    asker.limit = 120.0
    assert asker.ask(question("explain", job="new"))["act"] == "waits"
