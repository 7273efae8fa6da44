"""Lists of jobs: searched, sorted, paged, with places and expected starts, and sent once; several things changed at once."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from tests.live.service.asking import cancel, started
from tests.live.service.conftest import LIMIT, Running, until

from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.live.service.client import Client


@pytest.fixture(scope="module")
def queue(service: Running) -> Iterator[list[str]]:
    """Three jobs that wait behind one that holds everything."""
    owner = service.client()
    holder = started(owner, name="holder", resources={"gpus": 4}, estimate="1h")
    waiting = [
        owner.submit(["true"], name=name, resources={"gpus": gpus}, estimate="10m", labels={"team": team})[0]
        for name, gpus, team in (("Train bert", 2, "nlp"), ("eval", 3, "vision"), ("train vit", 1, "vision"))
    ]
    yield [holder, *waiting]
    left = [job["id"] for job in owner.jobs() if job["ended"] is None]
    cancel(owner, *left)


def ids(found: list[dict[str, object]]) -> list[object]:
    return [job["id"] for job in found]


def test_lists_are_searched_sorted_and_paged(owner: Client, queue: list[str]) -> None:
    holder, bert, evaluation, vit = queue
    assert ids(owner.jobs(q="TRAIN")) == [bert, vit]
    assert ids(owner.jobs(q="team=vis")) == [evaluation, vit]
    assert ids(owner.jobs(sort="gpus")) == [vit, bert, evaluation, holder]
    assert ids(owner.jobs(sort="-gpus", limit=2)) == [holder, evaluation]
    assert ids(owner.jobs(sort="-gpus", limit=2, offset=2)) == [bert, vit]
    assert ids(owner.jobs(sort="position"))[:3] == [bert, evaluation, vit], "jobs without a place come last"
    assert ids(owner.jobs(sort="-started"))[0] == holder
    for wrong in ({"sort": "colour"}, {"sort": "gpus", "before": bert}, {"offset": 1}):
        with pytest.raises((NotFoundError, UsageError)):
            owner.jobs(**wrong)


def test_jobs_that_wait_have_a_place_and_in_time_an_expected_start(owner: Client, queue: list[str]) -> None:
    found = {job["id"]: job for job in owner.jobs(id=queue)}
    assert [found[id]["position"] for id in queue] == [None, 1, 2, 3]
    listing = until(lambda: (now := owner.listing(forecast=True))["forecast"]["status"] == "ready" and now, "a forecast")
    jobs = {job["id"]: job for job in listing["jobs"]}
    assert jobs[queue[0]]["start_p50"] is None, "it runs"
    for id in queue[1:]:
        assert jobs[id]["submitted"] < jobs[id]["start_p50"] <= jobs[id]["start_p90"]
        one = owner.explain(id, wait=True)["forecast"]
        assert (one["starts_at_p50"], one["starts_at_p90"]) == (jobs[id]["start_p50"], jobs[id]["start_p90"])


def test_a_list_is_compressed_and_sent_once(service: Running) -> None:
    with httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {service.token}"}, trust_env=False, timeout=LIMIT) as http:
        found = http.get("/v1/policies")
        assert found.headers["content-encoding"] == "gzip"
        assert {"fifo", "las"} <= {one["name"] for one in found.json()["policies"]}
        assert "Infinity" not in found.text, "browsers cannot read that"
        assert http.get("/v1/policies", headers={"If-None-Match": found.headers["etag"]}).status_code == 304
        assert "content-encoding" not in http.get("/v1/policies", headers={"Accept-Encoding": "gzip;q=0"}).headers


def test_several_jobs_change_alike_or_none_does(owner: Client, queue: list[str]) -> None:
    _, bert, evaluation, _ = queue
    (over,) = owner.submit(["true"], name="over")
    cancel(owner, over)
    assert owner.set_many([bert, evaluation], priority=7) == [bert, evaluation]
    with pytest.raises(RefusedError, match="has ended"):
        owner.set_many([bert, over], priority=9)
    assert [job["priority"] for job in owner.jobs(id=[bert, evaluation])] == [7.0, 7.0]


def test_several_nodes_are_cordoned_or_none_is(owner: Client) -> None:
    with pytest.raises(NotFoundError):
        owner.cordon("cpu:0", "no-such")
    assert owner.nodes()[0]["cordoned"] == []
    owner.cordon("cpu:0", "cpu:3")
    assert owner.nodes()[0]["cordoned"] == ["cpu:0", "cpu:3"]
    owner.uncordon("cpu:0", "cpu:3")
    assert owner.nodes()[0]["cordoned"] == []


def test_another_policy_is_previewed_with_its_parameters(owner: Client, queue: list[str]) -> None:
    found = owner.what_if("las", samples=4, settings={"service": "time"})
    assert {one["metric"] for one in found["differences"]} == {"jct_mean", "wait_mean", "makespan"}
    for one in found["differences"]:
        assert one["low"] <= one["high"]
    with pytest.raises(UsageError, match="colour"):
        owner.what_if("las", samples=4, settings={"colour": "red"})


def test_a_queue_means_itself_and_those_below_it_and_none_whose_name_begins_alike(owner: Client) -> None:
    """Lists, and what a search leaves out."""
    jobs = {}
    for name in ("prod", "prod/nlp", "production", "prod-2"):
        owner.set_queue(name)
        (jobs[name],) = owner.submit(["sleep", "600"], queue=name)
    assert ids(owner.jobs(queue="prod")) == [jobs["prod"], jobs["prod/nlp"]]
    assert ids(owner.jobs(queue="production")) == [jobs["production"]]
    assert ids(owner.jobs(queue="prod/nlp")) == [jobs["prod/nlp"]]
    assert ids(owner.jobs(queue="pro")) == []
    cancel(owner, *jobs.values())
    for name in reversed(jobs):
        owner.drop_queue(name)
