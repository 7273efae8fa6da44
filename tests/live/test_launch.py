"""How a job is run survives the store."""

from __future__ import annotations

import json

from gantline.live.jobs.launch import Launch
from gantline.live.store.records import Entry, MemoryStore


def test_what_is_written_is_read_back() -> None:
    launch = Launch(
        ("sh", "-c", "true"), env={"A": "1"}, after=(("7", "ok"),), time_limit=60.0, changes=("devices",), array="3", array_index=0
    )
    assert Launch.from_json(json.loads(json.dumps(launch.to_json()))) == launch


def test_only_what_differs_from_the_default_is_written() -> None:
    assert Launch(("true",)).to_json() == {"command": ["true"]}


def test_news_of_a_job_add_up() -> None:
    store = MemoryStore()
    store.append(
        [Entry("job", {"id": "1", "user": "ann"}), Entry("journal", {"input": "submit"}), Entry("job", {"id": "1", "state": "running"})]
    )
    assert list(store.jobs()) == [{"id": "1", "user": "ann", "state": "running"}]
    assert list(store.journal()) == [(1, {"input": "submit"})]
