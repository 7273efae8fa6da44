"""All numbers of a run in one dictionary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from gantline.core.arrays import Floats
from gantline.lab.report.frames import RunLike, node_gpus_of, node_racks_of, settled, span_of
from gantline.lab.report.metrics.columns import WHOLE, Window, columns_of, finite_only, span, time_mean, tracked_window
from gantline.lab.report.metrics.completion import (
    MET,
    MISSED,
    OPEN,
    bounded_slowdown,
    completed,
    deadline_outcome,
    distribution,
    makespan,
    outcomes,
    slowdowns,
    unfinished,
)
from gantline.lab.report.metrics.devices import busy_share, cross_node, cross_rack, energy, migrations, money, resizes
from gantline.lab.report.metrics.fairness import (
    RhoDefinition,
    finish_time_fairness,
    jain_index,
    present_over_life,
    received_by_user,
    received_share,
)
from gantline.lab.report.metrics.fragmentation import stranded_share, stranded_steps
from gantline.lab.report.metrics.steadiness import Steadiness, steadiness_of
from gantline.simulator.areas import mean
from gantline.simulator.objective import Ended
from gantline.simulator.run_columns import FAILED, REJECTED, JobColumns, RunColumns, joined


@dataclass(frozen=True)
class Measuring:
    """How runs are measured; None means the run's own value.

    `window`: which jobs count, by default those that the run tracked. Money needs `prices` (per GPU-hour of each type), energy `watts` (per
    held GPU of each type; by default as the run's options say, with carbon and the cost of power). Metrics of the cluster cover the time
    from the first tracked arrival to the last tracked finish.
    """

    window: Window | None = None
    prices: Mapping[str, float] | None = None
    watts: Mapping[str, float] | None = None
    rho: RhoDefinition = "share"

    def __call__(self, run: RunLike) -> dict[str, float]:
        """Every metric of the catalogue by its key; NaN where the run cannot say."""
        return self.with_steadiness(run)[0]

    def with_steadiness(self, run: RunLike) -> tuple[dict[str, float], Steadiness]:
        """The same, and the verdict of the overload guard."""
        summary, whole = run.summary, columns_of(run)
        window = self.window or tracked_window(summary)
        sizes = node_gpus_of(run)
        jobs, listed, spans, series = whole.jobs, whole.jobs, whole.spans, whole.series
        counted = np.ones(len(spans), dtype=bool)
        if window != WHOLE:
            rows = window.rows(jobs.arrival)
            chosen = np.zeros(len(jobs) + 1, dtype=bool)
            chosen[rows] = True
            jobs, counted = jobs.take(rows), chosen[spans.row]
        if whole.absent is not None:
            listed = joined(whole.jobs, whole.absent)
            listed = listed.take(window.rows(listed.arrival))
        else:
            listed = jobs
        done = jobs.take(completed(jobs))
        start, close = span(whole)
        start, end = (start, close) if window == WHOLE else _stretch(jobs, start, close)
        steady = steadiness_of(whole, window.warmup or None)
        between = (series.time >= start) & (series.time <= end)
        received = received_by_user(jobs, close)

        found: dict[str, float] = {
            "jobs": len(listed),
            "completed": len(done),
            "unfinished": int(unfinished(listed).sum()),
            "failed": int((jobs.state == FAILED).sum()),
            "rejected": int((jobs.state == REJECTED).sum()),
            "makespan": makespan(listed),
            "utilization": _utilization(whole, window, start, end),
            "queue_mean": mean((series.time, series.queued), start, end),
            "queue_max": float(series.queued[between].max()) if between.any() else math.nan,
            "gpu_hours": float(jobs.gpu_seconds.sum()) / 3600.0,
            "offered_load": steady.offered_load,
            "jain_users": jain_index(received) if received.size > 1 else math.nan,  # it is meaningless for a single user
        }
        _spread(found, "jct", done.jct, ("mean", "median", "p90", "p95", "p99", "max"))
        _spread(found, "slowdown", slowdowns(done.jct, done.duration), ("mean", "p95"))
        _spread(found, "queueing", done.queueing, ("mean", "p95"))
        _spread(found, "responsiveness", jobs.responsiveness, ("mean", "p95"))
        for count in ("preemptions", "restarts", "work_lost"):
            found[count] = float(getattr(jobs, count).sum())

        gpus = mean((series.time, series.total_gpus), start, end)
        present = present_over_life(done, whole.jobs, close)
        ratios = finite_only(finish_time_fairness(done, whole.jobs, gpus, close, self.rho, present))
        _spread(found, "rho", ratios, ("mean", "p95", "max"))
        others: tuple[RhoDefinition, ...] = ("contention", "static")
        for other in others:
            _spread(found, f"rho_{other}", finish_time_fairness(done, whole.jobs, gpus, close, other, present), ("mean", "max"))
        found["rho_unfair"] = float((ratios > 1.0).mean()) if ratios.size else math.nan

        judged = outcomes(jobs, close)
        met, missed, still_open = (int((judged == outcome).sum()) for outcome in (MET, MISSED, OPEN))
        found["deadlines"], found["deadline_misses"] = met + missed + still_open, missed
        found["deadline_satisfaction"] = met / (met + missed) if met + missed else math.nan
        found["resizes"], found["migrations"] = resizes(spans, counted), migrations(spans, counted)
        found["cross_node"], found["cross_rack"] = cross_node(spans, counted), cross_rack(spans, counted, node_racks_of(run))
        summary_of_links = summary if window == WHOLE and "links" in summary else {}
        found["communication"] = float(summary_of_links.get("communication_seconds", math.nan))
        found["link_overload"] = (
            float(sum(link["overload_seconds"] for link in summary_of_links["links"])) if summary_of_links else math.nan
        )
        lost = summary.get("time_lost") if window == WHOLE else None
        found["time_lost"] = math.nan if lost is None else float(lost)
        found["fragmentation"] = stranded_share(stranded_steps(whole, sizes), start, end) if sizes else math.nan
        own = summary.get("typical_fragmentation") if window == tracked_window(summary) else None
        found["typical_fragmentation"] = math.nan if own is None else float(own)
        billed = summary.get("cost") if self.prices is None and window == WHOLE else None
        prices = self.prices or summary.get("prices")
        found["money"] = float(billed) if billed is not None else money(_held(run, window), prices) if prices else math.nan
        drawn = summary if self.watts is None and window == WHOLE else {}
        found["energy"] = energy(_held(run, window), self.watts) if self.watts else float(drawn.get("kwh", math.nan))
        found["carbon"], found["energy_cost"] = (float(drawn.get(name, math.nan)) for name in ("carbon_kg", "energy_cost"))
        return found, steady


def measure(
    run: RunLike,
    *,
    window: Window | None = None,
    prices: Mapping[str, float] | None = None,
    watts: Mapping[str, float] | None = None,
    rho: RhoDefinition = "share",
) -> dict[str, float]:
    """Every metric of the catalogue by its key; the options are those of `Measuring`."""
    return Measuring(window, prices, watts, rho)(run)


def _held(run: RunLike, window: Window) -> pl.DataFrame:
    """The intervals of the jobs that count."""
    run = settled(run)
    return run.allocations if window == WHOLE else run.allocations.join(window.select(run.jobs).select("job"), on="job", how="semi")


def _stretch(jobs: JobColumns, start: float, close: float) -> tuple[float, float]:
    """The time the tracked jobs were there; to the end of the run while one of them has not left."""
    if not len(jobs):
        return start, close
    left = finite_only(jobs.finish)
    end = close if unfinished(jobs).any() or left.size == 0 else float(left.max())
    return float(finite_only(jobs.arrival).min()), end


def _utilization(run: RunColumns, window: Window, start: float, end: float) -> float:
    """The run's own figure where the window is the run's: it also counts shares of the time, which belong to no particular device."""
    recorded = run.summary.get("utilization") if window == tracked_window(run.summary) else None
    return busy_share(run.series, start, end) if recorded is None else float(recorded)


def _spread(found: dict[str, float], name: str, values: Floats, parts: tuple[str, ...]) -> None:
    spread = distribution(values, parts)
    found.update({f"{name}_{part}": spread[part] for part in parts})


# The same numbers per user or per queue.


def per_group(jobs: pl.DataFrame, by: Literal["user", "queue", "app"], end: float) -> pl.DataFrame:
    """A row per user, queue or app, the largest consumer first."""
    done = (pl.col("state") == "completed") & pl.col("jct").is_finite()
    table = (
        jobs.with_columns(slowdown=bounded_slowdown(jobs), outcome=deadline_outcome(jobs, end))
        .group_by(by)
        .agg(
            jobs=pl.len(),
            completed=done.sum(),
            gpu_hours=pl.col("gpu_seconds").sum() / 3600.0,
            jct_mean=pl.col("jct").filter(done).mean(),
            jct_p95=pl.col("jct").filter(done).quantile(0.95, "linear"),
            queueing_mean=pl.col("queueing").filter(done).mean(),
            slowdown_mean=pl.col("slowdown").filter(done).mean(),
            preemptions=pl.col("preemptions").sum(),
            work_lost=pl.col("work_lost").sum(),
            deadline_misses=(pl.col("outcome") == "missed").sum(),
        )
    )
    shares = received_share(jobs, end, by)
    return table.join(shares, on=by, how="left").sort(["gpu_hours", by], descending=[True, False])


# A finished run as an objective sees it (`gantline.simulator.objective`): how its jobs ended, what it cost and how much energy it drew.


def ended_run(run: RunLike) -> Ended:
    """What became of the jobs of a run; those that count are the ones it tracked."""
    run = settled(run)
    window = tracked_window(run.summary)
    counted = run.jobs["job"].is_in(window.select(run.jobs)["job"].implode())
    start, end = span_of(run)
    summary = run.summary
    prices = summary.get("prices")
    if window == WHOLE:
        dollars, kwh = summary.get("cost"), summary.get("kwh")
    else:  # power is metered for whole runs alone
        held = run.allocations.join(run.jobs.filter(counted).select("job"), on="job", how="semi")
        dollars, kwh = money(held, prices) if prices else None, None
    return ended_jobs(run.jobs.with_columns(tracked=counted), end, time_mean(run.series, "total_gpus", start, end), dollars, kwh)


def ended_jobs(jobs: pl.DataFrame, end: float, gpus: float, dollars: float | None = None, kwh: float | None = None) -> Ended:
    """The same from a table of jobs; where it has a column ``tracked``, those count."""
    jobs = jobs.filter(pl.col("state") != "future")
    counted = jobs["tracked"].to_numpy() if "tracked" in jobs.columns else np.ones(jobs.height, dtype=bool)
    lost = jobs["state"].is_in(["failed", "rejected", "cancelled"]).to_numpy()
    arrival = jobs["arrival"].to_numpy()
    return Ended(
        arrival=arrival,
        first_start=arrival + jobs["responsiveness"].to_numpy(),
        finish=jobs["finish"].to_numpy(),
        duration=jobs["duration"].to_numpy(),
        gpus=jobs["gpus"].to_numpy().astype(np.float64),
        end=end,
        devices=gpus,
        deadline=jobs["deadline"].to_numpy(),
        lost=lost,
        counted=counted,
        met=jobs["met"].fill_null(False).to_numpy() if "met" in jobs.columns else None,
        dollars=math.nan if dollars is None else float(dollars),
        kwh=math.nan if kwh is None else float(kwh),
    )
