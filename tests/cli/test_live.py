"""The live commands as people type them: a service of its own process, real jobs, and a kill in between."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from unittest import mock

import pytest
from tests.cli.conftest import Cli
from tests.live.service.conftest import serve_here
from tests.waiting import until

from gantline.cli.live import connection
from gantline.cli.main import main


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose service, if one is left at the end, is ended."""
    path = tmp_path / "home"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GANTLINE_HOME", str(path))
    for name in ("GANTLINE_URL", "GANTLINE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    yield path
    if (path / "address.json").exists():
        told = json.loads((path / "address.json").read_text(encoding="utf-8"))
        main(["down"])
        if told["pid"] != os.getpid() and Path(f"/proc/{told['pid']}").exists():
            os.kill(told["pid"], signal.SIGKILL)


def up(cli: Cli, *more: str) -> str:
    """Start a service, a process of its own; its address."""
    done = cli("up --devices cpu:4 --detach", *more)
    assert done.code == 0, done.err
    return done.out.strip()


def up_here(cli: Cli, *more: str) -> str:
    """Start a service in a thread of this process, which takes a tenth of the time; its address."""
    with mock.patch.object(import_module("gantline.cli.live.up"), "_detach", serve_here):
        return up(cli, *more)


def test_a_service_from_up_to_down_with_a_kill_in_between(cli: Cli, home: Path, tmp_path: Path) -> None:
    address = up(cli, "--policy", "fifo")
    status = cli("status -o json").json
    assert (status["address"], status["policy"]) == (address, "fifo")
    assert status["devices"]["cpu"]["count"] == 4

    (tmp_path / "job.yaml").write_text(
        "name: from-file\nresources: {gpus: 2}\nrun: echo $GREETING\nenv: {GREETING: hello}\n", encoding="utf-8"
    )
    first = cli("submit job.yaml").out.strip()
    second = cli("submit --gpus 2 --name here -- sh -c 'pwd; sleep 0.1'").out.strip()
    third = cli("submit --name bad -- sh -c 'echo oops; exit 7'").out.strip()
    assert (first, second, third) == ("1", "2", "3")
    assert cli(f"wait {first} {second} --timeout 100").code == 0
    waited = cli(f"wait {third} --timeout 100 -o json")
    assert waited.code == 1
    assert (waited.json[0]["state"], waited.json[0]["exit_code"]) == ("failed", 7)
    assert cli(f"logs {first}").out == "hello\n"
    assert cli(f"logs {second} -f").out == f"{tmp_path}\n"
    assert [job["name"] for job in cli("get jobs -o json").json] == ["from-file", "here", "bad"]
    assert cli("get jobs -o name").out.split() == ["1", "2", "3"]
    assert cli("get jobs --state failed -o name").out.split() == ["3"]
    assert cli("get jobs -l team -o name").out == ""
    assert cli(f"get jobs {first} --watch -o name").out.split() == ["1"], "it has ended: nothing more to come"
    assert "did you mean 'failed'" in cli("get jobs --state fialed").err

    runs, waits = (cli("submit --gpus 4 -- sleep 600").out.strip() for _ in range(2))
    until(lambda: cli(f"get jobs {runs} -o json").json[0]["state"] == "running")
    os.kill(status["pid"], signal.SIGKILL)
    until(lambda: not Path(f"/proc/{status['pid']}").exists() or Path(f"/proc/{status['pid']}/stat").read_text().split()[2] == "Z")
    gone = cli("get jobs")
    assert gone.code == 5
    assert "does not answer" in gone.err
    assert up_here(cli) == address
    jobs = {job["id"]: job for job in cli("get jobs -o json").json}
    assert [jobs[id]["state"] for id in (first, third, runs, waits)] == ["succeeded", "failed", "running", "pending"]
    assert jobs[runs]["epoch"] == 1, "it has been adopted, not started again"
    assert cli(f"cancel {runs}").out.strip() == runs
    until(lambda: cli(f"get jobs {waits} -o json").json[0]["state"] == "running")
    refused = cli(f"cancel {runs} {waits}")
    assert refused.code in (0, 4), "one of them has ended, so that one is left and nobody need be asked"
    down = cli("down")
    assert down.code == 0
    assert not (home / "address.json").exists()
    assert cli("status").code == 5


def test_the_other_verbs(cli: Cli, home: Path) -> None:
    """Of a service in a thread: what a process of its own adds is the matter of the test before."""
    up_here(cli, "--policy", f"{Path(__file__).parents[2] / 'examples' / 'my_policy.py'}:Patient")  # which decides in a process of its own
    rules = cli("status -o json").json["rules"]
    assert (rules["min_run"], rules["grace"], rules["unknown_queues"]) == (60.0, 120.0, "refuse")
    assert cli("submit --queue a/b -- true").code == 3
    assert cli("queue set a/b").code == 0
    held = cli("submit --gpus 1:2 --queue a/b --time 1-00:00:00 --retries 2 --env A=1 -- sleep 600").out.strip()
    until(lambda: cli(f"get jobs {held} -o json").json[0]["state"] == "running")
    assert cli(f"hold {held}").out.strip() == held
    until(lambda: cli(f"get jobs {held} -o json").json[0]["state"] == "held")
    assert cli(f"resize {held} 2").code == 0
    assert cli(f"release {held}").code == 0
    until(lambda: len(cli(f"get jobs {held} -o json").json[0]["devices"]) == 2)
    assert cli(f"requeue {held}").code == 0
    described = cli(f"describe job {held}")
    assert "specification" in described.out
    assert cli(f"describe job {held} -o json").json["spec"]["limits"] == {"time": 86400.0}
    assert "a/b" in cli("get queues").out
    assert cli("queue set a/b --quota 3").out.strip() == "queue 'a/b' may hold 3 devices: 3 are promised, and it borrows none"
    assert [queue["borrow"] for queue in cli("queue list -o json").json if queue["name"] == "a/b"] == [0]
    refused = cli("queue set a/b --borrow 2")
    assert refused.code == 2
    assert "beyond no quota" in refused.err
    assert [queue["quota"] for queue in cli("queue list -o json").json if queue["name"] == "a/b"] == [3]
    assert cli("queue drop a/b").code == 0
    assert cli("node cordon cpu").code == 0
    assert cli("get nodes -o json").json[0]["state"] == "cordoned"
    assert cli("node uncordon cpu").code == 0
    assert cli("policy use las").out.strip() == "las"
    until(lambda: cli("status -o json").json["policy"] == "las")
    assert cli("top").code == 0
    assert cli("top -o json").json["policy"] == "las"
    assert "policy" in cli("events").out
    assert cli("get decisions -o json").json
    array = cli("submit --array 0-4%2 -- sleep 600").out.strip()
    many = cli(f"cancel {array}")
    assert many.code == 4
    assert "5 jobs, and no terminal to ask on" in many.err
    assert cli(f"cancel {array} --yes").out.split() == [f"{array}_{index}" for index in range(5)]
    made = cli("token create ana --role viewer --lifetime 1h -o json").json
    listed = {row["id"]: row for row in cli("token list -o json").json}
    assert listed[made["id"]]["role"] == "viewer"
    assert "token" not in listed[made["id"]]
    assert cli("token revoke", made["id"]).code == 0
    twice = cli("up --devices cpu:1 --detach")
    assert twice.code == 4
    assert "another service" in twice.err
    before = len(cli("get jobs -o json").json)
    for words, code, told in [
        (("submit", "--gpus", "9", "--", "true"), 4, "more devices than the cluster has"),
        (("submit", "--gpus", "h100:1", "--", "true"), 4, "does not have"),
        (("submit", "--gpus", "8:2", "--", "true"), 2, "field 'resources.accelerators'"),
        (("submit", "--time", "soon", "--", "true"), 2, "field 'limits.time'"),
        (("submit", "--retry", "3", "--", "true"), 2, "no option '--retry' (did you mean '--retries'"),
        (("submit", "job.yaml", "--priorty", "high"), 2, "no option '--priorty'"),
        (("submit", "job.yaml", "python", "train.py"), 2, "a file, and 'python' behind it"),
        (("submit", "missing.yaml"), 3, "no such file"),
        (("submit",), 2, "nothing to run"),
        (("submit", "--working-dir", ".", "--", "true"), 4, "a runtime environment, and jobs of this service are plain processes"),
        (("submit", "--runtime-env", "missing.yaml", "--", "true"), 2, "cannot be read"),
        (("submit", "--runtime-env", "[einops]", "--", "true"), 2, "cannot be read"),
        (("submit", "--runtime-env", '{"pipp": []}', "--", "true"), 2, "did you mean 'pip'"),
        (("submit", "--after", "ok:9999", "--", "true"), 3, "no job '9999'"),
        (("describe", "job", "9999"), 3, "no job '9999'"),
        (("logs", "9999"), 3, "no job '9999'"),
        (("wait", "9999"), 3, "no job '9999'"),
        (("policy", "use", "lass"), 3, "did you mean 'las'"),
        (("node", "drain", "gpu"), 3, "no node 'gpu'"),
    ]:
        failed = cli(*words)
        assert (failed.code, told in failed.err) == (code, True), failed.err
        assert failed.err.count("\n") == 1
    dry = cli("submit --dry-run --array 0-2 -- true")
    assert dry.json["tasks"] == 3
    assert len(cli("get jobs -o json").json) == before, "nothing of that was queued"
    assert cli(f"wait {held} --timeout 0.1").code == 4
    assert cli("cancel --all --yes").code == 0
    assert cli("down").code == 0


def test_a_mistake_in_a_file_names_its_line(cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "job.yaml").write_text("name: x\nresources:\n  gpus: two\nrun: a\n", encoding="utf-8")
    monkeypatch.setenv("GANTLINE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("GANTLINE_TOKEN", "t")
    failed = cli("submit job.yaml")
    assert failed.code == 2
    assert "job.yaml:3: field 'resources.gpus'" in failed.err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("up --devices cpu", 2, "'cpu' is not a group of devices"),
        ("up --policy lass", 3, "no policy 'lass'"),
        ("up --host 0.0.0.0", 4, "--tls-cert"),
        ("up --placement consolidate", 3, "consolidated"),
        ("up --round soon", 2, "--round"),
        ("up --profiles none.json", 3, "gantline profile"),
        ("up --store mysql://x/y", 2, "no known store"),
        ("status", 5, "no service runs here"),
    ],
)
def test_mistakes_at_the_start(cli: Cli, home: Path, words: str, code: int, told: str) -> None:
    failed = cli(words)
    assert failed.code == code
    assert told in failed.err


