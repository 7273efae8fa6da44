"""Which job or user held which device when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gantline.core.errors import UsageError
from gantline.core.jit import kernel
from gantline.lab.report.figures.chart import Chart
from gantline.lab.report.figures.over_time import users_by_time
from gantline.lab.report.figures.panels import RASTER, Axis, Panel, Raster, brief, rgb, unit_for
from gantline.lab.report.frames import RunLike, StoredRun, node_gpus_of, settled, span_of
from gantline.lab.report.labels import names_of
from gantline.lab.report.run_warnings import spells_in_charge

WIDTH, ROWS = 1600, 1000
OTHERS = "#a3a8ae"
USERS = tuple(RASTER[at] for at in (0, 5, 2, 3, 1, 4))
"""The hues of the first series, so that a user has one colour in pictures and in curves."""
MOST_NAMES = 16
ColourBy = Literal["job", "user"]
Legend = tuple[tuple[str, tuple[int, int, int]], ...]


def gantt(run: RunLike, colour_by: ColourBy = "job", width: int = WIDTH, rows: int = ROWS) -> Chart:
    """Devices over time as a picture, each interval in the colour of its job or user; free time shows the ground."""
    return gantts([run], colour_by, width, rows)


def gantts(runs: Sequence[RunLike], colour_by: ColourBy = "job", width: int = WIDTH, rows: int = ROWS) -> Chart:
    """The devices of several runs one above the other on one time axis; a user has the same colour in all of them."""
    if colour_by not in ("job", "user"):
        raise UsageError(f"colours cannot mean '{colour_by}'", where="by", fix="job or user")
    names, settled_runs = names_of(runs), [settled(run) for run in runs]
    longest = max(end - start for start, end in map(span_of, settled_runs))
    unit = unit_for(longest)
    time = Axis("time since the first arrival", unit.name, low=0.0, high=max(longest, 1e-9) / unit.seconds)
    users, legend = _users(settled_runs) if colour_by == "user" else (None, ())
    panels: list[Panel] = []
    notes = ["Each colour is a user." if colour_by == "user" else "Neighbouring colours are different jobs."]
    for number, (name, run) in enumerate(zip(names, settled_runs)):
        count = _device_count(run)
        above = strip(run, time, unit.seconds)
        start, end = span_of(run)
        pixels = _picture(run, users, start, end, count, width, rows)
        picture = Raster(pixels, 0.0, max(end - start, 1e-9) / unit.seconds, 0.0, float(count), legend if not number else ())
        axis = _devices(run, count, brief(name, 16) if len(runs) > 1 else "", -(-MOST_NAMES // len(runs)))
        height = 1.2 if len(runs) == 1 else 0.8
        panels += [*above, Panel(time, axis, (picture,), legend="above" if legend and not number else "none", height=height)]
        if above and "strip" not in notes[-1]:
            notes.append("The strip shows which policy was in charge.")
        if count > rows:
            notes.append(f"{count:,} devices in {rows:,} rows of the picture.")
    return Chart("gantt", f"Devices over time, coloured by {colour_by}", tuple(panels), tuple(dict.fromkeys(notes)))


def _picture(run: StoredRun, users: pl.DataFrame | None, start: float, end: float, count: int, width: int, rows: int) -> NDArray[np.uint8]:
    spans = run.columns.spans
    return draw_intervals(
        spans.start,
        spans.end,
        spans.first,
        spans.devices,
        _by_job(run.allocations) if users is None else _by_user(run, users),
        np.array([rgb(colour) for colour in (*(RASTER if users is None else USERS), OTHERS)], dtype=np.uint8),
        begin=start,
        end=end,
        device_count=count,
        width=width,
        most_rows=rows,
    )


def _device_count(run: StoredRun) -> int:
    """As many as were there, and as were ever held."""
    there = int(run.series["total_gpus"].max() or 0) if run.series.height else 0  # type: ignore[arg-type]
    held = run.columns.spans.devices
    return max(1, int(held.max()) + 1 if held.size else 1, there)


def _devices(run: RunLike, count: int, label: str, most: int) -> Axis:
    """Devices by the names of their nodes, where the run lists its nodes; as many names as can be read."""
    sizes = [size for size in node_gpus_of(run) if size]
    given = run.summary.get("node_names")
    names = [str(name) for name in given] if given and len(given) == len(sizes) else [f"node{number}" for number in range(len(sizes))]
    if sum(sizes) != count:
        return Axis(label or "device", "number", low=0.0, high=float(count))
    ends = np.cumsum(sizes)
    middles = ends - np.array(sizes) / 2
    step = -(-len(sizes) // most)
    ticks = tuple((float(middles[row]), brief(names[row], 16)) for row in range(0, len(sizes), step))
    return Axis(label or "node", low=0.0, high=float(count), ticks=ticks)


def _by_job(held: pl.DataFrame) -> NDArray[np.int64]:
    """Colours in the order in which jobs first appear, so that jobs that start together differ."""
    jobs = held.select("job").unique(maintain_order=True).with_row_index("code")
    codes = held.select("job").join(jobs, on="job", maintain_order="left")["code"].to_numpy()
    return codes.astype(np.int64) % len(RASTER)


def _users(runs: Sequence[RunLike]) -> tuple[pl.DataFrame, Legend]:
    """A colour for each of the users with the most GPU time in all runs together, grey for the others."""
    known = users_by_time(runs)
    named = known[: len(USERS)]
    legend = [(brief(user) or "(no user)", rgb(colour)) for user, colour in zip(named, USERS)]
    if len(known) > len(named):
        legend.append((f"{len(known) - len(named)} others", rgb(OTHERS)))
    return pl.DataFrame({"user": named, "code": range(len(named))}, schema={"user": pl.String, "code": pl.Int64}), tuple(legend)


def _by_user(run: RunLike, users: pl.DataFrame) -> NDArray[np.int64]:
    owner = run.jobs.select("job", "user").join(users, on="user", how="left").unique("job")
    codes = run.allocations.select("job").join(owner, on="job", how="left", maintain_order="left")["code"]
    return codes.fill_null(len(USERS)).to_numpy().astype(np.int64)


# Intervals on devices as a picture: the work is one pass over the pixels they cover, however many there are.


def draw_intervals(
    starts: NDArray[np.float64],
    ends: NDArray[np.float64],
    first_device: NDArray[np.int64],
    devices: NDArray[np.int64],
    colours: NDArray[np.int64],
    palette: NDArray[np.uint8],
    *,
    begin: float,
    end: float,
    device_count: int,
    width: int,
    most_rows: int,
) -> NDArray[np.uint8]:
    """An RGBA picture of the time from ``begin`` to ``end``, device 0 in row 0.

    Interval ``i`` holds ``devices[first_device[i]:first_device[i + 1]]`` and has the colour ``palette[colours[i]]``. There
    is a row per device, or per several of them when there are more devices than ``most_rows``. A pixel takes the colour
    of the interval that covers most of it, because a mean of colours would look like another job's, and is opaque as
    far as it is busy.
    """
    rows = min(device_count, most_rows)
    scale = width / (end - begin) if end > begin else 0.0
    busy, most = np.zeros((rows, width)), np.zeros((rows, width))
    colour = np.zeros((rows, width), dtype=np.int64)
    _cover(starts, ends, first_device, devices, colours, float(begin), float(scale), device_count, busy, most, colour)
    in_row = np.bincount(np.arange(device_count) * rows // device_count, minlength=rows)
    share = np.minimum(busy / in_row[:, None], 1.0)
    pixels = np.zeros((rows, width, 4), dtype=np.uint8)
    pixels[..., :3] = np.where((busy > 0.0)[..., None], palette[colour], 0)
    pixels[..., 3] = (share * 255.0 + 0.5).astype(np.uint8)
    return pixels


@kernel
def _cover(
    starts: NDArray[np.float64],
    ends: NDArray[np.float64],
    first_device: NDArray[np.int64],
    devices: NDArray[np.int64],
    colours: NDArray[np.int64],
    begin: float,
    scale: float,
    device_count: int,
    busy: NDArray[np.float64],
    most: NDArray[np.float64],
    colour: NDArray[np.int64],
) -> None:
    """Add up how far each pixel is busy, and by which interval most."""
    rows, width = busy.shape
    for i in range(starts.size):
        left = max(0.0, (starts[i] - begin) * scale)
        right = min(float(width), (ends[i] - begin) * scale)
        if right <= left:
            continue
        first, last = int(left), min(width - 1, int(right))
        for d in range(first_device[i], first_device[i + 1]):
            row = devices[d] * rows // device_count
            for x in range(first, last + 1):
                covered = min(right, x + 1.0) - max(left, float(x))
                if covered <= 0.0:
                    continue
                busy[row, x] += covered
                if covered > most[row, x]:
                    most[row, x] = covered
                    colour[row, x] = colours[i]


# Which policy was in charge over time, as a strip above a picture of devices.

HEIGHT = 0.12
_SHADES = RASTER[::-1]  # users and jobs take theirs from the other end


def strip(run: RunLike, time: Axis, unit: float) -> tuple[Panel, ...]:
    """One panel over the same time; none where one policy decided all the time. Of several in one pixel the last is shown."""
    spells = spells_in_charge(run)
    if not spells or time.high is None:
        return ()
    names = list(dict.fromkeys(policy for _, _, policy in spells))
    shades = {name: rgb(_SHADES[place % len(_SHADES)]) for place, name in enumerate(names)}
    begin, span = spells[-1][1] - time.high * unit, time.high * unit
    pixels = np.zeros((1, WIDTH, 4), dtype=np.uint8)
    for since, until, policy in spells:
        first, last = (int((at - begin) / span * WIDTH) for at in (since, until))
        pixels[0, first : max(first + 1, last)] = (*shades[policy], 255)
    picture = Raster(pixels, 0.0, time.high, 0.0, 1.0, tuple((brief(name), shades[name]) for name in names))
    return (Panel(time, Axis("", low=0.0, high=1.0, ticks=((0.5, "in charge"),)), (picture,), legend="above", height=HEIGHT),)
