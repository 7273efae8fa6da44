"""A sweep: the runs of a grid in parallel, each stored when it ends, so that the same command goes on where it stopped.

DIR/
  sweep.json       what is to be run: every case with the hash of its setting
  runs/            a record and the jobs of each run (`records`)
  results.parquet  a row per case: axes, state, summary, metrics
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from gantline.core.errors import UsageError
from gantline.core.json_reader import damaged, loads
from gantline.lab.experiment.charts import chart_of_sweep
from gantline.lab.experiment.folder import ExperimentFolder, read_results
from gantline.lab.experiment.grid import Case
from gantline.lab.experiment.messages import failures_of, notes_of, warnings_of
from gantline.lab.experiment.records import DISK_FULL, DONE, FAILED, Outcome, store_failure
from gantline.lab.experiment.results import SweepRuns, means_of
from gantline.lab.experiment.running.tasks import Backend, InThisProcess, Task, outcomes
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.sweep_page import render_sweep
from gantline.lab.report.figures import Chart
from gantline.lab.report.html import write_page
from gantline.lab.whole_files import DiskFullError

OnOutcome = Callable[[int, int, Case, Outcome], None]
"""Called after each run: how many are done, of how many, which case, how it ended."""


class Sweep(SweepRuns):
    """What a sweep found, and what can be asked of it."""

    @property
    def means(self) -> pl.DataFrame:
        """A row per policy and place of the axes other than seed: means, and intervals where there are runs enough."""
        return means_of(self.results)

    def plot(self, figure: str = "load", *, by: str = "", metrics: Sequence[str] = (), where: Mapping[str, Any] | None = None) -> Chart:
        """A figure of the results: "load" (a metric against an axis), "seeds" or "pareto"."""
        return chart_of_sweep(figure, self.results, by, metrics, where or {})

    def report(self, out: str | Path, *, title: str = "Gantline sweep") -> Path:
        """Write one offline HTML page: verdicts, means with intervals, figures, every run."""
        return write_page(render_sweep(self, title), Path(out))

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<Sweep of {len(self.cases)} runs in '{self.folder}'{failed}>"

    def _repr_html_(self) -> str:
        remarks = [*failures_of(self), *warnings_of(self), *notes_of(self)]
        listed = "".join(f"<li><small>{escape(remark)}</small></li>" for remark in remarks)
        return f"{self.means._repr_html_()}{f'<ul>{listed}</ul>' if remarks else ''}"


def run_sweep(
    cases: Sequence[Case],
    folder: Path,
    *,
    backend: Backend | None = None,
    keep_runs: bool = False,
    on_outcome: OnOutcome | None = None,
) -> Sweep:
    """Run what has no result of this program yet. One that fails is recorded and does not stop the others."""
    with ExperimentFolder.open(folder) as place:
        place.write_manifest(cases)
        waiting: dict[str, Case] = {}
        for case in cases:
            if case.setting.handed is not None or not place.is_done(case.hash, keep_runs):
                waiting.setdefault(case.hash, case)
        total = len({case.hash for case in cases})
        reused = done = total - len(waiting)
        tasks = [Task(case.setting, key, str(place.runs), case.name, keep_runs) for key, case in waiting.items()]
        for outcome in outcomes(backend or InThisProcess(), tasks):
            if outcome.state == DISK_FULL:
                raise DiskFullError(
                    f"the disk is full; the {done} finished runs are kept",
                    where=str(folder),
                    fix="make room and run the same command again",
                )
            case = waiting[outcome.hash]
            if outcome.state == FAILED:
                store_failure(place.runs, outcome, case.setting.to_dict())
            done += 1
            if on_outcome is not None:
                on_outcome(done, total, case, outcome)
        sweep = Sweep(tuple(cases), tuple(place.record(case.hash) for case in cases), place.path, reused)
        place.write_results(sweep.results)
        place.write_names(cases)
        return sweep


def read_sweep(folder: Path) -> Sweep:
    """A sweep from its folder, as far as it went: the same cases, records and results as when it ended."""
    results = read_results(folder)
    cases = []
    with damaged(str(folder / "sweep.json")):
        stored = {(case["hash"], case["name"]): case for case in loads((folder / "sweep.json").read_text(encoding="utf-8"))["cases"]}
        for row in results.iter_rows(named=True):
            one = stored.get((row["hash"], row["name"]), {})
            if "axes" not in one:
                raise UsageError("was written by an older Gantline", where=str(folder), fix="run the same command again")
            cases.append(Case(row["policy"], one["axes"], one["parameters"], Setting.read(one["setting"]), row["hash"]))
    place = ExperimentFolder(folder)
    return Sweep(tuple(cases), tuple(place.record(case.hash) for case in cases), folder, len(cases))


# One warm-up for all policies and clusters on the same jobs: means are compared only over the same jobs.

AUTO = "auto"


def with_common_warmup(cases: Sequence[Case], run: Callable[[Sequence[Case]], Sweep]) -> Sweep:
    """Run the cases; where their warm-up is to be found, run them once to find it, and again with the longest that any of them needs.

    The second time costs as much as the first, and every number of it, of jobs, queues and devices alike, is over the same jobs.
    """
    if not any(case.setting.warmup == AUTO for case in cases):
        return run(cases)
    first = run(cases)
    longest: dict[str, float] = {}
    for case, record in zip(first.cases, first.records):
        if record.state == DONE:
            longest[_jobs(case)] = max(longest.get(_jobs(case), 0.0), record.summary.get("warmup", 0.0))
    return run([_with_warmup(case, longest.get(_jobs(case), 0.0)) for case in cases])


def _jobs(case: Case) -> str:
    """The axes by which runs on other jobs, or under other rules, differ: all but the policy and the cluster, which are compared."""
    return repr(sorted((name, str(value)) for name, value in case.axes.items() if name != "cluster"))


def _with_warmup(case: Case, seconds: float) -> Case:
    if case.setting.warmup != AUTO:
        return case
    setting = replace(case.setting, warmup=seconds)
    return replace(case, setting=setting, hash=setting.hash)