def test_without_the_libraries_one_message_names_the_extra(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(connection, "find_spec", lambda name: None if name in ("fastapi", "httpx") else real(name))
    for words in (("up",), ("status",), ("submit", "--", "true"), ("get", "jobs"), ("policy", "use", "las"), ("token", "list")):
        failed = cli(*words)
        assert failed.code == 2
        assert "pip install 'gantline[live]'" in failed.err
        assert "fastapi, httpx" in failed.err
    assert cli("policy list").code == 0
    assert cli("submit --help").code == 0


def test_what_a_job_wrote_does_not_steer_the_terminal(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Escape codes clear the screen, set the title and write into the clipboard; a program that reads a pipe receives every byte."""
    up_here(cli)
    evil = "\x1b[2Jred\x1b]0;title\x07 \u009b31m \u202e tab\tend"
    (id,) = cli("submit -- python3 -c", f"print({evil!r}); raise SystemExit(3)").out.split()
    cli(f"wait {id} --timeout 100")
    assert cli(f"logs {id}").out == evil + "\n"
    monkeypatch.setattr("gantline.cli.console.is_terminal", lambda: True)
    shown = cli(f"logs {id}").out
    assert "red" in shown
    assert "tab\tend\n" in shown
    for command in (["logs", id], ["describe", "job", id], ["get", "jobs"], ["get", "jobs", "-o", "json"], ["get", "jobs", "-o", "csv"],
                    ["events"], ["top"], ["explain", id], ["history"], ["describe", "job", id, "-o", "json"]):  # fmt: skip
        told = cli(*command)
        seen = (told.out + told.err).replace("\n", "").replace("\t", "")
        assert seen.isprintable(), (command, [sign for sign in seen if not sign.isprintable()])
    assert cli(f"describe job {id} -o json").json["lines"] == [evil]
