"""Sessions at the dashboard: what each role is offered, a token that ends, a role that shrinks, a service that is killed and comes back."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.service.conftest import Running, until
from tests.system.chromium import Chromium
from tests.system.visitor import Visitor, link

from gantline.core.errors import GantlineError
from gantline.live.service.client import Client

JOB_ACTIONS = {"Cancel", "Hold", "Requeue", "Save", "Resize", "Change"}


@pytest.fixture
def visitor(browser: Chromium) -> Iterator[Visitor]:
    browser.become(1200)
    yield Visitor(browser)
    assert Visitor(browser).complaints() == []


@pytest.mark.parametrize(
    ("role", "pages", "job", "node"),
    [
        ("viewer", {"Now", "Queues and users", "History", "Policy", "Results"}, set(), set()),
        ("submitter", {"Now", "Queues and users", "History", "Policy", "Results", "Submit"}, JOB_ACTIONS, set()),
        ("operator", {"Now", "Queues and users", "History", "Policy", "Results", "Submit"}, JOB_ACTIONS, {"Cordon", "Drain"}),
        ("admin", {"Now", "Queues and users", "History", "Policy", "Results", "Submit"}, JOB_ACTIONS, {"Cordon", "Drain"}),
    ],
)
def test_a_role_is_offered_what_it_may_do(
    visitor: Visitor, service: Running, role: str, pages: set[str], job: set[str], node: set[str]
) -> None:
    owner = service.client()
    mine = service.client("ann", "submitter").submit(["sleep", "600"], name="mine")
    theirs = owner.submit(["sleep", "600"], name="theirs")
    until(lambda: all(owner.job(id)["state"] == "running" for id in (*mine, *theirs)))
    visitor.enter(service.url, owner.create_token("ann", role)["token"])
    links = visitor.browser.evaluate("[...document.querySelectorAll('nav a')].map(a => a.innerText)")
    assert set(links) == pages
    visitor.open_job("mine")
    visitor.sees(f"{mine[0]} is running", ".panel")
    assert {*visitor.buttons(".panel")} - {"✕"} == job
    if role in ("viewer", "submitter"):
        visitor.sees("of another user", ".grid")
        assert "theirs" not in visitor.text()
    visitor.browser.evaluate("document.querySelector('.map canvas').focus()")
    visitor.key("Home")
    visitor.key("Enter")
    visitor.sees("cpu, up", ".panel")
    assert {name for name in visitor.buttons(".panel") if name[:1].isupper()} == node
    owner.cancel(*mine, *theirs)


def test_a_token_that_is_revoked_ends_the_session_in_words(visitor: Visitor, service: Running) -> None:
    owner = service.client()
    made = owner.create_token("bob", "submitter")
    visitor.enter(service.url, made["token"])
    owner.revoke_token(made["id"])
    visitor.sees("was revoked")
    assert visitor.browser.evaluate("sessionStorage.getItem('gantline.session')") is None
    visitor.sees("gantline dashboard")


def test_a_role_that_shrinks_while_the_page_is_open(visitor: Visitor, service: Running) -> None:
    owner = service.client()
    made = owner.create_token("eve", "operator")
    visitor.enter(service.url, made["token"])
    visitor.browser.evaluate("window.sameAsBefore = true")
    visitor.sees("Submit", "nav")
    owner.change_token(made["id"], "viewer")
    visitor.sees("Your role is viewer now.")
    assert "Submit" not in visitor.text("nav")
    assert visitor.browser.evaluate("window.sameAsBefore")


def test_a_link_logs_in_once(visitor: Visitor, service: Running) -> None:
    code = link(service.url, service.token).partition("#login=")[2]
    visitor.browser.open(f"{service.url}/#login={code}")
    visitor.sees("devices busy")
    assert code not in visitor.browser.evaluate("location.href")
    visitor.browser.evaluate("sessionStorage.clear()")
    visitor.browser.open(f"{service.url}/#login={code}")
    visitor.sees("was used already")


def test_without_a_session_nothing_is_shown_and_a_token_can_be_pasted(visitor: Visitor, service: Running) -> None:
    visitor.browser.open(service.url)
    visitor.browser.evaluate("sessionStorage.clear()")
    visitor.browser.open(service.url)
    assert "devices" not in visitor.text()
    visitor.write("token", "gl_wrong_token_of_nobody")
    visitor.press("Log in")
    visitor.sees("not known here")
    visitor.write("token", service.token)
    visitor.press("Log in")
    visitor.sees("devices busy")


@contextlib.contextmanager
def process(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A service in a process of its own, which can be killed."""
    serving = subprocess.Popen(
        [sys.executable, "-m", "gantline.cli.main", "up", "--home", str(home), "--devices", "cpu:4", "--run-as", "service"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "GANTLINE_HOME": str(home)},
    )
    try:
        until(lambda: _answers(home))
        yield serving
    finally:
        if serving.poll() is None:
            serving.send_signal(signal.SIGKILL)
        serving.wait()


def _answers(home: Path) -> bool:
    try:
        with Client(home=home) as client:
            return bool(client.status())
    except GantlineError:
        return False


def test_a_service_that_is_killed_is_missed_and_found_again_without_a_reload(visitor: Visitor, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with process(home) as serving:
        with Client(home=home) as client:
            client.submit(["sleep", "600"], name="holder", resources={"gpus": 4})
            (kept,) = client.submit(["sleep", "600"], name="kept")
            visitor.enter(client.url, (home / "token").read_text(encoding="utf-8").strip())
        visitor.browser.evaluate("window.sameAsBefore = true")
        visitor.open_job("kept")
        visitor.tick_job("kept")
        serving.send_signal(signal.SIGKILL)
        serving.wait()
        visitor.sees("Connection lost.")
        assert visitor.job_names() == ["kept", "holder"]
    with process(home):
        visitor.browser.wait_for("document.querySelector('.pulse.live') !== null && !document.body.innerText.includes('Connection lost')")
        until(lambda: visitor.job_names() == ["kept", "holder"])  # nothing twice, nothing lost
        assert visitor.browser.evaluate("window.sameAsBefore")
        assert visitor.browser.evaluate("document.querySelector('.panel').dataset.job") == kept
        visitor.sees("1 job chosen")
        with Client(home=home) as client:
            client.submit(["true"], name="after")
            visitor.sees("after", ".grid")
            client.cancel(*[job["id"] for job in client.jobs() if job["ended"] is None])
