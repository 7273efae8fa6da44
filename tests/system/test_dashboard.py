"""A day at the dashboard, in a real browser against a real service: log in, submit, follow, ask why, change, cancel, cordon."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.live.service.asking import becomes
from tests.live.service.conftest import Running, until
from tests.system.chromium import Chromium
from tests.system.visitor import Visitor

from gantline.live.service.client import Client
from gantline.live.service.home import Home, Options

HOSTILE = "<img src=x onerror=\"window.owned='name'\"></script><b>bold</b> \u202ereversed"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home = Home(tmp_path_factory.mktemp("home") / "gantline")
    running = Running(Options(home, devices="cpu:4", run_as="service")).start()
    yield running
    running.stop()


@pytest.fixture
def owner(service: Running) -> Iterator[Client]:
    client = service.client()
    yield client
    going = [job["id"] for job in client.jobs() if job["ended"] is None]
    if going:
        client.cancel(*going)
    client.uncordon("cpu")
    until(lambda: all(job["ended"] is not None for job in client.jobs()))


@pytest.fixture
def visitor(browser: Chromium, service: Running, owner: Client) -> Iterator[Visitor]:
    """The owner of the service, logged in; whatever a test does, the browser may complain about nothing, the content policy included."""
    found = Visitor(browser)
    browser.become(1200)
    found.enter(service.url, service.token)
    yield found
    assert found.complaints() == []
    assert browser.evaluate("window.owned") is None


def test_a_job_is_checked_submitted_followed_and_cancelled(visitor: Visitor, owner: Client) -> None:
    visitor.go("submit")
    visitor.write("run", 'sh -c "for n in 1 2 3; do echo step $n; sleep 0.2; done; sleep 600"')
    visitor.write("name", "looper")
    visitor.press("Dry run")
    visitor.sees("It would be taken.")
    visitor.sees("it would start at once")
    assert owner.jobs() == [] or all(job["name"] != "looper" for job in owner.jobs())
    visitor.press("Submit")
    visitor.sees("Submitted as job")
    id = visitor.text(".told a")
    visitor.browser.evaluate("document.querySelector('.told a').click()")
    visitor.sees("step 3", ".log")
    visitor.sees(f"{id} is running on cpu:0")
    visitor.press("Cancel", "main")
    visitor.sees("work that is not saved is lost", "dialog")
    visitor.press("Cancel", "dialog")
    visitor.sees("cancelled")
    becomes(owner, id, "cancelled")


def test_a_submission_with_a_mistake_is_refused_in_words(visitor: Visitor) -> None:
    visitor.go("submit")
    visitor.write("run", "true")
    visitor.write("accelerators", "64")
    visitor.press("Submit")
    visitor.sees("asks for more devices than the cluster has", ".refused")
    visitor.write("more", "{not JSON")
    visitor.press("Dry run")
    visitor.sees("the other keys are not JSON")


def test_why_a_job_waits_and_what_would_start_it(visitor: Visitor, owner: Client) -> None:
    (first,) = owner.submit(["sleep", "600"], name="holder", resources={"gpus": 3}, estimate="20m")
    (second,) = owner.submit(["sleep", "600"], name="waiter", resources={"gpus": 2}, estimate="10m")
    visitor.open_job("waiter")
    visitor.sees("needs 2 devices, 1 of 4 is free", ".panel")
    visitor.sees("It is number 1 of 1 that wait", ".panel")
    visitor.sees(first, ".ladder")
    visitor.sees("holds until about", ".ladder")
    visitor.sees("with 1 GPUs in place of 2 it would start now", ".panel")
    visitor.browser.wait_for("document.querySelectorAll('.expected .interval').length === 2")
    visitor.press("with 1 GPUs in place of 2 it would start now")
    visitor.sees("Resize job", "dialog")
    assert visitor.browser.evaluate("document.querySelector('dialog input').value") == "1"
    visitor.press("Resize", "dialog")
    becomes(owner, second)
    visitor.sees("running", ".panel")


def test_a_node_is_cordoned_and_its_shape_tells(visitor: Visitor, owner: Client) -> None:
    visitor.browser.evaluate("document.querySelector('.map canvas').focus()")
    visitor.key("ArrowRight")
    visitor.key("Enter")
    visitor.sees("cpu, up", ".panel")
    visitor.press("Cordon", ".panel")
    visitor.press("Cordon", "dialog")
    visitor.sees("cpu, cordoned", ".panel")
    visitor.browser.wait_for("document.querySelector('[data-number=cordoned]').innerText === '4'")
    assert owner.nodes()[0]["state"] == "cordoned"
    visitor.press("Uncordon", ".panel")
    visitor.press("Uncordon", "dialog")
    visitor.sees("cpu, up", ".panel")


def test_several_jobs_are_changed_at_once(visitor: Visitor, owner: Client) -> None:
    owner.submit(["sleep", "600"], name="holder", resources={"gpus": 4})
    ids = [owner.submit(["sleep", "600"], name=f"task {n}")[0] for n in range(3)]
    visitor.sees("task 2", ".jobs")
    for name in ("task 0", "task 1", "task 2"):
        visitor.tick_job(name)
    visitor.sees("3 jobs chosen")
    visitor.press("Hold")
    visitor.sees("Hold 3 jobs", "dialog")
    visitor.press("Hold", "dialog")
    until(lambda: all(owner.job(id)["state"] == "held" for id in ids))
    visitor.press("held", ".jobs")
    visitor.browser.wait_for("document.querySelectorAll('.grid-space .grid-row').length === 3")


def test_numbers_equal_the_board_of_the_same_version(visitor: Visitor, owner: Client) -> None:
    owner.submit(["sleep", "600"], resources={"gpus": 3})
    owner.submit(["sleep", "600"], resources={"gpus": 4})
    until(lambda: (visitor.number("running"), visitor.number("waiting")) == ("1", "1"))
    until(lambda: owner.get("/v1/board")["version"] == visitor.browser.evaluate("document.documentElement.dataset.version"))
    board = owner.get("/v1/board")
    head, states = board["head"], board["jobs"]["state"]
    assert visitor.number("busy") == f"{head['busy']} of {head['devices']}" == "3 of 4"
    assert visitor.number("running") == str(head["running"]) == "1"
    assert visitor.number("waiting") == str(head["waiting"]) == "1"
    assert visitor.number("policy") == head["policy"]
    shown = visitor.browser.evaluate("[...document.querySelectorAll('.grid-space .state')].map(s => s.lastChild.data)")
    assert sorted(shown) == sorted(state for state in states if state in ("starting", "running", "pending"))


def test_what_is_chosen_stays_chosen_through_updates(visitor: Visitor, owner: Client) -> None:
    owner.submit(["sleep", "600"], name="holder", resources={"gpus": 4})
    (kept,) = owner.submit(["sleep", "600"], name="kept")
    visitor.open_job("kept")
    for n in range(20):
        (ahead,) = owner.submit(["true"], name=f"ahead {n}", priority=5)
        owner.cancel(ahead)
    visitor.browser.wait_for("document.querySelector('.grid-row.active') !== null")
    assert visitor.browser.evaluate("document.querySelector('.panel').dataset.job") == kept
    assert "kept" in visitor.text(".grid-row.active")
    assert "kept" in visitor.text(".panel h2")


def test_hostile_names_and_lines_stay_text(visitor: Visitor, owner: Client) -> None:
    (id,) = owner.submit(["printf", "%s\n", HOSTILE], name=HOSTILE[:60], labels={"x": "<b>"})
    (long,) = owner.submit(["sleep", "600"], name="n" * 200)
    becomes(owner, id, "succeeded")
    visitor.press("ended", ".jobs")
    visitor.sees(HOSTILE[:30], ".grid")
    visitor.go(f"job/{id}")
    visitor.sees(HOSTILE[:60], "h1")
    visitor.sees(HOSTILE[:40], ".log")
    assert visitor.browser.evaluate("document.querySelectorAll('main img, main b, .log *').length") == 0
    visitor.go(f"job/{long}")
    visitor.sees("n" * 200, "h1")
    assert visitor.browser.evaluate("document.documentElement.scrollWidth") <= 1200


def test_of_a_huge_log_the_end_comes_first(visitor: Visitor, owner: Client, service: Running) -> None:
    (id,) = owner.submit(["echo", "first line"], name="talker")
    becomes(owner, id, "succeeded")
    with (service.home / "jobs" / id / "1" / "log").open("r+b") as log:
        log.seek(10**9)  # a hole: it takes no room on the disk
        log.write(b"\n" + b"".join(b"line %d\n" % n for n in range(5000)))
    visitor.go(f"job/{id}")
    visitor.sees("line 4999", ".log")
    visitor.sees("1 GB", ".log-box")
    assert "line 4599" not in visitor.text(".log")
    visitor.press("earlier", ".log-box")
    visitor.sees("line 1\n", ".log")
    assert visitor.browser.evaluate("document.querySelector('.log').textContent.length") < 1_000_000


def test_a_job_that_is_not_there_is_said_in_words(visitor: Visitor) -> None:
    for name in ("99999", "%E0%A4%A", "x" * 10_000):
        visitor.go(f"job/{name}")
        visitor.browser.wait_for("document.querySelector('.refused') !== null")
        assert "job" in visitor.text(".refused").lower()


def test_the_table_and_the_map_are_worked_by_keyboard_alone(visitor: Visitor, owner: Client) -> None:
    owner.submit(["sleep", "600"], name="holder", resources={"gpus": 4})
    ids = [owner.submit(["sleep", "600"], name=f"task {n}")[0] for n in range(3)]
    visitor.sees("task 2", ".jobs")
    visitor.browser.evaluate("document.querySelector('.grid').focus()")
    visitor.key("ArrowDown")
    visitor.key("ArrowDown")
    assert "task 1" in visitor.text(".grid-row.active")
    described = "document.getElementById(document.querySelector('.grid').getAttribute('aria-activedescendant')).innerText"
    assert "task 1" in visitor.browser.evaluate(described)
    visitor.key(" ")
    visitor.sees("1 job chosen")
    visitor.key("Enter")
    visitor.sees(f"{ids[1]} task 1", "h1")


def test_finding_sorting_and_narrowing(visitor: Visitor, owner: Client) -> None:
    owner.submit(["sleep", "600"], name="holder", resources={"gpus": 4})
    for name, gpus in (("small", 1), ("large", 4), ("middle", 2)):
        owner.submit(["sleep", "600"], name=name, resources={"gpus": gpus})
    visitor.sees("middle", ".jobs")
    visitor.press("waiting", ".jobs")
    visitor.press("devices", ".grid")
    until(lambda: visitor.job_names() == ["small", "middle", "large"])
    visitor.press("devices", ".grid")
    until(lambda: visitor.job_names() == ["large", "middle", "small"])
    visitor.find("MIDD")
    until(lambda: visitor.job_names() == ["middle"])
