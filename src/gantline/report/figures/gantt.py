"""Who held which device when."""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gantline.core.errors import UsageError
from gantline.report.figures.chart import Chart
from gantline.report.figures.durations import unit_for
from gantline.report.figures.in_charge import strip
from gantline.report.figures.palette import RASTER, rgb
from gantline.report.figures.panels import Axis, Panel, Raster, brief
from gantline.report.figures.raster import draw_intervals
from gantline.report.frames import RunLike, node_gpus_of, settled, span_of

WIDTH, ROWS = 1600, 1000
NAMED_USERS = 7
OTHERS = "#a3a8ae"
MOST_NAMES = 16


def gantt(run: RunLike, colour_by: Literal["job", "user"] = "job", width: int = WIDTH, rows: int = ROWS) -> Chart:
    """Devices over time as a picture, each interval in the colour of its job or user; free time shows the ground."""
    if colour_by not in ("job", "user"):
        raise UsageError(f"colours cannot mean '{colour_by}'", where="by", fix="job or user")
    run = settled(run)
    start, end = span_of(run)
    unit = unit_for(end - start)
    held = run.allocations
    ids = held["devices"].explode().drop_nulls().to_numpy().astype(np.int64)
    device_count = max(1, int(ids.max()) + 1 if ids.size else 1, _cluster_size(run))
    codes, legend = _by_user(run) if colour_by == "user" else (_by_job(held), ())
    pixels = draw_intervals(
        held["start"].to_numpy(),
        held["end"].to_numpy(),
        np.concatenate(([0], np.cumsum(held["devices"].list.len().to_numpy()))).astype(np.int64),
        ids,
        codes,
        np.array([rgb(colour) for colour in (*RASTER, OTHERS)], dtype=np.uint8),
        begin=start,
        end=end,
        device_count=device_count,
        width=width,
        most_rows=rows,
    )
    span = max(end - start, 1e-9) / unit.seconds
    picture = Raster(pixels, 0.0, span, 0.0, float(device_count), legend)
    notes = [f"Each colour is a {colour_by}." if colour_by == "user" else "Neighbouring colours are different jobs."]
    if device_count > rows:
        notes.append(f"{device_count:,} devices in {rows:,} rows of the picture.")
    time = Axis("time since the first arrival", unit.name, low=0.0, high=span)
    above = strip(run, time, unit.seconds)
    if above:
        notes.append("The strip shows which policy was in charge.")
    panel = Panel(
        time,
        _devices(run, device_count),
        (picture,),
        legend="above" if legend else "none",
        height=1.2,
    )
    return Chart("gantt", f"Devices over time, coloured by {colour_by}", (*above, panel), tuple(notes))


def _devices(run: RunLike, count: int) -> Axis:
    """Devices by the names of their nodes, where the run tells its nodes; as many names as can be read."""
    sizes = [size for size in node_gpus_of(run) if size]
    told = run.summary.get("node_names")
    names = [str(name) for name in told] if told and len(told) == len(sizes) else [f"node{number}" for number in range(len(sizes))]
    if sum(sizes) != count:
        return Axis("device", "number", low=0.0, high=float(count))
    ends = np.cumsum(sizes)
    middles = ends - np.array(sizes) / 2
    step = -(-len(sizes) // MOST_NAMES)
    ticks = tuple((float(middles[row]), brief(names[row], 16)) for row in range(0, len(sizes), step))
    return Axis("node", low=0.0, high=float(count), ticks=ticks)


def _cluster_size(run: RunLike) -> int:
    return int(run.series["total_gpus"].max() or 0) if run.series.height else 0  # type: ignore[arg-type]


def _by_job(held: pl.DataFrame) -> NDArray[np.int64]:
    """Colours in the order in which jobs first appear, so that jobs that start together differ."""
    jobs = held.select("job").unique(maintain_order=True).with_row_index("code")
    codes = held.select("job").join(jobs, on="job", maintain_order="left")["code"].to_numpy()
    return codes.astype(np.int64) % len(RASTER)


def _by_user(run: RunLike) -> tuple[NDArray[np.int64], tuple[tuple[str, tuple[int, int, int]], ...]]:
    """A colour for each of the users with the most GPU time, grey for the others."""
    demand = run.jobs.group_by("user").agg(pl.col("gpu_seconds").sum()).sort(["gpu_seconds", "user"], descending=True)
    named = demand["user"].to_list()[:NAMED_USERS]
    users = pl.DataFrame({"user": named, "code": range(len(named))}, schema={"user": pl.String, "code": pl.Int64})
    owner = run.jobs.select("job", "user").join(users, on="user", how="left").unique("job")
    codes = run.allocations.select("job").join(owner, on="job", how="left", maintain_order="left")["code"]
    legend = [(brief(user) or "(no user)", rgb(RASTER[code])) for code, user in enumerate(named)]
    if demand.height > len(named):
        legend.append((f"{demand.height - len(named)} others", rgb(OTHERS)))
    return codes.fill_null(len(RASTER)).to_numpy().astype(np.int64), tuple(legend)
