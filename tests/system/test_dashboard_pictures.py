"""Five pictures of the dashboard, each with what it must show. `make pictures` keeps them for the pages of the documentation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.service.conftest import Running, until
from tests.system.chromium import Chromium
from tests.system.large_board import LargeCluster, LargeService
from tests.system.visitor import Visitor

from gantline.live.service import live_board
from gantline.live.service.home import Home, Options

KEPT = Path(__file__).parents[2] / "docs" / "_static"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where pictures go: beside the documentation if they shall be kept."""
    return KEPT if os.environ.get("GANTLINE_KEEP_PICTURES") else tmp_path


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Iterator[LargeService]:
    monkeypatch.setattr(live_board, "PAUSE", 0.0)  # its views come one by one
    service = LargeService(LargeCluster(), pace=0.1, updates=20)
    yield service
    service.close()


@pytest.fixture
def visitor(browser: Chromium, large: LargeService) -> Iterator[Visitor]:
    browser.become(1400)
    browser.call("Page.navigate", url=f"{large.url}/dashboard/icon.svg")
    browser.wait_for("location.pathname.endsWith('.svg')")
    browser.evaluate("sessionStorage.setItem('gantline.session', 'any'); localStorage.clear()")
    browser.open(large.url)
    yield Visitor(browser)
    assert Visitor(browser).complaints() == []


def test_numbers_the_map_and_seven_rows_fit_a_screen(visitor: Visitor, folder: Path) -> None:
    visitor.browser.screenshot(folder / "dashboard-now.png", whole=False)
    inside = "e => (b => b.top >= 0 && b.bottom <= innerHeight)(e.getBoundingClientRect())"
    assert visitor.browser.evaluate(f"[...document.querySelectorAll('.numbers, .map canvas')].every({inside})")
    assert visitor.browser.evaluate(f"[...document.querySelectorAll('.grid-space .grid-row')].filter({inside}).length") >= 7
    assert visitor.number("busy").endswith("of 8,000")


def test_a_waiting_job_is_the_same_in_row_panel_and_map_after_twenty_updates(visitor: Visitor, large: LargeService, folder: Path) -> None:
    key = large.cluster.queue[2000]
    visitor.find(key)
    visitor.open_job(key)
    visitor.find("")
    large.go.set()
    visitor.browser.wait_for(f"document.documentElement.dataset.version === '{large.board.version_of(21)}'")
    visitor.browser.wait_for("document.querySelector('.panel .ladder') !== null")
    visitor.browser.evaluate("document.querySelector('.grid').focus()")
    visitor.key("ArrowDown")
    visitor.key("ArrowUp")
    assert visitor.text(".panel h2").startswith(f"{key} ")
    assert visitor.text(".grid-row.active .c-id") == key
    assert visitor.text(".lit-words") == f"job {key} holds no device"
    visitor.browser.screenshot(folder / "dashboard-waiting.png", whole=False)


def test_a_gang_of_sixteen_is_lit_in_the_dark(visitor: Visitor, large: LargeService, folder: Path) -> None:
    places = large.cluster.places
    key = next(key for key, mine in places.items() if len(mine) == 16 and mine[0] % 8 == 0 and mine[15] - mine[0] == 15)
    visitor.browser.become(1400, dark=True)
    visitor.press("running", ".jobs")
    visitor.find(key)
    visitor.open_job(key)
    visitor.sees(f"job {key} is lit: 16 devices", ".lit-words")
    visitor.sees("running on 16 devices", ".panel")
    visitor.browser.screenshot(folder / "dashboard-gang.png", whole=False)


def test_on_a_small_screen_the_map_is_no_taller_than_the_screen(visitor: Visitor, folder: Path) -> None:
    visitor.browser.become(400, 800, phone=True)
    visitor.browser.wait_for("document.querySelector('.map canvas').clientWidth <= 400")
    assert visitor.browser.evaluate("document.documentElement.scrollWidth") <= 400
    assert visitor.browser.evaluate("document.querySelector('.map canvas').clientHeight") <= 800
    visitor.browser.screenshot(folder / "dashboard-phone.png", whole=False)


def test_undecided_intervals_look_undecided(browser: Chromium, tmp_path_factory: pytest.TempPathFactory, folder: Path) -> None:
    running = Running(Options(Home(tmp_path_factory.mktemp("home") / "gantline"), devices="cpu:8", run_as="service")).start()
    owner, visitor = running.client(), Visitor(browser)
    owner.submit(["sleep", "600"], name="holder", resources={"gpus": 6}, estimate="20m")
    for n in range(12):
        owner.submit(["sleep", "600"], name=f"task {n}", resources={"gpus": (2, 4, 2)[n % 3]}, estimate=f"{(40, 2, 90, 10)[n % 4]}m")
    until(lambda: len(owner.jobs()) == 13)
    browser.become(1400)
    visitor.enter(running.url, running.token, "policy")
    browser.wait_for("[...document.querySelectorAll('option')].some(o => o.value === 'srtf')")
    visitor.write("policy", "srtf", "main")
    visitor.press("Preview")
    visitor.sees("in place of", ".preview")
    looks = browser.evaluate(
        "[...document.querySelectorAll('[data-metric]')].map(r => [r.classList.contains('undecided'), r.innerText.includes('undecided'),"
        " getComputedStyle(r.querySelector('.bar')).strokeDasharray !== 'none'])"
    )
    assert len(looks) == 3
    assert all(named == dashed == undecided for undecided, named, dashed in looks)
    assert {undecided for undecided, _, _ in looks} == {True, False}
    browser.screenshot(folder / "dashboard-policy.png", whole=False)
    assert visitor.complaints() == []
    owner.cancel(*[job["id"] for job in owner.jobs() if job["ended"] is None])
    running.stop()
