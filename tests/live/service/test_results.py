"""Finished simulations on the dashboard: of a folder of any size, whole and broken ones, for users who have logged in."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.live.service.conftest import LIMIT

from gantline.cli.main import main
from gantline.core.errors import NotFoundError
from gantline.lab.experiment.records import kept_run
from gantline.lab.report.rundir import write_run
from gantline.live.service import results_folder as folders
from gantline.live.service.results_folder import ResultsFolder
from gantline.live.service.viewer import view_server
from gantline.simulator.simulate import simulate
from gantline.traces.trace import Trace


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, a comparison, a run that lacks a file, and something else."""
    place = tmp_path_factory.mktemp("results")
    rows = [{"job": str(k), "arrival": 5.0 * k, "duration": 30.0 + k, "gpus": 1 + k % 2, "user": "ann"} for k in range(8)]
    jobs = Trace.from_records(rows)
    for policy in ("fifo", "srtf"):
        write_run(simulate(jobs, "2x2", policy), place / "runs" / policy)
    write_run(simulate(jobs, "2x2", "las"), place / "broken")
    (place / "broken" / "jobs.parquet").write_bytes(b"no table")
    (place / "half").mkdir()
    (place / "half" / "summary.json").write_text("{", encoding="utf-8")
    (place / "notes").mkdir()
    jobs.frame.write_csv(place / "jobs.csv")
    wanted = ["compare", str(place / "jobs.csv"), "--policy", "fifo,srtf", "--cluster", "2x2", "--out", str(place / "sweep")]
    assert main(wanted) == 0
    case = json.loads((place / "sweep" / "sweep.json").read_text(encoding="utf-8"))["cases"][0]
    shutil.copytree(place / "runs" / "fifo", kept_run(place / "sweep" / "runs", case["hash"]))  # as if it had been kept
    return place


@contextmanager
def looking_at(folder: Path) -> Iterator[httpx.Client]:
    """A client that has logged in to a server of that folder."""
    found = view_server(folder)
    thread = threading.Thread(target=found.run, daemon=True)
    thread.start()
    url, _, code = found.url.partition("/#login=")
    with httpx.Client(base_url=url, trust_env=False, timeout=LIMIT) as http:
        http.headers["Authorization"] = f"Bearer {http.post('/v1/login', json={'code': code}).json()['token']}"
        yield http
    found.server.should_exit = True
    thread.join(LIMIT)


@pytest.fixture(scope="module")
def client(results: Path) -> Iterator[httpx.Client]:
    with looking_at(results) as http:
        yield http


def get(client: httpx.Client, path: str, **params: Any) -> dict[str, Any]:
    found = client.get(path, params=params)
    assert found.status_code == 200, found.text
    return dict(found.json())


def test_results_are_listed_by_name_and_broken_ones_say_why(client: httpx.Client) -> None:
    found = {one["name"]: one for one in get(client, "/v1/runs")["runs"]}
    assert (found["runs/fifo"]["kind"], found["runs/fifo"]["policy"]) == ("run", "fifo")
    assert found["half"]["kind"] == "broken"
    assert found["half"]["error"]
    assert "notes" not in found
    assert [one["name"] for one in get(client, "/v1/runs", q="SRTF")["runs"]] == ["runs/srtf"]
    paged = get(client, "/v1/runs", limit=1, offset=1)
    assert len(paged["runs"]) == 1
    assert paged["total"] == len(found)


def test_a_run_has_metrics_a_picture_and_lines(client: httpx.Client) -> None:
    found = get(client, "/v1/runs/detail", name="runs/srtf")
    values = {one["key"]: one["value"] for one in found["measures"]}
    assert values["completed"] == 8
    picture = get(client, "/v1/runs/gantt", name="runs/srtf", width=40)
    assert [row["name"] for row in picture["rows"]] == ["node0:0", "node0:1", "node1:0", "node1:1"]
    assert sorted(picture["jobs"]["id"]) == [str(k) for k in range(8)]
    lines = get(client, "/v1/runs/series", name="runs/srtf", width=10)
    assert len(lines["busy"]) == 10
    assert lines["held"]["user"]["ann"] == lines["busy"]
    for wrong in ({"from": 9, "to": 3}, {"from": 3, "to": 3}):
        refused = client.get("/v1/runs/gantt", params={"name": "runs/srtf", **wrong})
        assert refused.status_code == 400
        assert "window" in refused.json()["error"]["what"]


