"""What a service says of its policy: notes of plans as they come, and at every start what its assembly noticed."""

from __future__ import annotations

from pathlib import Path

from tests.engine.states import engine_of
from tests.live.specs import running

from gantline.engine.policy_failures import Incident
from gantline.live.scheduler.setup import Setup
from gantline.live.scheduler.store_writer import PolicyWords
from gantline.live.store.records import MemoryStore


def test_what_was_noticed_at_the_start_is_said_once_and_what_a_journal_repeats_is_not() -> None:
    engine = engine_of([{"job": "a", "arrival": 0.0, "gpus": 1, "duration": 1.0}], "1x1")
    engine.notices, engine.said_at_start = [Incident(0.0, 0, "at the start"), Incident(5.0, 1, "replayed")], 1
    words = PolicyWords(engine)

    assert [entry.value["why"] for entry in words.events()] == ["at the start"]
    engine.notices.append(Incident(9.0, 2, "later"))
    assert [entry.value["why"] for entry in words.events()] == ["later"]


def test_a_live_service_says_that_its_placement_decides_nothing(tmp_path: Path) -> None:
    store = MemoryStore()
    with running(tmp_path, "cpu:1", "gandiva.introspective", store, setup=Setup(placement="consolidated")):
        pass

    said = [event["why"] for event in store.events(limit=100) if event["event"] == "notice"]
    assert said == ["placement 'consolidated' decides nothing: policy 'gandiva.introspective' names the devices of its gangs itself"]
