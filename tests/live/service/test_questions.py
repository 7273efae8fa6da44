"""Questions put to a live service: why, when, and what if."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.live.service.asking import becomes
from tests.live.service.conftest import Running

from gantline.cli.main import main
from gantline.core.errors import NotFoundError, RefusedError
from gantline.live.service import questions as asking
from gantline.simulator.simulate import simulate


def test_a_job_that_waits_is_explained_to_its_owner(service: Running) -> None:
    client = service.client("asker", "submitter")
    ahead = client.submit(["sleep", "300"], name="ahead", resources={"accelerators": "3"}, estimate="5m")[0]
    waits = client.submit(["sleep", "1"], name="waits", resources={"accelerators": "2"})[0]
    becomes(client, ahead)
    told = client.explain(waits, samples=4)
    assert (told["act"], told["position"], told["needs"], told["free"]) == ("waits", 1, 2, {"cpu": 1})
    assert told["why"] == "not enough free devices: needs 2 devices, 1 of 4 is free"
    assert [one["job"] for one in told["ahead"] if one["holds"]] == [ahead]
    assert told["forecast"] == {"status": "pending"}, "nobody had to wait for it"
    told = client.explain(waits, samples=4, wait=True)["forecast"]
    assert ("gpus", 1) in [(change["what"], change["value"]) for change in told["changes"]]
    assert told["start_p50"] is not None
    assert (told["estimated"], told["finish_p50"]) == (False, None), "nobody said how long it takes"
    found = client.forecast(samples=4)
    assert found["over"].endswith("no new jobs")
    with pytest.raises(RefusedError, match="too few to say how others come"):
        client.forecast(samples=4, newcomers=True)
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
    becomes(client, waits, "succeeded")
    assert client.explain(waits)["act"] == "succeeded"
    past = operator.past_what_if("srtf", replicas=2)
    assert past["jobs"] >= 1
    assert past["errors"]


def test_a_dry_run_behind_thousands_answers_position_and_reason_whatever_forecasts_take(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No time at all for futures, and then a limit that no worker keeps to."""
    owner = service.client()
    (runs,) = owner.submit(["sleep", "600"], resources={"gpus": 4}, estimate="1h")
    waits = owner.submit(["true"], array="0-2999", estimate="1m")
    becomes(owner, runs)
    monkeypatch.setattr(asking, "_PROMPT_SECONDS", 0.0)
    told = owner.submission(["true"], dry_run=True, estimate="1m")["then"]
    assert (told["act"], told["position"], told["waiting"]) == ("waits", 3001, 3001)
    assert (told["expected"], told["unknown"], told["samples"]) == (None, "not within 0 s of CPU", 0)
    assert told["lines"] == [f"it would wait, as number 3001: {told['why']}", "expected start not within 0 s of CPU"]
    monkeypatch.setattr(asking, "_PROMPT_LIMIT", 1e-6)
    late = owner.submission(["true"], dry_run=True, estimate="1m")["then"]
    assert (late["position"], late["why"], late["unknown"]) == (3001, told["why"], "no answer within 1e-06 s")
    assert late["lines"][1] == "no start can be named: no answer within 1e-06 s"
    owner.cancel(waits[0].partition("_")[0], runs)
    becomes(owner, waits[-1], "cancelled")


def test_the_past_is_a_trace_that_the_simulator_reads(service: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    client = service.client()
    id = client.submit(["true"], name="told")[0]
    becomes(client, id, "succeeded")
    told = client.history()
    row = {job["job"]: job for job in told["jobs"]}[id]
    assert row["arrival"] <= row["started"] <= row["ended"]
    assert len(told["limits"]) >= 3
    assert main(["history", str(tmp_path / "past.csv"), "--home", str(service.home)]) == 0
    assert "only jobs that succeeded" in capsys.readouterr().err
    run = simulate(tmp_path / "past.csv", "cpu:1x4", "fifo")
    assert id in run.jobs["job"].to_list()


def test_a_folder_of_a_service_replays(service: Running, capsys: pytest.CaptureFixture[str]) -> None:
    client = service.client()
    id = client.submit(["true"], name="again")[0]
    becomes(client, id, "succeeded")
    assert main(["replay", str(service.home), "-o", "json"]) == 0, capsys.readouterr().err
    assert json.loads(capsys.readouterr().out)["same"] is True
