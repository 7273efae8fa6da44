"""What a trace is like: sizes, durations, arrivals, people and outcomes as values, and tables and curves of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import polars as pl
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from gantline.core.errors import UsageError
from gantline.core.fields import human_seconds
from gantline.traces.trace import Trace

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_CURVE_POINTS = 400
_GPU_SECONDS = pl.col("gpus") * pl.col("duration")


@dataclass(frozen=True, slots=True)
class ShareOfJobs:
    """How much of a trace belongs to one size, user, queue or outcome: of the jobs, and of the GPU time."""

    name: str
    count: int
    jobs: float
    gpu_time: float


@dataclass(frozen=True, slots=True)
class TraceStats:
    """Statistics of a trace; times in seconds. Hours and weekdays count from the start of the trace's own clock."""

    jobs: int
    span: float
    gpu_hours: float
    gpus: int | None
    offered_load: float | None
    jobs_per_hour: float | None
    mean_gpus: float
    largest: int
    sizes: tuple[ShareOfJobs, ...]
    mean_duration: float
    durations: dict[float, float]
    size_duration_correlation: float | None
    mean_gap: float | None
    gap_variation: float | None
    hour_of_day: tuple[float, ...]
    weekdays: tuple[float, ...]
    users: tuple[ShareOfJobs, ...]
    queues: tuple[ShareOfJobs, ...]
    outcomes: tuple[ShareOfJobs, ...]
    deadlines: int

    def as_dict(self) -> dict[str, object]:
        """The same values as plain lists, numbers and texts, for JSON."""
        plain = asdict(self)
        plain["durations"] = {f"p{100 * at:g}": value for at, value in self.durations.items()}
        return plain


