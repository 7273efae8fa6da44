"""Finished simulations in a browser (`gantline view`): runs, a comparison, a sweep, and results that are broken or empty."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.service.conftest import until
from tests.system.chromium import Chromium
from tests.system.visitor import Visitor
from tests.typed import typed

from gantline.lab.report.metrics import measure
from gantline.lab.report.rundir import read_run, write_run
from gantline.live.service.viewer import view_server
from gantline.simulator.simulate import simulate
from gantline.traces.trace import Trace

HOSTILE = "<img src=x onerror=window.owned=1>"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, one with a hostile name, a sweep of two policies over two loads, a run with a damaged table, one without jobs."""
    place = tmp_path_factory.mktemp("results")
    rows = [
        {"job": f"{HOSTILE}{k}", "arrival": 5.0 * k, "duration": 30.0 + 40 * (k % 3), "gpus": 1 + k % 2, "user": "ann"} for k in range(30)
    ]
    jobs = Trace.from_records(rows)
    for policy, name in (("fifo", "fifo"), ("srtf", f"srtf {HOSTILE}")):
        write_run(simulate(jobs, "2x2", policy), place / name)
    write_run(simulate(jobs, "2x2", "las"), place / "damaged")
    (place / "damaged" / "jobs.parquet").write_bytes(b"no table")
    jobs.frame.write_csv(place / "jobs.csv")
    assert typed(f"sweep {place}/jobs.csv --policy fifo,srtf --cluster 2x2 --load 0.5,1 --workers 1 --out {place}/grid") == 0
    return place


@pytest.fixture(scope="module")
def link(results: Path) -> Iterator[str]:
    serving = view_server(results)
    thread = threading.Thread(target=serving.run, daemon=True)
    thread.start()
    yield serving.url
    serving.server.should_exit = True
    thread.join(60)


@pytest.fixture(scope="module")
def logged_in(browser: Chromium, link: str) -> Visitor:
    browser.become(1200)
    browser.open(link)
    return Visitor(browser)


@pytest.fixture
def visitor(logged_in: Visitor) -> Iterator[Visitor]:
    logged_in.go("results")
    yield logged_in
    assert logged_in.complaints() == []
    assert logged_in.browser.evaluate("window.owned") is None


def test_only_pages_of_results_are_there(visitor: Visitor) -> None:
    visitor.sees("fifo", "table")
    assert visitor.browser.evaluate("[...document.querySelectorAll('nav a')].map(a => a.innerText)") == ["Results"]
    visitor.sees(HOSTILE, "table")
    assert visitor.barriers() == []


def test_a_finished_comparison_has_the_numbers_of_the_runs(visitor: Visitor, results: Path) -> None:
    visitor.sees("fifo", "table")
    visitor.browser.evaluate(
        "[...document.querySelectorAll('td input')].filter(i => /fifo|srtf/.test(i.ariaLabel)).forEach(i => i.click())"
    )
    visitor.press("Compare 2")
    visitor.browser.wait_for("document.querySelector('[data-measure=jct_mean]') !== null")
    shown = visitor.browser.evaluate("[...document.querySelectorAll('[data-measure=jct_mean] td')].map(c => +c.dataset.value)")
    assert sorted(shown) == pytest.approx(sorted(measure(read_run(results / name))["jct_mean"] for name in ("fifo", f"srtf {HOSTILE}")))
    visitor.browser.wait_for("document.querySelectorAll('.gantt canvas').length === 2")
    whole = visitor.text(".window")
    visitor.drag(".gantt canvas", 0.2, 0.5)
    until(lambda: visitor.text(".window") not in ("", whole))
    visitor.browser.wait_for("document.querySelectorAll('.gantt canvas').length === 2")
    assert visitor.barriers() == []


def test_a_run_has_its_measures_and_its_gantt(visitor: Visitor, results: Path) -> None:
    visitor.go("results/fifo")
    visitor.browser.wait_for("document.querySelector('[data-measure=makespan]') !== null")
    visitor.browser.evaluate("document.querySelector('main a[href*=history]').click()")
    visitor.sees("History of fifo", "h1")
    visitor.browser.wait_for("document.querySelector('.gantt canvas') !== null")
    before = visitor.browser.evaluate("location.hash")
    visitor.drag(".gantt canvas", 0.3, 0.6)
    visitor.browser.wait_for(f"location.hash !== {json.dumps(before)}")


def test_a_sweep_is_a_grid(visitor: Visitor) -> None:
    visitor.go("results/grid")
    visitor.browser.wait_for("document.querySelector('.sweep') !== null")
    assert visitor.browser.evaluate("[...document.querySelectorAll('.sweep tbody th')].map(h => h.innerText)") == ["fifo", "srtf"]
    assert visitor.browser.evaluate("[...document.querySelectorAll('.sweep thead th')].map(h => h.innerText)") == [
        "policy \\ load",
        "0.5",
        "1",
    ]
    assert visitor.browser.evaluate("document.querySelectorAll('.sweep [data-value]').length") == 4
    assert visitor.barriers() == []


def test_a_damaged_result_and_one_that_is_not_there_say_so(visitor: Visitor) -> None:
    visitor.go("results/damaged")
    visitor.sees("This result cannot be read.")
    visitor.go("results/nothing")
    visitor.browser.wait_for("document.querySelector('.refused') !== null")


def test_an_empty_folder_says_so(browser: Chromium, tmp_path: Path) -> None:
    serving = view_server(tmp_path)
    thread = threading.Thread(target=serving.run, daemon=True)
    thread.start()
    browser.open(serving.url)
    Visitor(browser).sees("The folder holds no results.")
    serving.server.should_exit = True
    thread.join(60)
