"""The report in a real browser: no error, no network, the numbers of the files, names that stay text.

Screenshots and the printed page are left in the folder that pytest names with ``--basetemp`` for a person to look at.
"""

import math

import pytest
from tests.lab.report.example_runs import example_run

from gantline.lab.experiment.grid import Grid, PolicyChoice
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.sweep import run_sweep
from gantline.lab.experiment.trace_source import TraceSource
from gantline.lab.report.html import write_report
from gantline.lab.report.metrics import measure
from gantline.lab.report.rundir import read_run, write_run

HOSTILE = [
    "</script><script>window.owned = 'script'</script>",
    "<img src=x onerror=\"window.owned = 'image'\">",
    "<svg onload=window.owned='svg'>",
    "javascript:window.owned='link'",
    "a & 'b' \"c\" <!-- ]]>",
    "line\u2028separator",
    "\u202eright to left",
]
USERS = ["ann", "<b onmouseover=window.owned=1>bob</b>", "$x^2$", *(f"user {i}" for i in range(9))]


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    """Three runs on disk, one of them with a hostile name and with jobs that never finished."""
    folder = tmp_path_factory.mktemp("runs")
    common = {"jobs": 300, "nodes": 4, "gap": 250.0, "names": HOSTILE, "users": USERS}
    runs = {
        "fifo": example_run(name="fifo", **common),
        "short": example_run(name="<img src=x onerror=window.owned='run'>", shortest_first=True, **common),
        "cut": example_run(name="cut short", until=40000.0, **common),
    }
    return [write_run(run, folder / name) for name, run in runs.items()]


@pytest.fixture(scope="module")
def report(directories, tmp_path_factory):
    return write_report([read_run(path) for path in directories], tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture
def page(browser, report):
    """The report on a desk, freshly opened; whatever happens in a test, the page may not have complained."""
    browser.become(1100)
    browser.open(report.as_uri())
    yield browser
    assert browser.errors == []
    assert browser.evaluate("window.owned") is None


def rows_of(page):
    return page.evaluate("[...document.querySelectorAll('#jobs tbody tr')].map(r => [...r.cells].map(c => c.textContent))")


def test_it_opens_without_an_error_and_without_the_network(page, report, tmp_path):
    page.screenshot(tmp_path / "desk.png")
    assert [a for a in page.addresses if not a.startswith("data:")] == [report.as_uri()]
    assert page.evaluate("document.title") == "Gantline report"


def test_numbers_equal_the_run_files(page, directories):
    shown = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('#comparison tr[data-metric]')].map("
        "r => [r.dataset.metric, [...r.querySelectorAll('td')].map(c => c.dataset.value)]))"
    )
    measures = [measure(read_run(path)) for path in directories]
    assert len(shown) > 20
    for key, cells in shown.items():
        for cell, found in zip(cells, measures, strict=True):
            assert (float(cell) == found[key]) if cell else math.isnan(found[key])


def test_every_figure_is_drawn(page):
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")  # folded figures are drawn when they unfold
    page.wait_for("!document.querySelector('.plot:empty')")
    figures = page.evaluate("[...document.querySelectorAll('.plot')].map(p => [p.id, p.querySelectorAll('svg.figure').length])")
    assert len(figures) >= 5
    assert all(drawn == 1 for _, drawn in figures), figures
    lines = page.evaluate("[...document.querySelectorAll('#figure-jct svg.figure path.line')].map(p => p.getTotalLength())")
    assert len(lines) == 3
    assert min(lines) > 300
    pictures = page.evaluate(
        "Promise.all([...document.querySelectorAll('#figure-gantt image')].map(p => new Promise(done => { const i = new Image();"
        " i.onload = () => done([i.width, p.getBoundingClientRect().left]); i.src = p.getAttribute('href'); })))"
    )
    assert [width for width, _ in pictures] == [1600] * 3
    assert len({left for _, left in pictures}) == 1  # one time axis


def test_a_run_looks_the_same_in_the_table_and_in_every_figure(page):
    look = "e => [...e.classList].filter(c => /^c\\d$/.test(c))[0] + ' ' + (e.getAttribute('stroke-dasharray') ?? '')"
    heads = page.evaluate(f"[...document.querySelectorAll('#comparison table:first-child thead .sample path')].slice(0, 3).map({look})")
    assert len(set(heads)) == 3
    for figure in ("jct", "timeline"):
        assert page.evaluate(f"[...document.querySelectorAll('#figure-{figure} .legend path')].map({look})") == heads


