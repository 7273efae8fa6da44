"""What operators and users look at and change, as they type it: a service in this process, the commands in front of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Cli
from tests.live.service.asking import becomes, started
from tests.live.service.conftest import Running, until

from gantline.core.errors import RefusedError
from gantline.live.service.client import Client
from gantline.live.service.home import Home, Options


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(Options(Home(tmp_path_factory.mktemp("home") / "gantline"), devices="cpu:4")).start()
    yield running
    running.stop()


@pytest.fixture
def owner(service: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Client]:
    """The owner's client; what it has submitted is cancelled afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GANTLINE_HOME", str(service.home))
    for name in ("GANTLINE_URL", "GANTLINE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    client = service.client()
    yield client
    left = [job["id"] for job in client.jobs() if job["ended"] is None]
    for id in left:
        with contextlib.suppress(RefusedError):  # it may end at this moment
            client.cancel(id)
    if left:
        client.wait(*left)


def table(text: str) -> list[dict[str, str]]:
    head, *rows = [line.split("\t") for line in text.splitlines()]
    return [dict(zip(head, row)) for row in rows]


def test_a_cordoned_device_is_seen_where_people_look(cli: Cli, owner: Client) -> None:
    assert cli("node", "cordon", "cpu:2").code == 0
    until(lambda: owner.nodes()[0]["cordoned"] == ["cpu:2"])
    (node,) = table(cli("get", "nodes").out)
    assert (node["state"], node["cordoned"]) == ("up", '["cpu:2"]')
    assert "cpu:2" in cli("top").out
    assert cli("node", "uncordon", "cpu:2").code == 0
    until(lambda: not owner.nodes()[0]["cordoned"])
    assert "cpu:2" not in cli("top").out


def test_the_terms_of_a_job_are_changed_while_it_waits(cli: Cli, owner: Client) -> None:
    first = started(owner, resources={"gpus": 4})
    (second,) = owner.submit(["sleep", "600"], name="old", limits={"time": "1h"})
    until(lambda: owner.job(second)["estimate"] == 3600.0, "the engine has taken it in")
    assert cli("set", second, "--queue", "late").code == 3
    assert cli("queue", "set", "late").code == 0
    done = cli("set", second, "--priority", "5", "--time-limit", "2h", "--queue", "late", "--name", "new")
    assert (done.code, done.out.strip()) == (0, second), done.err
    until(lambda: owner.job(second)["estimate"] == 7200.0, "the engine has taken in what was changed")
    told = owner.job(second)
    assert (told["priority"], told["queue"], told["name"]) == (5.0, "late", "new")
    assert (told["spec"]["limits"]["time"], told["spec"]["priority"], told["spec"]["name"]) == (7200.0, 5, "new")
    for words, code, what in [
        (("--priority", "soonish"), 2, "priority"),
        (("--time-limit", "soon"), 2, "limits.time"),
        ((), 2, "nothing is to be changed"),
    ]:
        failed = cli("set", second, *words)
        assert (failed.code, what in failed.err) == (code, True), failed.err
    moved = cli("set", first, "--queue", "late")
    assert (moved.code, "only one that waits changes its queue" in moved.err) == (4, True)
    assert cli("set", "9999", "--name", "x").code == 3


def test_a_time_limit_that_is_shortened_ends_a_job_that_runs(cli: Cli, owner: Client) -> None:
    id = started(owner, limits={"time": "1h"})
    assert cli("set", id, "--time-limit", "0.01s").code == 0
    becomes(owner, id, "timeout")
    late = cli("set", id, "--name", "x")
    assert (late.code, "has ended" in late.err) == (4, True)


def test_cancelling_what_has_ended_says_so(cli: Cli, owner: Client) -> None:
    (over,) = owner.submit(["true"])
    owner.wait(over)
    (runs,) = owner.submit(["sleep", "600"])
    refused = cli("cancel", over)
    assert (refused.code, f"{over} (succeeded) had ended already" in refused.err) == (4, True)
    both = cli("cancel", over, runs, "--yes")
    assert (both.code, both.out.strip()) == (0, runs)
    assert f"note: {over} (succeeded) had ended already" in both.err


def test_a_page_is_opened_by_an_address_that_logs_in(cli: Cli, owner: Client) -> None:
    url, _, code = cli("dashboard", "--no-open").out.strip().partition("/#login=")
    assert url == owner.url
    assert code


def test_a_token_gets_another_role(cli: Cli, owner: Client) -> None:
    made = owner.create_token("shrinking", "operator")
    assert cli("token", "set", made["id"], "--role", "viewer").out.strip() == made["id"]
    assert {row["id"]: row["role"] for row in owner.tokens()}[made["id"]] == "viewer"


def test_expired_and_revoked_tokens_are_told_apart(cli: Cli, owner: Client, service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    old, gone = owner.create_token("ana", lifetime=0.001), owner.create_token("ana")
    owner.revoke_token(gone["id"])
    monkeypatch.setenv("GANTLINE_URL", service.url)
    for token, told in [(old, "has expired"), (gone, "was revoked")]:
        monkeypatch.setenv("GANTLINE_TOKEN", token["token"])
        failed = cli("get", "jobs")
        assert (failed.code, f"token {token['id']} {told}" in failed.err) == (4, True), failed.err
    monkeypatch.setenv("GANTLINE_TOKEN", "gl_unknown")
    assert "not known here" in cli("get", "jobs").err


def test_a_job_that_waits_says_why_at_once_and_when_it_will_start_later(cli: Cli, owner: Client) -> None:
    first = started(owner, resources={"gpus": 3}, estimate="1h")
    waits = [owner.submit(["sleep", "600"], resources={"gpus": 2}, estimate="10m")[0] for _ in range(3)]
    until(lambda: owner.job(waits[0])["reason"] == "resources")
    assert owner.job(waits[0])["why"] == "not enough free devices", "and not for ever 'waits for the next decision'"
    assert [owner.job(id)["reason"] for id in waits[1:]] == ["blocked", "blocked"]
    told = cli("explain", waits[2])
    assert f"{waits[2]} waits behind a job that does not fit" in told.out
    assert "needs 2 devices, 1 of 4 is free" in told.out
    assert "it is number 3 of 3 that wait" in told.out
    assert f"ahead of it: {waits[0]}, {waits[1]}" in told.out
    assert f"devices are with {first} (3 devices, about " in told.out
    later = cli("explain", waits[2], "--wait", "--samples", "3")
    assert "(P50)" in later.out
    assert later.out.splitlines()[0] == told.out.splitlines()[0], "the same, and more"


def test_what_keeps_a_job_out_is_named(cli: Cli, owner: Client) -> None:
    (parent,) = owner.submit(["sleep", "600"])
    (child,) = owner.submit(["true"], after=[{"job": parent}])
    (held,) = owner.submit(["true"], resources={"gpus": 4})
    owner.hold(held)
    assert owner.job(child)["why"] == f"waits for job {parent} to succeed"
    assert f"it waits for job {parent} to succeed, which is" in cli("explain", child).out
    told = cli("forecast", "--samples", "2").out
    assert f"{child}: left out: waits for job {parent} to succeed" in told
    assert f"{held}: left out: is held until it is released" in told
    assert f"{parent}: runs; its end is not known: it has no estimate" in told
    owner.cancel(parent)
    becomes(owner, child, "failed")
    assert owner.job(child)["why"] == f"waited for job {parent} to succeed, which was cancelled"
    assert f"waited for job {parent} to succeed, which was cancelled" in cli("explain", child).out


def test_when_a_job_would_start_is_told_before_it_is_submitted(cli: Cli, owner: Client, tmp_path: Path) -> None:
    first = started(owner, resources={"gpus": 3}, estimate="1h")
    (tmp_path / "job.yaml").write_text("resources: {gpus: 2}\nestimate: 10m\nrun: sleep 600\n", encoding="utf-8")
    before = len(owner.jobs())
    told = cli("what-if", "--job", "job.yaml")
    assert told.code == 0, told.err
    assert "it would wait, as number 1: not enough free devices" in told.out
    assert f"it would start when {first} ends" in told.out
    assert "expected start in" in told.out
    blind = cli("submit", "--dry-run", "--name", "never-seen", "--", "true")
    assert "note: it would start at once" in blind.err
    assert "its end is not known: it has no estimate" in blind.err
    assert blind.json["then"]["expected"]["finish_p50"] is None
    assert len(owner.jobs()) == before
    assert cli("what-if", "--job", "job.yaml", "--policy", "srtf").code == 2


def test_all_who_ask_share_one_forecast_until_the_state_changes(owner: Client, service: Running) -> None:
    started(owner, resources={"gpus": 4}, estimate="1h")
    waits = [owner.submit(["true"], estimate="1m")[0] for _ in range(4)]
    until(lambda: {owner.job(id)["reason"] for id in waits} == {"resources", "blocked"})
    others = [service.client() for _ in range(4)]
    found = [client.forecast(samples=3) for client in others]
    assert len({one["now"] for one in found}) == 1
    for id, client in zip(waits, others):
        assert client.explain(id, samples=3, wait=True)["forecast"]["now"] == found[0]["now"], "the same one"
    owner.cancel(waits[0])
    assert owner.forecast(samples=3)["now"] > found[0]["now"], "something has changed"
