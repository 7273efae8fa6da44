"""The dashboard is for everybody: nothing that an accessibility engine objects to, no sideways scrolling on small screens, a dark mode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.service.asking import over
from tests.live.service.conftest import Running, until
from tests.system.chromium import Chromium
from tests.system.visitor import Visitor

from gantline.live.service.home import Home, Options

PAGES = ("now", "queues", "history", "policy", "results", "submit")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with a job that has ended, one that runs, one that waits and a queue."""
    running = Running(Options(Home(tmp_path_factory.mktemp("home") / "gantline"), devices="cpu:4", run_as="service")).start()
    owner = running.client()
    owner.set_queue("research", weight=2.0)
    (done,) = owner.submit(["echo", "done"], name="done")
    over(owner, done)
    owner.submit(["sleep", "600"], name="holder", resources={"gpus": 4}, queue="research", estimate="20m")
    owner.submit(["sleep", "600"], name="a rather long name of a job that waits", resources={"gpus": 2}, estimate="10m")
    until(lambda: sorted(job["state"] for job in owner.jobs()) == ["pending", "running", "succeeded"])
    yield running
    owner.cancel(*[job["id"] for job in owner.jobs() if job["ended"] is None])
    running.stop()


@pytest.fixture
def visitor(browser: Chromium, service: Running) -> Iterator[Visitor]:
    browser.become(1200)
    found = Visitor(browser)
    found.enter(service.url, service.token)
    yield found
    browser.become(1200)
    assert found.complaints() == []


@pytest.mark.parametrize("dark", [False, True])
def test_the_accessibility_engine_objects_to_nothing(visitor: Visitor, dark: bool) -> None:
    visitor.browser.become(1200, dark=dark)
    visitor.open_job("waits")
    visitor.sees("that wait", ".panel")
    assert visitor.barriers() == []
    for page in (*PAGES[1:], "job/2", "job/3"):
        visitor.go(page)
        visitor.browser.wait_for("!document.body.innerText.includes(' …')")
        assert visitor.barriers() == [], page
    visitor.press("Cancel", "main")
    assert visitor.barriers() == []
    visitor.press("Back", "dialog")


@pytest.mark.parametrize("page", [*PAGES, "job/1", "job/3"])
def test_a_small_screen_needs_no_sideways_scrolling(visitor: Visitor, page: str, tmp_path: Path) -> None:
    visitor.browser.become(400, 800, phone=True)
    if page != "now":
        visitor.go(page)
    visitor.browser.wait_for("!document.body.innerText.includes(' …')")
    visitor.browser.screenshot(tmp_path / "phone.png")
    assert visitor.browser.evaluate("document.documentElement.scrollWidth") <= 400
    beyond = "e => e.getBoundingClientRect().right > 401 && !e.closest('.scroll, pre, .hidden, .c-name')"
    assert visitor.browser.evaluate(f"[...document.querySelectorAll('main *')].filter({beyond}).map(e => e.outerHTML.slice(0, 100))") == []
    assert visitor.browser.evaluate("(document.querySelector('.map canvas')?.clientHeight ?? 0) <= innerHeight")


def test_dark_follows_the_system_and_the_button(visitor: Visitor) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    visitor.browser.become(1200, dark=True)
    assert visitor.browser.evaluate(ground) == "rgb(20, 23, 26)"
    for theme, colour in (("dark", "rgb(20, 23, 26)"), ("light", "rgb(255, 255, 255)"), ("auto", "rgb(20, 23, 26)")):
        visitor.browser.evaluate("document.querySelector('.account button').click()")
        visitor.sees(theme, ".account")
        assert visitor.browser.evaluate(ground) == colour


def test_everything_that_can_be_pressed_is_reached_by_the_tab_key(visitor: Visitor) -> None:
    visitor.open_job("waits")
    visitor.sees("that wait", ".panel")
    visitor.browser.evaluate("document.activeElement.blur()")
    reached = set()
    for _ in range(60):
        visitor.key("Tab")
        reached.add(visitor.browser.evaluate("(e => e.getAttribute('aria-label') ?? e.innerText)(document.activeElement)"))
    wanted = visitor.browser.evaluate(
        "[...document.querySelectorAll('a[href], button:not(:disabled), select, canvas, [role=grid], input:not([tabindex=\"-1\"])')]"
        ".map(e => e.getAttribute('aria-label') ?? e.innerText)"
    )
    assert set(wanted) <= reached
