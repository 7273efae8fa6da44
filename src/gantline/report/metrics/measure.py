"""All numbers of a run in one dictionary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import polars as pl

from gantline.report.frames import RunLike, completed, node_gpus_of, node_racks_of, settled, span_of, unfinished
from gantline.report.metrics.changes import cross_node, cross_rack, migrations, resizes
from gantline.report.metrics.completion import SLOWDOWN_THRESHOLD, bounded_slowdown, distribution, finite, makespan
from gantline.report.metrics.cost import energy, money
from gantline.report.metrics.deadlines import deadline_outcome
from gantline.report.metrics.fairness import RhoDefinition, finish_time_fairness, jain_index, received_share
from gantline.report.metrics.fragmentation import fragmentation, fragmentation_series
from gantline.report.metrics.steadiness import steadiness
from gantline.report.metrics.steps import time_mean
from gantline.report.metrics.utilization import utilization
from gantline.report.metrics.window import WHOLE, Window, tracked_window


def measure(
    run: RunLike,
    *,
    window: Window | None = None,
    slowdown_threshold: float = SLOWDOWN_THRESHOLD,
    rho: RhoDefinition = "share",
    node_gpus: Sequence[int] | None = None,
    prices: Mapping[str, float] | None = None,
    watts: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Every metric of the catalogue by its key, over the ``window`` of jobs (by default those that the run tracked).

    A metric is NaN where the run cannot say.

    Fragmentation needs ``node_gpus`` (GPUs of each node, by default as the summary tells), money ``prices`` (per GPU-hour
    of each type, by default the run's own) and energy ``watts`` (per held GPU of each type; by default as the run's options
    say, with carbon and the cost of power). Metrics of the cluster cover the time from the first tracked arrival to the last
    tracked finish.
    """
    run = settled(run)
    window = tracked_window(run.summary) if window is None else window
    sizes = node_gpus_of(run) if node_gpus is None else list(node_gpus)
    jobs = window.select(run.jobs)
    listed = jobs if run.absent.is_empty() else window.select(pl.concat([run.jobs, run.absent], how="diagonal_relaxed"))
    done = completed(jobs)
    start, end = span_of(run) if window == WHOLE else _stretch(jobs, run)
    _, close = span_of(run)
    held = run.allocations if window == WHOLE else run.allocations.join(jobs.select("job"), on="job", how="semi")

    found: dict[str, float] = {
        "jobs": listed.height,
        "completed": done.height,
        "unfinished": unfinished(listed).height,
        "failed": jobs.filter(pl.col("state") == "failed").height,
        "rejected": jobs.filter(pl.col("state") == "rejected").height,
        "makespan": makespan(listed),
        "utilization": _utilization(run, window, start, end),
        "queue_mean": time_mean(run.series, "queued", start, end),
        "queue_max": _most(run.series.filter(pl.col("time").is_between(start, end))["queued"]),
        "gpu_hours": float(jobs["gpu_seconds"].sum()) / 3600.0,
        "offered_load": steadiness(run, window.warmup or None).offered_load,
        "jain_users": _jain_over_users(jobs, close),
    }
    _spread(found, "jct", done["jct"], ("mean", "median", "p90", "p95", "p99", "max"))
    _spread(found, "slowdown", bounded_slowdown(done, slowdown_threshold), ("mean", "p95"))
    _spread(found, "queueing", done["queueing"], ("mean", "p95"))
    _spread(found, "responsiveness", jobs["responsiveness"], ("mean", "p95"))
    for count in ("preemptions", "restarts", "work_lost"):
        found[count] = float(jobs[count].sum())

    gpus = time_mean(run.series, "total_gpus", start, end)
    ratios = finish_time_fairness(done, run.jobs, gpus, close, rho)
    _spread(found, "rho", ratios, ("mean", "p95", "max"))
    known = finite(ratios)
    for other in ("contention", "static"):
        _spread(found, f"rho_{other}", finish_time_fairness(done, run.jobs, gpus, close, other), ("mean", "max"))
    found["rho_unfair"] = float((known > 1.0).mean()) if known.size else math.nan

    outcome = deadline_outcome(jobs, close)
    found["deadlines"] = int((outcome != "").sum())
    found["deadline_misses"] = int((outcome == "missed").sum())
    judged = int((outcome == "met").sum()) + found["deadline_misses"]
    found["deadline_satisfaction"] = 1.0 - found["deadline_misses"] / judged if judged else math.nan
    found["resizes"], found["migrations"], found["cross_node"] = resizes(held), migrations(held), cross_node(held)
    found["cross_rack"] = cross_rack(held, node_racks_of(run))
    lost = run.summary.get("time_lost") if window == WHOLE else None
    found["time_lost"] = math.nan if lost is None else float(lost)
    found["fragmentation"] = fragmentation(fragmentation_series(run, sizes), start, end) if sizes else math.nan
    billed = run.summary.get("cost") if prices is None and window == WHOLE else None
    prices = prices or run.summary.get("prices")
    found["money"] = float(billed) if billed is not None else money(held, prices) if prices else math.nan
    drawn = run.summary if watts is None and window == WHOLE else {}
    found["energy"] = energy(held, watts) if watts else float(drawn.get("kwh", math.nan))
    found["carbon"], found["energy_cost"] = (float(drawn.get(name, math.nan)) for name in ("carbon_kg", "energy_cost"))
    return found


def _stretch(jobs: pl.DataFrame, run: RunLike) -> tuple[float, float]:
    """The time the tracked jobs were there; to the end of the run while one of them has not left."""
    if jobs.is_empty():
        return span_of(run)
    left = finite(jobs["finish"])
    end = span_of(run)[1] if not unfinished(jobs).is_empty() or left.size == 0 else float(left.max())
    return float(finite(jobs["arrival"]).min()), end


def _utilization(run: RunLike, window: Window, start: float, end: float) -> float:
    """The run's own figure where the window is the run's: it also knows shares of the time, which are of no device in particular."""
    told = run.summary.get("utilization") if window == tracked_window(run.summary) else None
    return utilization(run.series, start, end) if told is None else float(told)


def _jain_over_users(jobs: pl.DataFrame, close: float) -> float:
    """The index says nothing about a single user, or about jobs whose users are not known."""
    shares = received_share(jobs, close, "user")["received"]
    return jain_index(shares) if shares.len() > 1 else math.nan


def _spread(found: dict[str, float], name: str, values: pl.Series, parts: tuple[str, ...]) -> None:
    spread = distribution(values)
    found.update({f"{name}_{part}": spread[part] for part in parts})


def _most(values: pl.Series) -> float:
    return math.nan if values.is_empty() else float(values.max())  # type: ignore[arg-type]
