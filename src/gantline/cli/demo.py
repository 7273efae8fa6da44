"""``gantline demo``: a day of a cluster under six policies, a table and a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cyclopts import App

from gantline.cli.console import Column, Form, Sheet, is_watched, say, show, show_text, table
from gantline.core.fields import human_seconds
from gantline.core.machine_code.folder import kernel_folder
from gantline.lab.report.html import write_report
from gantline.lab.report.rundir import write_run
from gantline.lab.report.terminal import progress_bar
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.generators import generate

app = App(name="demo")
#: name in the table -> policy and parameters
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "fifo": ("fifo", {}),
    "fifo easy": ("fifo", {"backfill": "easy"}),
    "sjf": ("sjf", {}),
    "srtf": ("srtf", {}),
    "las": ("las", {}),
    "tiresias": ("tiresias", {}),
}
_TIMES = {"average_jct": "mean JCT", "median_jct": "median", "p99_jct": "99 %", "average_queueing": "queueing"}
_BAR = 14


@app.default
def demo(
    *,
    out: Path = Path("out/demo"),
    seed: int = 3,
    output: Form = "table",
) -> None:
    """Simulate a day of a 64-GPU cluster under six policies and compare them.

    Args:
        out: The folder of the page and the stored runs.
        seed: Seed of the day.
    """
    trace = generate("day", seed)
    say(f"a day of {len(trace)} jobs on 8 nodes of 8 GPUs, a decision every minute")
    if not kernel_folder().is_dir():
        say("note: the first run on a machine compiles the kernels, which takes a minute")
    runs, charged = [], []
    for name, (policy, settings) in POLICIES.items():
        run = simulate(trace, "8x8", policy, settings=settings, round=60.0, placement="consolidated")
        run.summary["name"] = name
        write_run(run, out / "runs" / name.replace(" ", "-"), replace=True)
        runs.append(run)
        paid = simulate(trace, "8x8", policy, settings=settings, round=60.0, placement="consolidated", costs="measured")
        charged.append(float(paid.summary["average_jct"]))
    show_comparison(runs, charged, output)
    page = write_report(runs, out / "report.html", title="A day of a cluster under six policies")
    say(f"figures, Gantt charts and every job: open {page}")


def show_comparison(runs: Sequence[Run], charged: Sequence[float], form: str) -> None:
    """A row per policy, with the mean completion time if starts and stops cost what was measured; a person gets bars beside the mean."""
    columns = [
        Column("policy", whole=True),
        *(Column(key, right=True, spell=human_seconds, title=title, whole=True) for key, title in _TIMES.items()),
        Column("utilization", right=True, spell=lambda share: f"{100 * share:.0f} %", title="used", whole=True),
        Column("preemptions", right=True, title="stops", whole=True),
        Column("jct_with_costs", right=True, spell=human_seconds, title="if stops cost", whole=True),
    ]
    means = {run.summary["name"]: float(run.summary["average_jct"]) for run in runs}
    best, worst = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    rows = [[run.summary["name"], *(run.summary[one.name] for one in columns[1:-1]), paid] for run, paid in zip(runs, charged)]
    if form == "table" and is_watched():
        columns.insert(2, Column("", whole=True))
        for row, mean in zip(rows, means.values()):
            row.insert(2, progress_bar(mean / means[worst], _BAR))
        show_text("")
    sheet = Sheet(tuple(columns), rows)
    if form == "table":
        show_text(table(sheet))  # in a file, too: the digits are for programs
    else:
        show(sheet, form)
    say("stops cost nothing here; the last column charges what was measured elsewhere (--costs measured)")
    say(f"under {best} the mean job completes {means[worst] / means[best]:.1f} times as fast as under {worst}")
