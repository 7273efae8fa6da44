"""All of one result: a run with its metrics, or a sweep as a table over its axes with its verdict."""

from __future__ import annotations

from typing import Any

from gantline.core.errors import GantlineError
from gantline.core.json_text import loads
from gantline.lab.experiment.folder import read_results
from gantline.lab.experiment.records import kept_run
from gantline.lab.report.metrics import METRICS, measure, tracked_window
from gantline.lab.report.run_warnings import doubts_of_run
from gantline.lab.report.rundir import plain
from gantline.live.service.results.folder import Result, ResultsFolder


def detail(folder: ResultsFolder, name: str) -> dict[str, Any]:
    """The result; one that cannot be read is shown as broken."""
    result = folder.result(name)
    try:
        return _sweep(result) if result.kind == "sweep" else _run(folder, result)
    except (GantlineError, OSError, ValueError, KeyError) as error:
        return {"name": name, "kind": "broken", "error": str(error)}


def metric_columns() -> list[dict[str, str]]:
    """All metrics: key, label, unit, and whether lower or higher is better."""
    return [{"key": one.key, "label": one.title, "unit": one.unit, "better": one.better} for one in METRICS]


def _run(folder: ResultsFolder, result: Result) -> dict[str, Any]:
    run = folder.run(result.name)
    values = plain(measure(run, window=tracked_window(run.summary)))
    measures = [{**one, "value": values[one["key"]]} for one in metric_columns() if values.get(one["key"]) is not None]
    doubts = [str(one) for one in doubts_of_run(run)]
    return {"name": result.name, "kind": "run", "summary": plain(run.summary), "measures": measures, "doubts": doubts}


def _sweep(result: Result) -> dict[str, Any]:
    cases: list[dict[str, Any]] = loads((result.path / "sweep.json").read_text(encoding="utf-8"))["cases"]
    ended = (result.path / "results.parquet").is_file()
    table = {str(row["hash"]): plain(row) for row in read_results(result.path).rows(named=True)} if ended else {}
    axes = list(dict.fromkeys(axis for case in cases for axis in case["axes"]))
    verdict = result.path / "verdict.txt"
    lines = verdict.read_text(encoding="utf-8").splitlines() if verdict.is_file() else []
    rows = [_case(result, case, table.get(str(case["hash"]), {})) for case in cases]
    return {"name": result.name, "kind": "sweep", "axes": ["policy", *axes], "metrics": metric_columns(), "rows": rows, "lines": lines}


def _case(result: Result, case: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """One case with its place on the axes, its metrics, and the name of its run where that was kept."""
    kept = kept_run(result.path / "runs", str(case["hash"]))
    measures = {one.key: found[one.key] for one in METRICS if found.get(one.key) is not None}
    head = {"case": case["name"], "policy": case["policy"], **plain(case["axes"]), "state": found.get("state", "missing")}
    return {**head, "run": f"{result.name}/runs/{kept.name}" if kept.is_dir() else None, **measures}
