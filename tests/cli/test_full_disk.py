"""A disk on which nothing can be written any more: what runs goes on, what is refused says why, and the service can be ended."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import httpx
from tests.cli.conftest import Cli
from tests.cli.test_live import home, up, up_here
from tests.waiting import LIMIT, until

from gantline.live.runners.local.output import Log
from gantline.live.service.client import Client

__all__ = ["home"]  # a fixture
REFUSED = "cannot be written: file too large"


def test_a_service_that_can_write_nothing_more_is_ended_and_its_jobs_go_on(cli: Cli, home: Path) -> None:
    up(cli)
    job = cli("submit", "--", "sh", "-c", f"while [ ! -e {home}/go ]; do sleep 0.05; done").out.strip()
    until(lambda: cli("get", "jobs", job, "-o", "json").json[0]["state"] == "running")
    pid = cli("status", "-o", "json").json["pid"]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))  # for that process the disk is full from now on
    refused = cli("submit", "--", "true")
    assert refused.code == 4
    assert "the store cannot be written" in refused.err
    down = cli("down")
    assert down.code == 0, down.err
    assert "warning: the jobs are left running" in down.err
    up_here(cli)
    (shown,) = cli("get", "jobs", "-o", "json").json
    assert (shown["state"], shown["epoch"]) == ("running", 1)
    (home / "go").touch()
    assert cli("wait", job, "--timeout", str(LIMIT)).code == 0
    assert cli("replay", home).code == 0


def test_a_disk_that_was_full_for_a_while_is_an_incident_and_then_everything_goes_on(cli: Cli, home: Path) -> None:
    up(cli)
    status = cli("status", "-o", "json").json

    def health() -> tuple[int, str]:
        answer = httpx.get(f"{status['address']}/healthz")  # without a token
        return answer.status_code, answer.text

    assert health() == (200, "ok\n")
    resource.prlimit(status["pid"], resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    assert cli("submit", "--", "true").code == 4
    until(lambda: health() == (503, "the store cannot be written\n"))
    assert cli("status", "-o", "json").json["deciding"] is False
    with Client(home=home) as client:
        metrics = dict(line.rsplit(" ", 1) for line in client.metrics().splitlines() if not line.startswith("#"))
    assert float(metrics["gantline_scheduler_up"]) == 0.0
    assert float(metrics["gantline_store_failing_seconds"]) > 0.0
    until(lambda: any("the store has not been writable" in one for one in cli("status", "-o", "json").json["incidents"]))
    resource.prlimit(status["pid"], resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    until(lambda: health()[0] == 200)
    job = cli("submit", "--", "true").out.strip()
    assert cli("wait", job, "--timeout", str(LIMIT)).code == 0
    events = [event["event"] for event in cli("events", "-o", "json").json]
    assert events.index("store-failed") < events.index("store-recovered") < events.index("submitted")
    assert cli("status", "-o", "json").json["deciding"] is True
    assert cli("down").code == 0
    assert cli("replay", home).code == 0


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
