"""A finished simulation: summary and frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
import polars as pl

from gantline.core.columns import Device, Job, Option
from gantline.core.fields import human_seconds
from gantline.core.reasons import Reason, slug
from gantline.core.tables import Tables
from gantline.engine.drivers.journal import Journal
from gantline.engine.log import Interval, Log
from gantline.engine.policy_failures import Refused
from gantline.simulator.figures import sharing_columns
from gantline.simulator.run_columns import (
    STATES,
    Held,
    JobColumns,
    RunColumns,
    held_devices,
    jobs_of_tables,
    series_columns,
    series_frame,
    spans_of_log,
)

ENDED_BY_LOSS = "ended_by_loss"


@dataclass(repr=False)
class Run:
    """The results of a simulation. Frames are built when they are first used.

    `summary`: the numbers of the run, by name. `jobs`, `allocations`, `events`, `series`: polars frames.
    `plot`: figures, such as `run.plot.gantt()` and `run.plot.jct_cdf()` (`gantline.lab.report.plots`).

    >>> run = gantline.simulate("day", "8x8", "srtf")
    >>> run.summary["average_jct"], run.jobs.filter(pl.col("user") == "ada"), run.plot.timeline()
    """

    summary: dict[str, Any]
    tables: Tables
    log: Log
    held: Held
    incidents: tuple[str, ...] = ()
    journal: Journal | None = None  # what entered and what was decided, when asked for
    track: tuple[int, int] | None = None  # tracked rows [low, high)
    refusals: tuple[Refused, ...] = ()  # jobs that the policy would not run as asked
    notices: tuple[str, ...] = ()  # notes of the policy: deadlines that cannot be met, a fallback that was taken
    pieces: pl.DataFrame | None = None  # what an original reports instead of a row per job, such as a row per piece of a job

    def __repr__(self) -> str:
        summary = self.summary
        parts = [f"{summary['completed']:,} of {summary['jobs']:,} jobs completed"]
        if summary["average_jct"] is not None:
            parts.append(f"mean JCT {human_seconds(summary['average_jct'])}")
        if summary["utilization"] is not None:
            parts.append(f"utilization {100 * summary['utilization']:.1f} %")
        if summary["lost_turns"]:
            parts.append(f"{summary['lost_turns']:,} of {summary['decisions']:,} decisions lost")
        return f"<Run of {summary['policy']} on {summary['cluster']}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        """For notebooks: the summary as a table."""
        rows = "".join(f"<tr><th>{escape(str(key))}</th><td>{escape(str(value))}</td></tr>" for key, value in self.summary.items())
        return f"<p>{escape(repr(self))}</p><details><summary>summary</summary><table>{rows}</table></details>"

    @cached_property
    def jobs(self) -> pl.DataFrame:
        """One row per job."""
        t, F, I = self.tables, self.tables.F, self.tables.I
        known, held = self._job_columns, self.held
        judged = {name: pl.Series(name, t.verdicts[name]) for name in ("exact_end",) if name in t.verdicts}
        if "met" in t.verdicts:  # an imitation's own verdict on deadlines
            judged["met"] = pl.Series("met", t.verdicts["met"]).fill_nan(None).cast(pl.Boolean)
        if ENDED_BY_LOSS in t.verdicts:
            judged[ENDED_BY_LOSS] = pl.Series(ENDED_BY_LOSS, t.verdicts[ENDED_BY_LOSS] > 0)
        return pl.DataFrame(
            {
                "job": pl.Series(t.ids, dtype=pl.String),
                "arrival": known.arrival,
                "first_start": F[Job.FIRST_START],
                "finish": known.finish,
                "jct": known.jct,
                "gpus": known.gpus,
                "preemptions": known.preemptions,
                "restarts": known.restarts,
                "queueing": known.queueing,
                "responsiveness": known.responsiveness,
                "service": F[Job.SERVICE],
                "held": held.seconds,
                "gpu_seconds": known.gpu_seconds,
                "work_lost": known.work_lost,
                "user": _words(t.users, known.user),
                "queue": _words(t.queues, I[Job.QUEUE]),
                "app": _words(t.apps, I[Job.APP]),
                "duration": known.duration,
                "deadline": known.deadline,
                "state": _words(STATES, known.state),
                **judged,
            }
        )

    @cached_property
    def columns(self) -> RunColumns:
        """The run as arrays, for metrics: the same as the frames say, without making them."""
        summary = self.summary
        jobs = self._job_columns
        spans = spans_of_log(self.log, self.tables.D[Device.NODE])
        series = series_columns(jobs, spans, summary["gpus"], summary["joined_gpus"], summary["down_gpus"])
        return RunColumns(jobs, spans, series, summary)

    @cached_property
    def _job_columns(self) -> JobColumns:
        return jobs_of_tables(self.tables, self.held)

    @property
    def reported(self) -> pl.DataFrame:
        """The rows of `--jobs-out`: one per job, with what sharing did to it where any did; or as the imitated original writes them."""
        if self.pieces is not None:
            return self.pieces
        return self.jobs.with_columns(**sharing_columns(self.log, self.tables))

    @cached_property
    def allocations(self) -> pl.DataFrame:
        """One row per interval in which a gang held its devices."""
        log, t = self.log, self.tables
        n = int(log.LN[0])
        LI, LF = log.LI[:, :n], log.LF[:, :n]
        reasons = pl.Series([slug(code) for code in Reason], dtype=pl.String)
        types = pl.Series(t.cluster.types, dtype=pl.String)
        kind = t.options.I[Option.TYPE][np.maximum(LI[Interval.OPTION], 0)] if len(t.options) else np.zeros(n, dtype=np.int64)
        frame = pl.DataFrame(
            {
                "gang": np.arange(n),
                "job": pl.Series(t.ids, dtype=pl.String).gather(LI[Interval.ROW]),
                "start": LF[Interval.START],
                "end": LF[Interval.END],
                "type": types.gather(kind),
                "gpus": LI[Interval.COUNT].astype(np.int32),
                "reason": reasons.gather(LI[Interval.REASON]),
                "node": LI[Interval.NODE].astype(np.int32),
            }
        )
        held = self._held()
        none = pl.lit([], dtype=pl.List(pl.Int32))
        own_node = pl.when(pl.col("node") >= 0).then(pl.concat_list("node")).otherwise(none)  # a grant of CPUs only
        return (
            frame.join(held, on="gang", how="left", maintain_order="left")
            .with_columns(pl.col("devices").fill_null(none), pl.col("nodes").fill_null(own_node))
            .select("job", "start", "end", "type", "nodes", "devices", "gpus", "reason")
        )

    def _held(self) -> pl.DataFrame:
        """Devices and nodes of each interval that has devices."""
        gang, device = held_devices(self.log)
        flat = pl.DataFrame({"gang": gang, "devices": device.astype(np.int32)})
        flat = flat.with_columns(nodes=pl.Series(self.tables.D[Device.NODE][device].astype(np.int32)))
        return flat.group_by("gang", maintain_order=True).agg(pl.col("devices"), pl.col("nodes").unique().sort())

    @cached_property
    def events(self) -> pl.DataFrame:
        """What happened, in order of time: arrivals, starts, stops, finishes, incidents."""
        jobs, spans = self.jobs, self.allocations
        arrived = jobs.filter(pl.col("state") != "future").select(time="arrival", kind=pl.lit("arrived"), job="job", detail=pl.lit(""))
        started = spans.select(time="start", kind=pl.lit("started"), job="job", detail=pl.col("gpus").cast(pl.String) + " gpus")
        ended = spans.select(
            time="end",
            kind=pl.when(pl.col("reason") == "finished").then(pl.lit("finished")).otherwise(pl.lit("stopped")),
            job="job",
            detail="reason",
        )
        refused = [(one.time, "rejected", self.tables.ids[one.row], str(one)) for one in self.refusals]
        names = [name for _, _, name, _ in refused]
        others = jobs.filter((pl.col("state") == "rejected") & ~pl.col("job").is_in(names))
        rejected = others.select(time="arrival", kind=pl.lit("rejected"), job="job", detail=pl.lit(""))
        turned_away = pl.DataFrame(refused, schema=rejected.schema, orient="row")
        order = {"finished": 0, "stopped": 1, "arrived": 2, "rejected": 3, "started": 4}
        return (
            pl.concat([arrived, started, ended, rejected, turned_away])
            .filter(pl.col("time").is_not_nan())
            .with_columns(rank=pl.col("kind").replace_strict(order, return_dtype=pl.Int8))
            .sort("time", "rank", maintain_order=True)
            .drop("rank")
        )

    @cached_property
    def series(self) -> pl.DataFrame:
        """Queue and use over time, a row when something changes."""
        return series_frame(self.columns.series)


def _words(words: Sequence[str], codes: Any) -> pl.Series:
    """The word that each code stands for."""
    found: pl.Series = pl.Series(words, dtype=pl.String)[codes]
    return found
