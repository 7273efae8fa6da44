"""All metrics of a run from its frames, in polars' words: what the arrays of `gantline.report.metrics` are held against."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gantline.core.areas import integral, mean_present
from gantline.report.frames import RunLike, completed, node_gpus_of, node_racks_of, settled, span_of, unfinished
from gantline.report.metrics.cost import energy, money
from gantline.report.metrics.fairness import RhoDefinition, received_share
from gantline.report.metrics.fragmentation import ARRIVE, END, START
from gantline.report.metrics.steps import steps_of, time_mean
from gantline.report.metrics.utilization import with_utilization
from gantline.report.metrics.window import WHOLE, Window, tracked_window
from gantline.report.steady import WINDOWS, Steadiness, judge


def measure_frames(
    run: RunLike,
    *,
    window: Window | None = None,
    slowdown_threshold: float = 10.0,
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
    links = run.summary.get("links") if window == WHOLE else None
    found["communication"] = float(run.summary["communication_seconds"]) if links else math.nan
    found["link_overload"] = float(sum(link["overload_seconds"] for link in links)) if links else math.nan
    lost = run.summary.get("time_lost") if window == WHOLE else None
    found["time_lost"] = math.nan if lost is None else float(lost)
    found["fragmentation"] = fragmentation(fragmentation_series(run, sizes), start, end) if sizes else math.nan
    typical = run.summary.get("typical_fragmentation") if window == tracked_window(run.summary) else None
    found["typical_fragmentation"] = math.nan if typical is None else float(typical)
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


def resizes(allocations: pl.DataFrame) -> int:
    """Times that a running gang was given another number of devices."""
    return int((allocations["reason"] == "resized").sum())


def migrations(allocations: pl.DataFrame) -> int:
    """Times that a running gang went on with other devices."""
    return int((allocations["reason"] == "moved").sum())


def cross_node(allocations: pl.DataFrame) -> float:
    """The part of the jobs that ran which ever spanned more than one node; NaN: none ran."""
    return _share(allocations, pl.col("nodes").list.len() > 1)


def cross_rack(allocations: pl.DataFrame, racks: Sequence[int]) -> float:
    """The same for racks, by the rack of each node (none: there is one, or nobody said); nodes that joined later stand by themselves."""
    if not racks:
        return float("nan")
    rack = pl.element().replace_strict(list(range(len(racks))), list(racks), default=-1 - pl.element(), return_dtype=pl.Int64)
    return _share(allocations, pl.col("nodes").list.eval(rack).list.n_unique() > 1)


def _share(allocations: pl.DataFrame, spans: pl.Expr) -> float:
    by_job = allocations.group_by("job").agg(spans.any().alias("spans"))
    return float(by_job["spans"].mean()) if by_job.height else float("nan")  # type: ignore[arg-type]


def distribution(values: pl.Series) -> dict[str, float]:
    """Mean, median, 90th, 95th and 99th percentile and maximum of the finite values; NaN where there is none.

    Percentiles interpolate linearly between order statistics.
    """
    found = finite(values)
    names = ("mean", "median", "p90", "p95", "p99", "max")
    if found.size == 0:
        return dict.fromkeys(names, math.nan)
    quantiles = np.quantile(found, [0.5, 0.9, 0.95, 0.99])
    return dict(zip(names, [float(found.mean()), *map(float, quantiles), float(found.max())]))


def bounded_slowdown(jobs: pl.DataFrame, threshold: float = 10.0) -> pl.Series:
    """Completion time over run time, the run time at least ``threshold`` seconds and the result at least one.

    The run time is the job's ``duration`` with the GPUs it asked for. Feitelson and Rudolph, JSSPP 1998.
    """
    run_time = pl.max_horizontal(pl.col("duration"), pl.lit(threshold))
    return jobs.select(pl.max_horizontal(pl.col("jct") / run_time, pl.lit(1.0)).alias("slowdown"))["slowdown"]


def makespan(jobs: pl.DataFrame) -> float:
    """The time from the first arrival to the last completion; NaN while jobs are unfinished, for it is not over."""
    if not unfinished(jobs).is_empty():
        return math.nan
    ends = finite(completed(jobs)["finish"])
    if ends.size == 0:
        return math.nan
    return float(ends.max() - finite(jobs["arrival"]).min())


def finite(values: pl.Series) -> np.ndarray:
    """The values that are numbers, as an array of floats."""
    array = values.cast(pl.Float64).drop_nulls().to_numpy()
    return np.asarray(array[np.isfinite(array)], dtype=np.float64)


def deadline_outcome(jobs: pl.DataFrame, end: float) -> pl.Series:
    """``met``, ``missed`` or ``open`` for each job with a deadline, ``""`` for the others.

    A job that finished late, failed, was turned away or is still there when its deadline passes has missed it; an
    unfinished one whose deadline lies beyond ``end`` is open. A run that judged its own deadlines (``met``) is believed.
    """
    deadline = pl.col("deadline")
    in_time = pl.col("met") if "met" in jobs.columns else pl.col("finish") <= deadline
    done = (pl.col("state") == "completed") & pl.col("finish").is_finite()
    lost = pl.col("state").is_in(["failed", "rejected", "cancelled"])
    outcome = (
        pl.when(deadline.is_null() | deadline.is_nan())
        .then(pl.lit(""))
        .when(done)
        .then(pl.when(in_time).then(pl.lit("met")).otherwise(pl.lit("missed")))
        .when(lost | (deadline < end))
        .then(pl.lit("missed"))
        .otherwise(pl.lit("open"))
    )
    return jobs.select(outcome.alias("outcome"))["outcome"]


def jain_index(values: pl.Series) -> float:
    """One when all values are equal, ``1/n`` when one has everything (Jain, Chiu and Hawe, DEC-TR-301, 1984)."""
    array = values.cast(pl.Float64).drop_nulls().to_numpy()
    array = array[np.isfinite(array)]
    squares = float((array**2).sum())
    if array.size == 0:
        return math.nan
    return float(array.sum()) ** 2 / (array.size * squares) if squares > 0 else 1.0


def finish_time_fairness(
    jobs: pl.DataFrame, everyone: pl.DataFrame, gpus: float, end: float, definition: RhoDefinition = "share"
) -> pl.Series:
    """Rho: completion time over the completion time of an ideal private share; above one the job lost by sharing.

    The ideal time is ``duration`` times a slowdown of at least one. With ``n`` the mean number of present jobs over the
    job's life, ``g`` its GPUs and ``G`` those of the cluster, the slowdown is, by definition:

    * ``share``: ``g n / G``. The job alone on ``1/n`` of the cluster, slowed in proportion when that is less than it
      asked for (Themis, NSDI 2020, Section 3; as evaluated in Sia, SOSP 2023).
    * ``contention``: ``n / G``, what Shockwave's artifact calls Themis' rho.
    * ``static``: all jobs of the run over ``G``, Shockwave's own (NSDI 2023).
    """
    duration, gang = jobs["duration"].to_numpy(), jobs["gpus"].to_numpy().astype(np.float64)
    if gpus <= 0:
        return pl.Series("rho", np.full(jobs.height, math.nan))
    if definition == "static":
        slowdown = np.full(jobs.height, everyone.height / gpus)
    else:
        present = present_over_life(jobs, everyone, end)
        slowdown = present * (gang if definition == "share" else 1.0) / gpus
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = jobs["jct"].to_numpy() / (duration * np.maximum(slowdown, 1.0))
    return pl.Series("rho", np.where(duration > 0, rho, math.nan))


def present_over_life(jobs: pl.DataFrame, everyone: pl.DataFrame, end: float) -> np.ndarray:
    """The mean number of jobs in the system, waiting or running, over the life of each job (itself included)."""
    accepted = everyone.filter(pl.col("state") != "rejected")
    arrivals, departures = (frame.to_numpy() for frame in _life(accepted, end))
    born, gone = (frame.to_numpy() for frame in _life(jobs, end))
    return mean_present(arrivals, departures, born, gone)


def _life(jobs: pl.DataFrame, end: float) -> tuple[pl.Series, pl.Series]:
    left = pl.when(pl.col("finish").is_finite()).then(pl.col("finish")).otherwise(end)
    frame = jobs.select("arrival", left.alias("left"))
    return frame["arrival"], frame["left"]


def fragmentation_series(run: RunLike, node_gpus: list[int]) -> pl.DataFrame:
    """A step function of free, waiting and stranded GPUs and of the fragmentation.

    ``node_gpus`` holds the GPUs of each node; devices are numbered through the cluster, node after node.
    """
    run = settled(run)
    sizes = np.asarray(node_gpus, dtype=np.int64)
    node_of_device = np.repeat(np.arange(sizes.size), sizes)
    jobs = run.jobs.filter(pl.col("state") != "rejected").with_row_index("row")
    held = run.allocations.join(jobs.select("job", "row", "finish", "state"), on="job", maintain_order="left")
    last = held.group_by("job").agg(pl.col("end").max().alias("gone"))
    held = held.join(last, on="job", maintain_order="left").with_columns(
        leaves=(pl.col("end") >= pl.col("gone")) & pl.col("state").is_in(["completed", "failed", "cancelled"])
    )
    count = np.concatenate(([0], np.cumsum(held["devices"].list.len().to_numpy().astype(np.int64))))
    devices = held["devices"].explode().drop_nulls().to_numpy().astype(np.int64)

    moments = np.concatenate([jobs["arrival"].to_numpy(), held["start"].to_numpy(), held["end"].to_numpy()])
    kinds = np.repeat(np.array([ARRIVE, START, END]), [jobs.height, held.height, held.height])
    rows = np.concatenate([np.arange(jobs.height), np.arange(held.height), np.arange(held.height)])
    order = np.argsort(moments, kind="stable")
    largest = max(1, *node_gpus)
    out = np.empty((moments.size, 4))
    written = _sweep(
        moments[order],
        kinds[order],
        rows[order],
        jobs["gpus"].to_numpy().astype(np.int64),
        held["row"].to_numpy().astype(np.int64),
        held["leaves"].to_numpy().astype(np.bool_),
        count,
        devices,
        node_of_device,
        sizes,
        sizes.copy(),
        np.zeros(largest + 1, dtype=np.int64),
        np.zeros((largest + 1, largest + 1), dtype=np.int64),
        np.zeros(node_of_device.size, dtype=np.int64),
        np.zeros(jobs.height, dtype=np.int64),
        out,
    )
    frame = pl.DataFrame(out[:written], schema=["time", "free", "waiting", "stranded"], orient="row")
    useful = (pl.col("free") > 0) & (pl.col("waiting") > 0)
    return frame.with_columns(
        fragmentation=pl.when(useful).then(pl.col("stranded") / pl.col("free")).otherwise(0.0),
        wanted_free=pl.when(pl.col("waiting") > 0).then(pl.col("free")).otherwise(0.0),
    )


def fragmentation(series: pl.DataFrame, start: float, end: float) -> float:
    """Of the GPU time that was free while somebody waited, the share that was stranded; zero if there was none."""
    share = time_ratio(series, "stranded", "wanted_free", start, end)
    return 0.0 if math.isnan(share) else share


def steadiness(run: RunLike, warmup: float | None = None, windows: int = WINDOWS) -> Steadiness:
    """Look at the time between the first arrival, plus ``warmup`` seconds (by default as many as the run left out), and the last one."""
    run = settled(run)
    warmup = float(run.summary.get("warmup") or 0.0) if warmup is None else warmup
    widest = run.allocations.group_by("job").agg(widest=pl.col("gpus").max())
    jobs = run.jobs.filter(pl.col("state") != "rejected").with_columns(work=pl.col("gpus") * pl.col("duration"))
    jobs = jobs.join(widest, on="job", how="left", maintain_order="left")
    arrival, work, lost = (column.to_numpy() for column in (jobs["arrival"], jobs["work"], jobs.select(_lost()).to_series()))
    return judge(arrival, work, steps_of(run.series, "queued"), steps_of(run.series, "total_gpus"), warmup, windows, lost)


def _lost() -> pl.Expr:
    """GPU time that a job held beyond what it asks for. Of one that was given more devices than it asked for nothing is known: they may
    have been spare."""
    within = (pl.col("state") == "completed") & (pl.col("widest") <= pl.col("gpus"))
    return pl.when(within).then((pl.col("gpu_seconds") - pl.col("work")).clip(0.0)).otherwise(0.0).fill_nan(0.0).fill_null(0.0)


def time_ratio(series: pl.DataFrame, above: str, below: str, start: float, end: float) -> float:
    """The integral of one column over that of another; NaN where the second one is zero throughout."""
    moments = np.array([start, end])
    over, under = (np.diff(integral(*steps_of(series, column), moments))[0] for column in (above, below))
    return float(over / under) if under > 0 else math.nan


def utilization(series: pl.DataFrame, start: float, end: float) -> float:
    """Busy GPU time over available GPU time between two moments."""
    return time_ratio(with_utilization(series), "busy_gpus", "up_gpus", start, end)


def _sweep(
    moments: NDArray[np.float64],
    kinds: NDArray[np.int64],
    rows: NDArray[np.int64],
    gang: NDArray[np.int64],
    job_of: NDArray[np.int64],
    leaves: NDArray[np.bool_],
    first_device: NDArray[np.int64],
    devices: NDArray[np.int64],
    node_of_device: NDArray[np.int64],
    sizes: NDArray[np.int64],
    free: NDArray[np.int64],
    waiting: NDArray[np.int64],
    nodes: NDArray[np.int64],
    holders: NDArray[np.int64],
    running: NDArray[np.int64],
    out: NDArray[np.float64],
) -> int:
    """Walk through all changes in time order and write a row (time, free, waiting, stranded) after each moment; how many there are.

    Counters: free GPUs of each node, `waiting` by gang size (gangs larger than any node count as a whole node), `nodes` by size and
    free GPUs, `holders` of each device, intervals in which each job is `running`.
    """
    largest, written = waiting.size - 1, 0
    for size in sizes:
        nodes[size, size] += 1
    for i in range(moments.size):
        row = rows[i]
        if kinds[i] == ARRIVE:
            waiting[min(gang[row], largest)] += 1
        else:
            step = 1 if kinds[i] == START else -1
            job = job_of[row]
            was = running[job]
            running[job] += step
            if was == 0 and step == 1:
                waiting[min(gang[job], largest)] -= 1
            elif running[job] == 0 and step == -1 and not leaves[row]:
                waiting[min(gang[job], largest)] += 1
            for d in range(first_device[row], first_device[row + 1]):
                device = devices[d]
                before = holders[device] > 0
                holders[device] += step
                if before != (holders[device] > 0):
                    node = node_of_device[device]
                    nodes[sizes[node], free[node]] -= 1
                    free[node] -= step
                    nodes[sizes[node], free[node]] += 1
        if i + 1 < moments.size and moments[i + 1] == moments[i]:
            continue
        total_free, waiters, stranded = 0, 0, 0.0
        for g in range(1, largest + 1):
            waiters += waiting[g]
        for s in range(1, largest + 1):
            for f in range(1, s + 1):
                if nodes[s, f] > 0:
                    total_free += nodes[s, f] * f
                    for g in range(f + 1, largest + 1):
                        if f < min(g, s):
                            stranded += waiting[g] * nodes[s, f] * f
        out[written, 0] = moments[i]
        out[written, 1] = total_free
        out[written, 2] = waiters
        out[written, 3] = stranded / waiters if waiters > 0 else 0.0
        written += 1
    return written
