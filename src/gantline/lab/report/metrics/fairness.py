"""How evenly users and jobs were served: Jain's index over users and finish-time fairness of jobs."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import polars as pl

from gantline.core.arrays import Floats, Ints
from gantline.core.reasons import Reason
from gantline.lab.report.frames import RunLike, StoredRun, node_gpus_of, settled, span_of
from gantline.lab.report.metrics.completion import finite
from gantline.simulator.areas import integral, mean_present
from gantline.simulator.run_columns import COMPLETED, REJECTED, JobColumns, SpanColumns

RhoDefinition = Literal["share", "contention", "static"]


def jain_index(values: pl.Series | Floats) -> float:
    """One when all values are equal, ``1/n`` when one has everything (Jain, Chiu and Hawe, DEC-TR-301, 1984)."""
    array = finite(values)
    squares = float((array**2).sum())
    if array.size == 0:
        return math.nan
    return float(array.sum()) ** 2 / (array.size * squares) if squares > 0 else 1.0


def received_share(jobs: pl.DataFrame, end: float, by: str) -> pl.DataFrame:
    """GPU time held over GPU time asked for, per user or queue: the mean share of their demand that was served.

    A job asks for its GPUs from its arrival to its finish, or to ``end`` when it did not finish. Rejected jobs ask for
    nothing.
    """
    left = pl.when(pl.col("finish").is_finite()).then(pl.col("finish")).otherwise(end)
    requested = (pl.col("gpus") * (left - pl.col("arrival"))).sum()
    held = pl.col("gpu_seconds").sum()
    share = pl.when(requested > 0).then(held / requested).otherwise(None)
    present = jobs.filter(pl.col("state") != "rejected")
    return present.group_by(by).agg(share.alias("received")).sort(by)


def received_by_user(jobs: JobColumns, end: float) -> Floats:
    """The same as `received_share` per user, from arrays; NaN for one that asked for nothing."""
    present = jobs.take(jobs.state != REJECTED)
    users, codes = np.unique(present.user, return_inverse=True)
    requested = np.bincount(codes, present.gpus * (departures(present, end) - present.arrival), users.size)
    held = np.bincount(codes, present.gpu_seconds, users.size)
    return np.where(requested > 0, held / np.where(requested > 0, requested, 1.0), math.nan)


def finish_time_fairness(
    jobs: JobColumns, everyone: JobColumns, gpus: float, end: float, definition: RhoDefinition = "share", present: Floats | None = None
) -> Floats:
    """Rho: completion time over the completion time of an ideal private share; above one the job lost by sharing.

    ``present`` is what `present_over_life` says, where that is known already.

    The ideal time is ``duration`` times a slowdown of at least one. With ``n`` the mean number of present jobs over the
    job's life, ``g`` its GPUs and ``G`` those of the cluster, the slowdown is, by definition:

    * ``share``: ``g n / G``. The job alone on ``1/n`` of the cluster, slowed in proportion when that is less than it
      asked for (Themis, NSDI 2020, Section 3; as evaluated in Sia, SOSP 2023).
    * ``contention``: ``n / G``, what Shockwave's artifact calls Themis' rho.
    * ``static``: all jobs of the run over ``G``, Shockwave's own (NSDI 2023).
    """
    if gpus <= 0:
        return np.full(len(jobs), math.nan)
    if definition == "static":
        slowdown = np.full(len(jobs), len(everyone) / gpus)
    else:
        present = present_over_life(jobs, everyone, end) if present is None else present
        slowdown = present * (jobs.gpus if definition == "share" else 1.0) / gpus
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = jobs.jct / (jobs.duration * np.maximum(slowdown, 1.0))
    return np.where(jobs.duration > 0, rho, math.nan)


def present_over_life(jobs: JobColumns, everyone: JobColumns, end: float) -> Floats:
    """The mean number of jobs in the system, waiting or running, over the life of each job (itself included)."""
    there = everyone.state != REJECTED
    return mean_present(everyone.arrival[there], departures(everyone, end)[there], jobs.arrival, departures(jobs, end))


def departures(jobs: JobColumns, end: float) -> Floats:
    """When each job left: at its finish, or at the end of the run."""
    return np.where(np.isfinite(jobs.finish), jobs.finish, end)


# How users shared the cluster over time: what each held, how fast the work progressed, and which others each had reason to envy.
#
# A *machine* is a GPU, or the node of a grant that takes cores alone, so that clusters of CPU and GPU nodes are counted too.

Steps = dict[str, tuple[Floats, Floats]]
_LEFT = (int(Reason.FINISHED), int(Reason.END))  # after these a job does not wait again


def sharing(run: RunLike, by: str = "user") -> pl.DataFrame:
    """Per user or queue: its mean share of the machines over the run, the same while its jobs waited, and its envy.

    Envy is how much more of the cluster the largest holder held than the user did, averaged over the time in which the user
    had jobs waiting: 0 for a user who never waits, or only while no other user holds more.
    """
    run = settled(run)
    start, end = span_of(run)
    held, whole = held_over_time(run, by), machines(run)
    at_most = _largest(held)
    rows = []
    for name, (times, present) in _waiting(run, by).items():
        mine = held.get(name, (np.empty(0), np.empty(0)))
        area = np.diff(integral(*mine, np.array([start, end])))[0]
        edges = np.append(times, end)
        waits = present > 0
        lengths, own, most = np.diff(edges)[waits], np.diff(integral(*mine, edges))[waits], np.diff(integral(*at_most, edges))[waits]
        waited = float(lengths.sum())
        rows.append(
            {
                by: name,
                "share": float(area) / (whole * (end - start)) if end > start else 0.0,
                "waited": waited,
                "share_waiting": float(own.sum()) / (whole * waited) if waited > 0 else None,
                "envy": float((most - own).sum()) / (whole * waited) if waited > 0 else 0.0,
            }
        )
    schema = {by: pl.String, "share": pl.Float64, "waited": pl.Float64, "share_waiting": pl.Float64, "envy": pl.Float64}
    return pl.DataFrame(rows, schema=schema).sort(by)


def held_over_time(run: RunLike, by: str = "user") -> Steps:
    """Per user or queue the machines it held, as a step function: times and values."""
    run = settled(run)
    return _open(run, by, _machines(run.columns.spans))


def progress_over_time(run: RunLike) -> Steps:
    """Per user the speed of its work: GPU-seconds of what was asked for, done per second.

    A finished job's work is spread evenly over the time it ran, so that a slow device counts for less than a fast one; of a
    job that did not finish only the time it ran is known.
    """
    run = settled(run)
    jobs, spans = run.columns.jobs, run.columns.spans
    ran = np.bincount(spans.row + 1, spans.end - spans.start, len(jobs) + 1)[1:]  # jobs that are not listed come first
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = np.where((jobs.state == COMPLETED) & (ran > 0), jobs.duration * np.maximum(jobs.gpus, 1) / ran, np.nan)
    known = speed[spans.row]
    return _open(run, "user", np.where(np.isfinite(known), known, _machines(spans)))


def machines(run: RunLike) -> float:
    """How many machines there are: GPUs, and nodes without any; at least as many as were ever held at once."""
    there = sum(max(gpus, 1) for gpus in node_gpus_of(run))
    held = held_over_time(run, "all")
    return max(float(there), max((float(values.max()) for _, values in held.values() if values.size), default=0.0), 1.0)


def _machines(spans: SpanColumns) -> Floats:
    """The machines of each interval."""
    return np.maximum(spans.gpus, 1).astype(np.float64)


def _open(run: StoredRun, by: str, amounts: Floats) -> Steps:
    """Sums of the amounts of the intervals that are open, per owner."""
    spans, (names, owner) = run.columns.spans, _owners(run, by)
    listed = spans.row >= 0
    own, amount = owner[spans.row[listed]], amounts[listed]
    times = np.concatenate([spans.start[listed], spans.end[listed]])
    return _summed(names, np.concatenate([own, own]), times, np.concatenate([amount, -amount]))


def _waiting(run: StoredRun, by: str) -> Steps:
    """Jobs that wait, per owner: there from their arrival, away while they run, gone when they leave."""
    jobs, spans, (names, owner) = run.columns.jobs, run.columns.spans, _owners(run, by)
    let_in = jobs.state != REJECTED
    began = (spans.row >= 0) & let_in[spans.row]
    stopped = began & ~np.isin(spans.reason, _LEFT)
    owners = [owner[let_in], owner[spans.row[began]], owner[spans.row[stopped]]]
    changes = [np.full(len(rows), change) for rows, change in zip(owners, (1.0, -1.0, 1.0))]
    times = [jobs.arrival[let_in], spans.start[began], spans.end[stopped]]
    return _summed(names, np.concatenate(owners), np.concatenate(times), np.concatenate(changes))


def _owners(run: StoredRun, by: str) -> tuple[list[str], Ints]:
    """The users or queues in order of their names, and which of them each job belongs to."""
    if by == "all":
        return ["all"], np.zeros(run.jobs.height, dtype=np.int64)
    own = run.jobs[by].fill_null("")
    names = own.unique().sort()
    return names.to_list(), own.replace_strict(names, range(len(names)), return_dtype=pl.Int64).to_numpy()


def _summed(names: list[str], owner: Ints, times: Floats, changes: Floats) -> Steps:
    """Running sums of the changes of each owner; of changes at one moment the sum after all of them."""
    order = np.lexsort((times, owner))
    owner, times, changes = owner[order], times[order], changes[order]
    found = {}
    edges = np.searchsorted(owner, np.arange(len(names) + 1))
    for name, first, last in zip(names, edges, edges[1:]):
        if last > first:
            moments = times[first:last]
            settles = np.append(moments[1:] != moments[:-1], True)
            found[name] = moments[settles], np.cumsum(changes[first:last])[settles]
    return found


def _largest(held: Steps) -> tuple[Floats, Floats]:
    """What the largest holder has, over time: pairs of holders are merged until one is left."""
    rest = list(held.values())
    while len(rest) > 1:
        rest = [_higher(*rest[at : at + 2]) if at + 1 < len(rest) else rest[at] for at in range(0, len(rest), 2)]
    return rest[0] if rest else (np.empty(0), np.empty(0))


def _higher(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """The higher of two step functions, which are zero before they begin; a row only where it changes."""
    times = np.union1d(one[0], other[0])
    levels = (np.append(0.0, values)[np.searchsorted(moments, times, side="right")] for moments, values in (one, other))
    most = np.maximum(*levels)
    changes = np.diff(most, prepend=np.nan) != 0.0
    return times[changes], most[changes]
