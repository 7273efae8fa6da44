"""What really happened, where a log records when jobs started: one more run beside the simulated ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import NotFoundError, near
from gantline.lab.experiment.digest import value_digest
from gantline.lab.experiment.grid import Case, PolicyChoice
from gantline.lab.experiment.records import DONE, read_record, store_result
from gantline.lab.experiment.results import HAPPENED
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.sweep import Sweep
from gantline.lab.report.frames import SCHEMAS, StoredRun, series_of
from gantline.traces.against_cluster import held_too_much, impossible_times
from gantline.traces.files.clusters import read_cluster
from gantline.traces.trace import Trace


def check_against(against: str, choices: Sequence[PolicyChoice]) -> None:
    """Refuse a policy to compare with that will not be there, before hours of runs; what happened may be."""
    titles = [choice.title for choice in choices]
    if against and against not in (*titles, HAPPENED):
        raise NotFoundError(f"no policy '{against}' among those compared", where="against", fix=near(against, titles))


def history_of(trace: Trace, cluster: Cluster) -> StoredRun | None:
    """The run that the log records: each job from its real start for its duration; None where the log lacks a start."""
    rows = trace.frame
    if "started" not in rows.columns or rows["started"].null_count() or (rows["started"] < rows["arrival"]).any():
        return None
    none, nothing, finish = pl.lit(math.nan), pl.lit(0, dtype=pl.Int64), pl.col("started") + pl.col("duration")
    if "ended" in rows.columns:  # it may have been stopped on the way
        finish = pl.coalesce("ended", finish)

    def known(name: str) -> pl.Expr:
        return pl.col(name) if name in rows.columns else pl.lit("")

    jobs = rows.select(
        "job", "arrival", first_start="started", finish=finish, jct=finish - pl.col("arrival"), gpus="gpus", preemptions=nothing,
        restarts=nothing, queueing=pl.col("started") - pl.col("arrival"), responsiveness=pl.col("started") - pl.col("arrival"),
        service="duration", held=finish - pl.col("started"), gpu_seconds=(finish - pl.col("started")) * pl.col("gpus"),
        work_lost=pl.lit(0.0), user=known("user"), queue=known("queue"), app=known("app"), duration="duration",
        deadline=pl.col("deadline") if "deadline" in rows.columns else none, state=pl.lit("completed"),
    )  # fmt: skip
    empty = pl.lit([], dtype=pl.List(pl.Int32))
    spans = jobs.select(
        "job", start="first_start", end="finish", type=pl.lit(cluster.types[0]), nodes=empty, devices=empty,
        gpus=pl.col("gpus").cast(pl.Int32), reason=pl.lit("finished"),
    )  # fmt: skip
    gpus = sum(node.gpus for node in cluster.nodes)
    series = _busy(series_of(jobs, spans, gpus, (), ()), spans)
    events = pl.DataFrame(schema=SCHEMAS["events"])
    end = float(jobs["finish"].max())  # type: ignore[arg-type]
    summary = {"policy": HAPPENED, "cluster": str(cluster), "gpus": gpus, "jobs": jobs.height, "tracked": jobs.height, "end": end}
    summary |= {"log_hash": trace.hash, "trace_hash": trace.hash, "preemptions": 0, "decisions": 0, "completed": jobs.height}
    frames = {"jobs": jobs, "allocations": spans, "events": events, "series": series}
    return StoredRun(**{name: frame.cast(SCHEMAS[name]) for name, frame in frames.items()}, summary=summary)  # type: ignore[arg-type]


def _busy(series: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """The series with the GPUs that jobs held: a log does not record which devices, so they are counted, not looked up."""
    change = pl.col("gpus").cast(pl.Float64)
    steps = pl.concat([spans.select(time="start", change=change), spans.select(time="end", change=-change)])
    held = steps.group_by("time").sum().sort("time").select("time", held=pl.col("change").cum_sum())
    joined = series.sort("time").join_asof(held, on="time", strategy="backward")
    return joined.with_columns(busy_gpus=pl.col("held").fill_null(0.0)).drop("held")


def with_what_happened(sweep: Sweep, base: Setting) -> tuple[Sweep, str]:
    """The sweep with what a log says of real starts as one more policy, over the jobs that the runs count; or why it is left out."""
    if not base.trace.file or base.trace.scale != 1.0 or not sweep.cases:
        return sweep, ""
    trace, cluster = base.trace.load(0), read_cluster(base.cluster)
    run = history_of(trace, cluster)
    if reason := _why_not(trace, cluster, base):
        return sweep, f"What happened is left out: {reason}."
    return (sweep, "") if run is None else (_added(sweep, run, base), "")


def _why_not(trace: Trace, cluster: Cluster, base: Setting) -> str:
    """Why a log of real starts cannot be held against the runs."""
    if "started" not in trace.frame.columns or trace.frame["started"].null_count() == len(trace):
        return ""
    if unknown := trace.frame["started"].null_count():
        return f"{unknown} of {len(trace)} jobs {'has' if unknown == 1 else 'have'} no time of start"
    for finding in (*impossible_times(trace), *held_too_much(trace, cluster)):
        return f"{finding.what} ({finding.fix})" if len(finding.rows) == 1 else f"{finding.what}, {len(finding.rows)} jobs ({finding.fix})"
    return "it goes on where --until stops the runs" if math.isfinite(base.until) else ""


def _added(sweep: Sweep, run: StoredRun, base: Setting) -> Sweep:
    """What happened for every seed, because the jobs are those of the log, counted over the jobs that the runs of that seed count."""
    first, counted = sweep.cases[0], _counted(sweep, base)
    cases, records = list(sweep.cases), list(sweep.records)
    for seed in dict.fromkeys(case.axes.get("seed", 0) for case in sweep.cases):
        track = counted.get(seed)
        key = value_digest({"history": run.summary["trace_hash"], "cluster": base.cluster, "track": track})
        store_result(sweep.folder / "runs", key, replace(run, summary={**run.summary, "track": track}), keep_run=False)
        record = read_record(sweep.folder / "runs", key)
        assert record is not None
        cases.append(Case(HAPPENED, {**first.axes, "seed": seed}, {}, replace(first.setting, seed=int(seed)), key))
        records.append(record)
    return replace(sweep, cases=tuple(cases), records=tuple(records))


def _counted(sweep: Sweep, base: Setting) -> dict[object, list[int] | None]:
    """By seed, the range of jobs in the order of arrival that the runs on the cluster of the log count; None: all."""
    here = [
        (case.axes.get("seed", 0), record.summary.get("track"))
        for case, record in zip(sweep.cases, sweep.records)
        if record.state == DONE and str(case.axes.get("cluster", base.cluster)) == base.cluster
    ]
    return dict(here)