def box_of(page, figure):
    """Where a figure is on the screen."""
    page.evaluate(f"document.getElementById('figure-{figure}').scrollIntoView({{block: 'center'}})")
    return page.evaluate(
        f"(b => [b.left, b.top, b.width, b.height])(document.querySelector('#figure-{figure} svg.figure').getBoundingClientRect())"
    )


def drag(page, figure, begin, end):
    """Move the mouse over a figure with its button down, from one share of the width to another."""
    box = box_of(page, figure)
    steps = [("mousePressed", begin), ("mouseMoved", end), ("mouseReleased", end)]
    for kind, share in steps:
        where = {"x": box[0] + share * box[2], "y": box[1] + 0.4 * box[3]}
        page.call("Input.dispatchMouseEvent", type=kind, button="left", buttons=1, clickCount=1, **where)


def test_a_drag_looks_closer_and_a_double_click_comes_back(page):
    ticks = "[...document.querySelectorAll('#figure-timeline .tick[text-anchor=middle]')].map(t => t.textContent)"
    before = page.evaluate(ticks)
    drag(page, "timeline", 0.5, 0.6)
    assert page.evaluate(ticks) != before
    page.evaluate("document.querySelector('#figure-timeline svg.figure').dispatchEvent(new MouseEvent('dblclick'))")
    assert page.evaluate(ticks) == before


def test_pointing_tells_values_and_a_name_takes_its_curve_away(page):
    box = box_of(page, "jct")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + box[2] / 2, y=box[1] + box[3] / 2)
    told = page.evaluate("[...document.querySelectorAll('#figure-jct .tip:not([hidden]) div')].map(d => d.textContent)")
    assert len(told) == 4
    assert told[1].startswith("fifo: ")
    page.evaluate("document.querySelector('#figure-jct .legend button').click()")
    assert page.evaluate("document.querySelectorAll('#figure-jct svg.figure path.line').length") == 2
    assert page.evaluate("document.querySelector('#figure-jct .legend button').getAttribute('aria-pressed')") == "false"


def test_the_page_is_small_and_one_screen_holds_the_answer(page, report):
    assert report.stat().st_size < 2e6
    assert page.evaluate("document.querySelector('#comparison .scroll').getBoundingClientRect().bottom") < 900


def test_hostile_names_stay_text(page):
    names = [row[0] for row in rows_of(page)]
    assert names[: len(HOSTILE)] == HOSTILE
    heads = page.evaluate("[...document.querySelectorAll('#comparison thead th')].map(h => h.textContent)")
    assert heads == 2 * ["Metric", "fifo", "<img src=x onerror=window.owned='run'>", "cut short"]
    assert page.evaluate("document.querySelectorAll('table img, table svg:not(.sample), table b, h3 img').length") == 0
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    page.wait_for("!document.querySelector('.plot:empty')")
    ticks = page.evaluate("[...document.querySelectorAll('#figure-fairness .tick')].map(t => t.textContent)")
    assert any(tick.startswith("<b onmouseover") for tick in ticks)


def test_jobs_are_searched_sorted_and_paged(page, directories):
    jobs = read_run(directories[0]).jobs
    assert page.evaluate("document.getElementById('found').textContent") == "300 jobs, page 1 of 6"
    page.evaluate("document.getElementById('next').click()")
    assert rows_of(page)[0][0] == jobs["job"][50]

    page.evaluate("find = document.getElementById('find'); find.value = 'JOB-17'; find.dispatchEvent(new Event('input'))")
    expected = [job for job in jobs["job"] if "job-17" in job]
    assert [row[0] for row in rows_of(page)] == expected

    page.evaluate("find.value = ''; find.dispatchEvent(new Event('input'))")
    column = page.evaluate("[...document.querySelectorAll('#jobs th')].findIndex(h => h.dataset.title === 'JCT')")
    page.evaluate(f"document.querySelectorAll('#jobs th button')[{column}].click()")
    assert rows_of(page)[0][0] == jobs.sort("jct", descending=True)["job"][0]

    page.evaluate("which = document.getElementById('which'); which.selectedIndex = 2; which.dispatchEvent(new Event('change'))")
    cut = read_run(directories[2]).jobs
    page.evaluate("find.value = 'waiting'; find.dispatchEvent(new Event('input'))")
    waiting = int((cut["state"] == "waiting").sum())
    assert page.evaluate("document.getElementById('found').textContent").startswith(f"{waiting} jobs")


