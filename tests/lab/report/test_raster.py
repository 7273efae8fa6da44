"""The Gantt picture against painting pixel by pixel."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.report.example_runs import example_run

from gantline.lab.report.figures import gantt
from gantline.lab.report.figures.gantt import draw_intervals
from gantline.lab.report.figures.panels import RASTER, Raster, rgb
from gantline.lab.report.frames import StoredRun

PALETTE = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255]], dtype=np.uint8)


def paint(intervals, devices=2, width=4, rows=10, end=4.0):
    """Draw (start, end, devices, colour) tuples from time 0 to ``end``."""
    starts, ends, held, colours = zip(*intervals)
    return draw_intervals(
        np.array(starts, dtype=float),
        np.array(ends, dtype=float),
        np.concatenate(([0], np.cumsum([len(h) for h in held]))).astype(np.int64),
        np.array([d for h in held for d in h], dtype=np.int64),
        np.array(colours, dtype=np.int64),
        PALETTE,
        begin=0.0,
        end=end,
        device_count=devices,
        width=width,
        most_rows=rows,
    )


def test_a_gang_paints_its_devices_for_its_time():
    pixels = paint([(1, 3, [0, 1], 2)])
    assert pixels.shape == (2, 4, 4)
    assert pixels[:, :, 3].tolist() == [[0, 255, 255, 0]] * 2
    assert pixels[0, 1, :3].tolist() == [0, 0, 255]


def test_a_pixel_is_as_opaque_as_it_is_busy_and_shows_the_longest_holder():
    pixels = paint([(0, 0.25, [0], 0), (0.25, 0.75, [0], 1)], devices=1)
    assert pixels[0, 0].tolist() == [0, 255, 0, round(0.75 * 255)]


def test_rows_hold_several_devices_when_there_are_more_devices_than_rows():
    pixels = paint([(0, 4, [0], 0), (0, 4, [3], 1)], devices=4, rows=2)
    assert pixels.shape[0] == 2
    assert pixels[:, 0, 3].tolist() == [128, 128]


def test_what_lies_outside_the_picture_is_cut_off():
    pixels = paint([(-5, 1, [0], 0), (3, 99, [0], 1), (10, 12, [0], 2)], devices=1)
    assert pixels[0, :, 3].tolist() == [255, 0, 0, 255]


interval = st.tuples(st.floats(-1, 5), st.floats(0, 3), st.lists(st.integers(0, 4), min_size=1, max_size=5, unique=True))


@given(st.lists(interval, min_size=1, max_size=8))
def test_opacity_equals_the_covered_area(drawn):
    intervals = [(start, start + length, devices, i % 3) for i, (start, length, devices) in enumerate(drawn)]
    pixels = paint(intervals, devices=5, width=7, rows=3)
    edges = np.linspace(0, 4, 8)
    rows = np.arange(5) * 3 // 5
    for row in range(3):
        for x in range(7):
            area = sum(
                max(0.0, min(end, edges[x + 1]) - max(start, edges[x])) * sum(rows[d] == row for d in devices)
                for start, end, devices, _ in intervals
            )
            share = min(1.0, area / (4 / 7) / (rows == row).sum())
            assert abs(int(pixels[row, x, 3]) - share * 255) <= 1.0


def picture_of(chart) -> Raster:
    (layer,) = chart.panels[0].layers
    return layer


def test_the_gantt_is_as_busy_as_the_run():
    run = example_run(jobs=40, nodes=4, gap=200)
    picture = picture_of(gantt(run, width=500))
    busy = picture.pixels[:, :, 3].mean() / 255
    span = run.jobs["finish"].max() - run.jobs["arrival"].min()
    assert busy == pytest.approx(run.jobs["gpu_seconds"].sum() / (16 * span), abs=0.005)


def test_users_keep_their_colour_and_the_small_ones_share_grey():
    run = example_run(jobs=60, users=[f"u{i}" for i in range(9)], gap=100)
    legend = picture_of(gantt(run, "user")).legend
    top = run.jobs.group_by("user").agg(pl.col("gpu_seconds").sum()).sort("gpu_seconds", descending=True)["user"]
    assert [name for name, _ in legend] == [*top.to_list()[:6], "3 others"]
    assert legend[0][1] == rgb(RASTER[0])


def test_an_empty_run_gives_an_empty_picture():
    run = example_run(jobs=1)
    empty = StoredRun(run.jobs.clear(), run.allocations.clear(), run.events, run.series)
    assert picture_of(gantt(empty)).pixels[:, :, 3].max() == 0