def test_a_broken_run_says_so_and_a_missing_one_is_not_found(client: httpx.Client) -> None:
    for name in ("broken", "half"):
        found = get(client, "/v1/runs/detail", name=name)
        assert found["kind"] == "broken"
        assert found["error"]
        assert client.get("/v1/runs/gantt", params={"name": name}).status_code == 400
    for name in ("no-such", "..", "../..", "/etc", "runs/../../x", "a" * 900):
        assert client.get("/v1/runs/detail", params={"name": name}).status_code == 404
    assert client.get("/v1/runs/detail", params={"name": "a" * 10_000}).status_code == 400


def test_a_sweep_is_a_table_over_its_axes(results: Path, client: httpx.Client) -> None:
    found = get(client, "/v1/runs/detail", name="sweep")
    assert found["kind"] == "sweep"
    assert found["axes"][0] == "policy"
    assert {row["policy"] for row in found["rows"]} == {"fifo", "srtf"}
    assert all(row["jct_mean"] > 0 for row in found["rows"])
    assert found["lines"]
    kept = [row["run"] for row in found["rows"] if row["run"]]
    assert get(client, "/v1/runs/detail", name=kept[0])["kind"] == "run"


def test_nothing_is_shown_without_a_session_and_nothing_can_be_changed(client: httpx.Client) -> None:
    for path in ("/v1/runs", "/v1/me", "/v1/jobs", "/v1/board"):
        assert client.get(path, headers={"Authorization": ""}).status_code == 401
    assert get(client, "/v1/me")["kind"] == "view"
    assert set(get(client, "/v1/me")["may"]) == {"login", "make_code", "me", "list_runs", "get_run", "get_run_series", "get_run_gantt"}
    assert client.post("/v1/jobs", json={"run": ["true"]}).status_code == 404
    assert client.get("/v1/runs", headers={"Host": "evil.example"}).status_code == 409


def test_thousands_of_results_are_listed_and_only_a_page_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 3_000
    for k in range(count):
        os.mkdir(tmp_path / f"r{k:06}")
        os.link(_summary(tmp_path), tmp_path / f"r{k:06}" / "summary.json")
    reads: list[str] = []
    plain = folders.about
    monkeypatch.setattr("gantline.live.service.routes.runs.about", lambda one: (reads.append(one.name), plain(one))[1])
    with looking_at(tmp_path) as http:
        found = get(http, "/v1/runs", limit=5, offset=count - 5)
    assert found["total"] == count
    assert [one["name"] for one in found["runs"]] == reads == [f"r{k:06}" for k in range(count - 5, count)]


def _summary(folder: Path) -> Path:
    file = folder / "summary.json.linked"
    if not file.exists():
        file.write_text(json.dumps({"summary": {"policy": "fifo"}}), encoding="utf-8")
    return file


def test_new_results_are_seen_and_a_folder_that_goes_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "_PAUSE", 0.0)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    folder = ResultsFolder(tmp_path / "deep")
    assert folder.results() == {}
    (tmp_path / "deep" / "er" / "new").mkdir()
    (tmp_path / "deep" / "er" / "new" / "summary.json").write_text("{}", encoding="utf-8")
    monkeypatch.setattr(folder, "_again", 0.0)
    assert [*folder.results()] == ["er/new"]
    with pytest.raises(NotFoundError, match="cannot be read"):
        ResultsFolder(tmp_path / "gone").results()


def test_the_command_prints_an_address_that_logs_in(results: Path) -> None:
    command = [sys.executable, "-m", "gantline", "view", str(results), "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        url, _, code = child.stdout.readline().strip().partition("/#login=")
        try:
            session = httpx.post(f"{url}/v1/login", json={"code": code}, trust_env=False, timeout=60.0).json()
            headers = {"Authorization": f"Bearer {session['token']}"}
            assert httpx.get(f"{url}/v1/runs", headers=headers, trust_env=False, timeout=60.0).json()["total"] >= 3
            assert httpx.get(f"{url}/", trust_env=False, timeout=60.0).status_code == 200
        finally:
            child.terminate()
