"""Questions put to a live service: why, when, and what if."""

from __future__ import annotations

import pytest
from tests.service.conftest import Running, until

from gantline.core.errors import NotFoundError, RefusedError


def test_a_job_that_waits_is_explained_to_its_owner(service: Running) -> None:
    client = service.client("asker", "submitter")
    ahead = client.submit(["sleep", "300"], name="ahead", resources={"accelerators": "3"})[0]
    waits = client.submit(["sleep", "1"], name="waits", resources={"accelerators": "2"})[0]
    until(lambda: client.job(ahead)["state"] == "running", "the first one runs")
    told = client.explain(waits, samples=4)
    assert told["act"] == "waits"
    assert [one["job"] for one in told["ahead"] if one["holds"]] == [ahead]
    assert ("gpus", 1) in [(change["what"], change["value"]) for change in told["changes"]]
    assert told["expected"]["start_p50"] is not None
    found = client.forecast(samples=4)
    assert {one["job"] for one in found["jobs"]} >= {ahead, waits}

    with pytest.raises(NotFoundError):
        service.client("stranger", "submitter").explain(waits)
    with pytest.raises(RefusedError):
        client.what_if("srtf")  # for operators

    operator = service.client("chief", "operator")
    answer = operator.what_if(add="cpu:1x4", samples=4)
    assert {one["metric"]: one["other"] < one["present"] for one in answer["differences"]}["wait_mean"]
    with pytest.raises(NotFoundError, match="no policy"):
        operator.what_if("/etc/passwd:Policy")

    client.cancel(ahead)
    until(lambda: client.job(waits)["state"] == "succeeded", "the second one ran")
    assert client.explain(waits)["act"] == "succeeded"
    past = operator.past_what_if("srtf", replicas=2)
    assert past["jobs"] >= 1
    assert past["errors"]