def test_it_fits_a_phone(browser, report, tmp_path):
    browser.become(390, 844, phone=True)
    browser.open(report.as_uri())
    browser.screenshot(tmp_path / "phone.png")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    widths = browser.evaluate("[...document.querySelectorAll('.plot, .plot svg.figure')].map(p => p.getBoundingClientRect().right)")
    assert max(widths) <= 390
    narrowest = browser.evaluate("Math.min(...[...document.querySelectorAll('#comparison th[scope=row]')].map(h => h.clientWidth))")
    assert narrowest >= 120  # a metric's name is read as words, not as a column of letters
    frame = "document.querySelector('#comparison .scroll')"
    hint = f"getComputedStyle({frame}.nextElementSibling).display"
    assert browser.evaluate(f"{frame}.scrollWidth > {frame}.clientWidth")
    assert browser.evaluate(hint) == "block"  # columns go on, and the page says so
    browser.evaluate(f"{frame}.scrollLeft = 10000")
    browser.wait_for(f"{hint} === 'none'")
    assert browser.errors == []


def test_dark_follows_the_system_and_the_button(browser, report, tmp_path):
    ground = "getComputedStyle(document.body).backgroundColor"
    paper = "getComputedStyle(document.querySelector('#figure-jct .tick')).fill"
    browser.become(1100, dark=True)
    browser.open(report.as_uri())
    browser.screenshot(tmp_path / "dark.png")
    assert browser.evaluate(ground) == "rgb(20, 23, 26)"
    assert browser.evaluate(paper) == "rgb(232, 234, 237)"
    browser.evaluate("document.getElementById('theme').click()")
    assert browser.evaluate(ground) == "rgb(255, 255, 255)"
    assert browser.evaluate(paper) == "rgb(27, 31, 36)"
    assert browser.errors == []


def test_it_prints_light_and_unfolded_even_from_a_dark_screen(browser, report, tmp_path):
    browser.become(1100, dark=True)
    browser.open(report.as_uri())
    browser.evaluate(
        "addEventListener('beforeprint', () => { window.printed = [document.querySelectorAll('details:not([open])').length,"
        " document.querySelectorAll('.plot:empty').length, document.querySelector('#figure-jct svg.figure').clientWidth]; })"
    )
    browser.print(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert browser.evaluate("window.printed") == [0, 0, 690]
    browser.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    body = "(s => [s.backgroundColor, s.color])(getComputedStyle(document.body))"
    assert browser.evaluate(body) == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]
    assert browser.evaluate("document.querySelectorAll('details:not([open])').length") > 0
    assert browser.errors == []


def test_the_numbers_are_there_without_scripts(browser, report, directories):
    browser.become(1100)
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.call("Page.navigate", url=report.as_uri())
        browser.wait_for("document.readyState === 'complete' && document.querySelector('#comparison') !== null")
        cell = browser.evaluate("document.querySelector('tr[data-metric=jct_mean] td').dataset.value")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert float(cell) == measure(read_run(directories[0]))["jct_mean"]


def test_the_grid_of_a_sweep_is_read_on_a_phone(browser, tmp_path):
    base = Setting(TraceSource(generator="day", settings={"jobs": 30, "gpus": 16}), "4x4", "fifo")
    policies = tuple(PolicyChoice(name) for name in ("fifo", "srtf", "las"))
    swept = run_sweep(Grid(base, policies, loads=(0.4, 0.6, 0.9), seeds=(0, 1, 2)).cases(), tmp_path / "s")
    swept.report(tmp_path / "sweep.html")
    browser.become(400, 800, phone=True)
    browser.open((tmp_path / "sweep.html").as_uri())
    browser.screenshot(tmp_path / "sweep-phone.png")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 400
    box = "document.querySelector('#grid-jct_mean {}').getBoundingClientRect().{}"
    assert browser.evaluate(box.format(".across", "left")) <= browser.evaluate(box.format(".under", "left"))
    assert browser.evaluate(box.format(".across", "bottom")) <= browser.evaluate(box.format(".under", "top")) + 1
    assert browser.evaluate(box.format(".under", "right")) == browser.evaluate(box.format("tbody td", "right"))  # values under their load
    assert browser.evaluate("getComputedStyle(document.querySelector('.goes-on')).display") == "block"
    assert browser.errors == []
