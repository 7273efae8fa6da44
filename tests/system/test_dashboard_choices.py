"""Policies, queues and the past at the dashboard: a preview and the switch, shares, a Gantt chart that is zoomed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.live.service.asking import over
from tests.live.service.conftest import Running, until
from tests.system.chromium import Chromium
from tests.system.visitor import Visitor

from gantline.live.service.home import Home, Options


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Four slots: three jobs have ended, one holds all devices, three of different length wait."""
    running = Running(Options(Home(tmp_path_factory.mktemp("home") / "gantline"), devices="cpu:4", run_as="service")).start()
    owner = running.client()
    owner.set_queue("research", weight=2.0)
    for n in range(3):
        (id,) = owner.submit(["sleep", "0.3"], name=f"past {n}")
        over(owner, id)
    owner.submit(["sleep", "600"], name="holder", resources={"gpus": 4}, queue="research", estimate="5m")
    for n, estimate in enumerate(("90m", "10m", "1m")):
        owner.submit(["sleep", "600"], name=f"waits {n}", resources={"gpus": 4}, estimate=estimate)
    until(lambda: sorted(job["state"] for job in owner.jobs())[:4] == ["pending", "pending", "pending", "running"])
    yield running
    owner.cancel(*[job["id"] for job in owner.jobs() if job["ended"] is None])
    running.stop()


@pytest.fixture
def visitor(browser: Chromium, service: Running) -> Iterator[Visitor]:
    browser.become(1200)
    found = Visitor(browser)
    found.enter(service.url, service.token)
    yield found
    assert found.complaints() == []


def test_a_policy_is_previewed_and_then_switched_with_consent(visitor: Visitor, service: Running) -> None:
    owner = service.client()
    visitor.go("policy")
    visitor.sees("Policy: fifo")
    visitor.browser.wait_for("[...document.querySelectorAll('option')].some(o => o.value === 'srtf')")
    visitor.write("policy", "srtf", "main")
    visitor.press("Preview")
    visitor.sees("srtf in place of fifo", ".preview")
    rows = visitor.browser.evaluate("[...document.querySelectorAll('[data-metric]')].map(r => [r.dataset.metric, r.className])")
    answer = owner.what_if(other="srtf")
    assert [metric for metric, _ in rows] == [one["metric"] for one in answer["differences"]]
    assert "shorter" in visitor.text("[data-metric=wait_mean]")
    assert owner.status()["policy"] == "fifo"  # a preview changes nothing
    visitor.press("Use srtf …")
    visitor.press("Use srtf", "dialog")
    visitor.sees("srtf decides from now on")
    visitor.sees("Policy: srtf", "h1")
    assert owner.status()["policy"] == "srtf"
    owner.use_policy("fifo")
    visitor.sees("Policy: fifo", "h1")


def test_a_gantt_is_zoomed_by_dragging_and_by_keys(visitor: Visitor) -> None:
    visitor.go("history")
    visitor.browser.wait_for("document.querySelector('.gantt canvas') !== null")
    whole = visitor.text(".window")
    visitor.drag(".gantt canvas", 0.3, 0.6)
    visitor.browser.wait_for("location.hash.includes('from=')")
    first = visitor.browser.evaluate("location.hash")
    visitor.browser.wait_for(f"document.querySelector('.window').innerText !== {whole!r} || location.hash !== '#/history'")
    visitor.browser.wait_for("!document.body.innerText.includes('drawing')")
    visitor.browser.evaluate("document.querySelector('.gantt canvas').focus()")
    visitor.key("-")
    visitor.browser.wait_for(f"location.hash !== {first!r}")


def test_an_empty_and_a_reversed_window_are_said_in_words(visitor: Visitor) -> None:
    visitor.browser.evaluate("location.hash = '#/history?from=1000&to=2000'")
    visitor.browser.wait_for("document.querySelector('.empty, .refused') !== null")
    visitor.browser.evaluate("location.hash = '#/history?from=2000&to=1000'")
    visitor.browser.wait_for("document.querySelector('.refused') !== null")


def test_queues_are_made_changed_and_dropped(visitor: Visitor, service: Running) -> None:
    owner = service.client()
    visitor.go("queues")
    visitor.press("Make a queue")
    visitor.write("name", "team/nlp", "dialog")
    visitor.write("weight", "3", "dialog")
    visitor.press("Make", "dialog")
    visitor.sees("team/nlp")
    assert any(queue["name"] == "team/nlp" and queue["weight"] == 3.0 for queue in owner.queues())
    row = "[...document.querySelectorAll('tr')].find(r => r.cells[0].innerText === 'team/nlp')"
    visitor.browser.evaluate(f"[...{row}.querySelectorAll('button')].find(b => b.innerText === 'Drop').click()")
    visitor.press("Drop", "dialog")
    until(lambda: all(queue["name"] != "team/nlp" for queue in owner.queues()))
    visitor.browser.wait_for("!document.body.innerText.includes('team/nlp')")


def test_nodes_are_reserved_and_given_up(visitor: Visitor, service: Running) -> None:
    owner = service.client()
    visitor.go("queues")
    visitor.press("Reserve nodes")
    visitor.write("name", "maintenance", "dialog")
    visitor.write("from", "2030-01-01T00:00", "dialog")
    visitor.press("Reserve", "dialog")
    until(lambda: [window["name"] for window in owner.reservations()] == ["maintenance"])
    visitor.press("Give up", "main")
    visitor.press("Give up", "dialog")
    until(lambda: owner.reservations() == [])
