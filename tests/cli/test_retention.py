"""Jobs that have left the store, as users and operators meet them: every command answers, and nobody sees more than before."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.cli.conftest import Cli
from tests.cli.test_live import home, up, up_here
from tests.live.service.conftest import Running, serving
from tests.waiting import LIMIT, until

from gantline.lab.report.rundir import read_run
from gantline.live.runners.local.output import Log
from gantline.live.service.client import Client
from gantline.live.service.home import Home, Options


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Five jobs and an array have ended; of them only the newest is at hand."""
    home = Home(tmp_path_factory.mktemp("home") / "gantline")
    running = serving(home, devices="cpu:4", keep={"jobs": 1})
    owner, ann = running.client(), running.client("ann")
    jobs = [*owner.submit(["sh", "-c", "echo first"], name="first", labels={"team": "nlp"}), *ann.submit(["false"], name="anns")]
    jobs += [*owner.submit(["true"], array="0-1", name="tasks"), *owner.submit(["true"], name="last")]
    for job in jobs:
        owner.wait(job)
    owner.wait(*owner.submit(["true"], name="newest"))
    owner.compact()
    yield running
    running.stop()


@pytest.fixture
def owner(service: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Client:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GANTLINE_HOME", str(service.home))
    for name in ("GANTLINE_URL", "GANTLINE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return service.client()


def test_they_are_listed_apart_with_the_same_filters(cli: Cli, owner: Client) -> None:
    assert [job["name"] for job in owner.jobs()] == ["newest"]
    old = owner.jobs(archived=True)
    assert [job["name"] for job in old] == ["first", "anns", "tasks", "tasks", "last"]
    assert all(job["archived"] for job in old)
    assert [job["name"] for job in owner.jobs(archived=True, state=["failed"])] == ["anns"]
    assert cli("get jobs --archived -l team=nlp -o name").out.split() == ["1"]
    assert cli("get jobs --archived --user ann -o name").out.split() == ["2"]
    page = owner.listing(archived=True, limit=2)
    assert ([job["id"] for job in page["jobs"]], page["total"], page["next"]) == (["3_1", "4"], 5, "3_1")
    assert [job["id"] for job in owner.listing(archived=True, limit=2, before="3_1")["jobs"]] == ["2", "3_0"]
    refused = cli("get jobs --archived --watch")
    assert refused.code == 2
    assert "do not change" in refused.err


def test_commands_that_look_answer_as_before(cli: Cli, owner: Client) -> None:
    shown = json.loads(cli("describe job 1 -o json").out)
    assert (shown["state"], shown["archived"], shown["spec"]["name"]) == ("succeeded", True, "first")
    assert shown["history"][0]["event"] == "submitted"
    assert cli("logs 1").out == "first\n"
    assert "is succeeded" in cli("explain 1").out
    assert cli("wait 1 3").code == 0
    assert cli("wait 2").code == 1
    assert owner.events(job="2")[0]["event"] == "submitted"
    assert {row["job"] for row in owner.history()["jobs"]} == {"1", "3_0", "3_1", "4", "5"}
    assert owner.status()["archived"] == 5


@pytest.mark.parametrize("line", ["hold 1", "requeue 2", "resize 1 2", "set 1 --priority 3"])
def test_what_would_change_them_is_refused_in_words(cli: Cli, owner: Client, line: str) -> None:
    said = cli(*line.split())
    assert said.code == 4, said.err
    assert "it is in the archive" in said.err


def test_a_cancel_says_that_they_had_ended(cli: Cli, owner: Client) -> None:
    assert "1 (succeeded) had ended already" in cli("cancel 1").err
    assert "no job is left to cancel" in cli("cancel 3 --yes").err


def test_nothing_can_wait_for_them_and_what_never_was_is_not_found(cli: Cli, owner: Client) -> None:
    said = cli("submit --after ok:1 -- true")
    assert said.code == 4
    assert "it is in the archive" in said.err
    assert cli("describe job 777").code == 3
    assert cli("cancel 3_7").code == 3


def test_others_see_their_own(service: Running, owner: Client) -> None:
    ann = service.client("ann")
    assert [job["id"] for job in ann.jobs(archived=True)] == ["2"]
    assert ann.job("2")["state"] == "failed"
    for secret in ("1", "3_0"):
        assert _missing(ann, secret)


def _missing(client: Client, job: str) -> bool:
    from gantline.core.errors import NotFoundError

    try:
        client.job(job)
    except NotFoundError:
        return True
    return False


def test_counters_do_not_go_back(owner: Client) -> None:
    told = dict(line.rsplit(" ", 1) for line in owner.metrics().splitlines() if not line.startswith("#"))
    assert float(told["gantline_jobs_created_total"]) == 6
    assert float(told["gantline_jobs_completed_total"]) == 5
    assert float(told["gantline_jobs_failed_total"]) == 1
    assert float(told["gantline_job_completion_seconds_count"]) == 6
    assert float(told["gantline_jobs_archived"]) == 5


def test_how_long_they_stay_is_remembered_and_output_goes_by_age(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANTLINE_HOME", str(tmp_path / "home"))
    options = Options(Home(tmp_path / "home"), devices="cpu:2", keep={"age": 1e-3})
    first = Running(options).start()
    (job,) = first.client().submit(["echo", "out"])
    first.client().wait(job)
    until(lambda: not (tmp_path / "home" / "jobs" / job).exists(), "it goes by itself")
    said = cli(f"logs {job}")
    assert said.code == 3
    assert "was removed: it ended longer ago than is kept" in said.err
    first.stop()
    again = serving(tmp_path / "home")
    assert again.client().status()["keep"] == {"age": 1e-3, "jobs": 10_000, "failure": ""}
    assert again.client().job(job)["state"] == "succeeded"
    said = cli(f"replay {tmp_path}/home")
    assert said.code == 0, said.err
    again.stop()


@pytest.mark.parametrize(("words", "why"), [("--keep 0", "a time above zero"), ("--keep-jobs 0", "too few"), ("--keep x", "time")])
def test_what_cannot_be_kept_is_refused(cli: Cli, tmp_path: Path, words: str, why: str) -> None:
    said = cli(f"up --home {tmp_path}/home {words}")
    assert said.code == 2
    assert why in said.err


def test_a_report_reads_what_is_at_hand_and_what_is_archived(cli: Cli, service: Running, owner: Client, tmp_path: Path) -> None:
    said = cli(f"report {service.home} -o past.html")
    assert said.code == 0, said.err
    assert "6" in (tmp_path / "past.html").read_text()
    run = read_run(service.home)
    assert run.jobs["job"].to_list() == ["1", "2", "3_0", "3_1", "4", "5"]
    assert run.jobs["state"].to_list() == ["completed", "failed", "completed", "completed", "completed", "completed"]
    assert set(run.jobs["user"]) == {"ann", owner.status()["user"]}
    assert run.allocations.height == 6
    assert run.jobs["gpu_seconds"].min() > 0  # type: ignore[operator]
    assert run.series["busy_gpus"][-1] == 0
    assert run.series["queued"][-1] == run.series["running"][-1] == 0
    assert cli(f"plot gantt {service.home} -o past.svg").code == 0


# Going back to a backup as an operator does it, and what is said of what is lost.

__all__ = ["home"]  # a fixture


def run_one(cli: Cli) -> str:
    job = cli("submit -- true").out.strip()
    assert cli(f"wait {job} --timeout {LIMIT}").code == 0
    return job


def test_a_restore_says_what_is_lost_and_the_next_service_goes_on_behind_it(cli: Cli, home: Path) -> None:
    up_here(cli)
    first = run_one(cli)
    assert cli(f"backup {home}/copy").code == 0
    lost = run_one(cli)
    refused = cli(f"restore {home}/copy")
    assert refused.code == 4
    assert "gantline down" in refused.err
    assert cli("down").code == 0
    done = cli(f"restore {home}/copy")
    assert done.code == 0, done.err
    assert f"submitted later: {lost}; their folders stay" in done.err
    assert f"new ones have numbers from {int(lost) + 1} on" in done.err
    assert "gantline.sqlite-set-aside-1" in done.err
    assert "revoked since the backup are valid again" in done.err
    up_here(cli)
    assert [job["id"] for job in cli("get jobs -o json").json] == [first]
    assert int(run_one(cli)) == int(lost) + 1
    assert cli("down").code == 0
    assert cli(f"replay {home}").code == 0


# A disk on which nothing can be written any more: what runs goes on, what is refused says why, and the service can be ended.

REFUSED = "cannot be written: file too large"


def test_a_service_that_can_write_nothing_more_is_ended_and_its_jobs_go_on(cli: Cli, home: Path) -> None:
    up(cli)
    job = cli("submit -- sh -c", f"while [ ! -e {home}/go ]; do sleep 0.05; done").out.strip()
    until(lambda: cli(f"get jobs {job} -o json").json[0]["state"] == "running")
    pid = cli("status -o json").json["pid"]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))  # for that process the disk is full from now on
    refused = cli("submit -- true")
    assert refused.code == 4
    assert "the store cannot be written" in refused.err
    down = cli("down")
    assert down.code == 0, down.err
    assert "warning: the jobs are left running" in down.err
    up_here(cli)
    (shown,) = cli("get jobs -o json").json
    assert (shown["state"], shown["epoch"]) == ("running", 1)
    (home / "go").touch()
    assert cli(f"wait {job} --timeout {LIMIT}").code == 0
    assert cli(f"replay {home}").code == 0


def test_a_disk_that_was_full_for_a_while_is_an_incident_and_then_everything_goes_on(cli: Cli, home: Path) -> None:
    up(cli)
    status = cli("status -o json").json

    def health() -> tuple[int, str]:
        answer = httpx.get(f"{status['address']}/healthz")  # without a token
        return answer.status_code, answer.text

    assert health() == (200, "ok\n")
    resource.prlimit(status["pid"], resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    assert cli("submit -- true").code == 4
    until(lambda: health() == (503, "the store cannot be written\n"))
    assert cli("status -o json").json["deciding"] is False
    with Client(home=home) as client:
        metrics = dict(line.rsplit(" ", 1) for line in client.metrics().splitlines() if not line.startswith("#"))
    assert float(metrics["gantline_scheduler_up"]) == 0.0
    assert float(metrics["gantline_store_failing_seconds"]) > 0.0
    until(lambda: any("the store has not been writable" in one for one in cli("status -o json").json["incidents"]))
    resource.prlimit(status["pid"], resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    until(lambda: health()[0] == 200)
    job = cli("submit -- true").out.strip()
    assert cli(f"wait {job} --timeout {LIMIT}").code == 0
    events = [event["event"] for event in cli("events -o json").json]
    assert events.index("store-failed") < events.index("store-recovered") < events.index("submitted")
    assert cli("status -o json").json["deciding"] is True
    assert cli("down").code == 0
    assert cli(f"replay {home}").code == 0


def test_the_first_start_on_a_full_disk_names_the_cause(tmp_path: Path) -> None:
    """Before anything is begun, in the background, which runs what the foreground runs.

    No bytecode is written: Python would leave half of it.
    """
    limit = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); from gantline.cli.main import main; "
    command = [sys.executable, "-c", limit + "sys.exit(main(sys.argv[1:]))", "up", "--devices", "cpu:1", "--home", str(tmp_path / "home")]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([*command, "--detach"], env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 4, done.stderr
    assert REFUSED in done.stderr
    assert "make room" in done.stderr


def test_output_that_could_not_be_written_is_reported_where_it_is_missing(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "log"), 1 << 20)
    log.write(b"one\n")
    there = log.file
    with open("/dev/full", "ab", buffering=0) as log.file:
        log.write(b"two\n")
        log.write(b"three\n")
    log.file = there
    log.write(b"four\n")
    assert log.close() == 10
    assert (tmp_path / "log").read_text() == "one\n\ngantline: 10 bytes of output were lost here: the disk was full\nfour\n"