def stats(trace: Trace, gpus: int | None = None) -> TraceStats:
    """The statistics of a trace; the offered load is the work that arrives over what ``gpus`` could do meanwhile."""
    if gpus is not None and gpus < 1:
        raise UsageError(f"{gpus} is not a number of GPUs", where="gpus", fix="give the size of the cluster")
    frame = trace.frame
    arrival, duration = frame["arrival"].to_numpy(), frame["duration"].to_numpy()
    span = float(arrival[-1] - arrival[0])
    work = float(frame.select(_GPU_SECONDS.sum()).item())
    gaps = np.diff(arrival)
    clock = (arrival // 3600).astype(np.int64)
    sizes = sorted(shares(frame, "gpus"), key=lambda share: int(share.name))
    return TraceStats(
        jobs=len(frame),
        span=span,
        gpu_hours=work / 3600,
        gpus=gpus,
        offered_load=work / (gpus * span) if gpus and span > 0 else None,
        jobs_per_hour=3600 * len(gaps) / span if span > 0 else None,
        mean_gpus=float(frame["gpus"].to_numpy().mean()),
        largest=int(frame["gpus"].to_numpy().max()),
        sizes=tuple(sizes),
        mean_duration=float(duration.mean()),
        durations=dict(zip(QUANTILES, np.quantile(duration, QUANTILES).tolist(), strict=True)),
        size_duration_correlation=_rank_correlation(frame),
        mean_gap=float(gaps.mean()) if len(gaps) else None,
        gap_variation=float(gaps.std() / gaps.mean()) if span > 0 else None,
        hour_of_day=_histogram(clock % 24, 24),
        weekdays=_histogram(clock // 24 % 7, 7),
        users=shares(frame, "user"),
        queues=shares(frame, "queue"),
        outcomes=shares(frame, "outcome"),
        deadlines=int(frame["deadline"].is_not_null().sum()) if "deadline" in frame.columns else 0,
    )


def shares(frame: pl.DataFrame, column: str) -> tuple[ShareOfJobs, ...]:
    """Jobs and GPU time by the values of a column, the most frequent first; nothing where the column is unknown."""
    if column not in frame.columns:
        return ()
    work = float(frame.select(_GPU_SECONDS.sum()).item()) or 1.0
    grouped = frame.group_by(column).agg(pl.len().alias("count"), (_GPU_SECONDS.sum() / work).alias("work"))
    ordered = grouped.sort("count", column, descending=[True, False])
    return tuple(ShareOfJobs(str(name), count, count / len(frame), part) for name, count, part in ordered.iter_rows())


def series(trace: Trace) -> dict[str, pl.DataFrame]:
    """The data of the usual plots: durations and gaps as curves, sizes, arrivals over time and over the day."""
    frame = trace.frame
    hourly = frame.group_by((pl.col("arrival") // 3600).cast(pl.Int64).alias("hour"))
    arrivals = hourly.agg(pl.len().alias("jobs"), pl.col("gpus").sum(), _GPU_SECONDS.sum().alias("work"))
    found = stats(trace)
    return {
        "durations": _curve("duration", frame["duration"].to_numpy()),
        "gaps": _curve("gap", np.diff(frame["arrival"].to_numpy())),
        "sizes": pl.DataFrame(
            {"gpus": [int(size.name) for size in found.sizes]}
            | {name: [getattr(size, name) for size in found.sizes] for name in ("count", "jobs", "gpu_time")}
        ),
        "arrivals": arrivals.sort("hour"),
        "hour_of_day": pl.DataFrame({"hour": range(24), "share": found.hour_of_day}),
        "weekdays": pl.DataFrame({"day": DAYS, "share": found.weekdays}),
    }


def render(found: TraceStats, most: int = 8) -> Group:
    """Tables for a terminal: the overview, then sizes, people and outcomes, each with its ``most`` frequent rows."""
    known = {"GPUs": found.sizes, "user": found.users, "queue": found.queues, "outcome": found.outcomes}
    return Group(overview(found), *(share_table(name, rows, most) for name, rows in known.items() if rows))


def overview(found: TraceStats) -> Table:
    """The numbers that describe a trace as a whole, two columns."""
    busy = max(range(24), key=found.hour_of_day.__getitem__)
    gap, mean = human_seconds(found.mean_gap or 0.0), human_seconds(found.mean_duration)
    middle, tail = human_seconds(found.durations[0.5]), human_seconds(found.durations[0.99])
    rows = {
        "jobs": f"{found.jobs:,}",
        "span": human_seconds(found.span),
        "GPU-hours": f"{found.gpu_hours:,.1f}",
        f"offered load on {found.gpus} GPUs": _optional(found.offered_load, "{:.3f}"),
        "jobs per hour": _optional(found.jobs_per_hour, "{:.2f}"),
        "gap between arrivals": _optional(found.gap_variation, f"{gap}, variation {{:.2f}}"),
        "GPUs per job": f"mean {found.mean_gpus:.2f}, largest {found.largest}",
        "duration": f"mean {mean}, median {middle}, p99 {tail}",
        "larger runs longer (rank correlation)": _optional(found.size_duration_correlation, "{:.2f}"),
        "busiest hour of its day": f"{busy}:00 with {24 * found.hour_of_day[busy]:.2f} times the mean",
        "jobs with a deadline": f"{found.deadlines:,}" if found.deadlines else "",
    }
    table = Table(title="Trace", show_header=False)
    for name, text in rows.items():
        if text:
            table.add_row(name, text)
    return table


def share_table(name: str, rows: tuple[ShareOfJobs, ...], most: int = 8) -> Table:
    """Jobs and GPU time by one column; what is beyond ``most`` rows is summed up in the last one."""
    table = Table(name, "jobs", "% of jobs", "% of GPU time")
    shown = rows if len(rows) <= most else rows[: most - 1]
    rest = rows[len(shown) :]
    if rest:
        sums = (sum(r.count for r in rest), sum(r.jobs for r in rest), sum(r.gpu_time for r in rest))
        shown = (*shown, ShareOfJobs(f"{len(rest)} others", *sums))
    for row in shown:
        table.add_row(escape(row.name) or "(none)", f"{row.count:,}", f"{100 * row.jobs:.1f}", f"{100 * row.gpu_time:.1f}")
    return table


def _optional(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def _histogram(values: np.ndarray, bins: int) -> tuple[float, ...]:
    return tuple((np.bincount(values, minlength=bins)[:bins] / len(values)).tolist())


def _curve(name: str, values: np.ndarray) -> pl.DataFrame:
    """An empirical distribution: every value when there are few, quantiles when there are many."""
    count = min(len(values), _CURVE_POINTS)
    at = np.arange(1, count + 1) / max(count, 1)
    return pl.DataFrame({name: np.quantile(values, at, method="inverted_cdf") if count else np.array([]), "share": at})


def _rank_correlation(frame: pl.DataFrame) -> float | None:
    if frame["gpus"].n_unique() < 2 or frame["duration"].n_unique() < 2:
        return None
    return float(frame.select(pl.corr("gpus", "duration", method="spearman")).item())
