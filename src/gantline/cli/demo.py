"""``gantline demo``: a day of a cluster under six policies, a table and a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from gantline.cli.console import Column, Sheet, is_watched, say, show, show_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantline.simulator.run import Run

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
_BAR = 14


@app.default
def demo(
    *,
    out: Annotated[Path, Parameter(help="The folder of the page and the stored runs.")] = Path("out/demo"),
    seed: Annotated[int, Parameter(help="Seed of the day.")] = 3,
) -> None:
    """Simulate a day of a 64-GPU cluster under six policies and compare them."""
    from gantline.core.machine_code.folder import kernel_folder
    from gantline.lab.report.rundir import write_run
    from gantline.simulator.simulate import simulate
    from gantline.traces.generators import generate

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
    show_comparison(list(POLICIES), runs, charged)
    _write_page(runs, out / "report.html")


def show_comparison(names: Sequence[str], runs: Sequence[Run], charged: Sequence[float]) -> None:
    """A row per policy, with the mean completion time if starts and stops cost what was measured; a person gets bars beside the mean."""
    from gantline.core.units import human_seconds

    times = {"average_jct": "mean JCT", "median_jct": "median", "p99_jct": "99 %", "average_queueing": "queueing"}
    columns = [
        Column("policy"),
        *(Column(key, right=True, spell=human_seconds, title=title, whole=True) for key, title in times.items()),
    ]
    columns.append(Column("utilization", right=True, spell=lambda share: f"{100 * share:.0f} %", title="used", whole=True))
    columns.append(Column("preemptions", right=True, title="stops"))
    rows: list[list[Any]] = [[name, *(run.summary[column.name] for column in columns[1:])] for name, run in zip(names, runs)]
    columns.append(Column("jct_with_costs", right=True, spell=human_seconds, title="mean JCT if stops cost", whole=True))
    for row, mean in zip(rows, charged):
        row.append(mean)
    if is_watched():
        from gantline.lab.report.terminal import progress_bar

        longest = max(run.summary["average_jct"] for run in runs)
        columns.insert(2, Column("", whole=True))
        for row, run in zip(rows, runs):
            row.insert(2, progress_bar(run.summary["average_jct"] / longest, _BAR))
        show_text("")
    show(Sheet(tuple(columns), rows), "table")
    best = min(range(len(runs)), key=lambda k: float(runs[k].summary["average_jct"]))
    worst = max(range(len(runs)), key=lambda k: float(runs[k].summary["average_jct"]))
    factor = runs[worst].summary["average_jct"] / runs[best].summary["average_jct"]
    say("stops cost nothing here; the last column charges what was measured elsewhere (--costs measured)")
    say(f"under {names[best]} the mean job completes {factor:.1f} times as fast as under {names[worst]}")


def _write_page(runs: Sequence[Run], path: Path) -> None:
    from gantline.lab.report.html import write_report

    write_report(runs, path, title="A day of a cluster under six policies")
    say(f"figures, Gantt charts and every job: open {path}")
