"""The page of a sweep: a grid of policies and loads with intervals, and the answer before it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from gantline.lab.experiment.grid import Grid, PolicyChoice
from gantline.lab.experiment.results import best_places
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.sweep import Sweep, run_sweep
from gantline.lab.experiment.sweep_page import means_section, render_sweep
from gantline.lab.experiment.trace_source import TraceSource

POLICIES = (PolicyChoice("fifo"), PolicyChoice("srtf"))
LOADS = (0.4, 0.9)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    base = Setting(TraceSource(generator="day", settings={"jobs": 40, "gpus": 16}), "4x4", "fifo")
    return run_sweep(Grid(base, POLICIES, loads=LOADS, seeds=(0, 1, 2)).cases(), tmp_path_factory.mktemp("grid") / "s")


def rows_of(table: str) -> list[list[str]]:
    """The texts of the cells, row by row."""
    rows = re.findall(r"<tr>(.*?)</tr>", table)
    return [[re.sub("<.*?>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]


def test_without_another_axis_metrics_stand_side_by_side(swept: Sweep) -> None:
    at_one_load = swept.results.filter(pl.col("load") == 0.4)
    head, *rows = rows_of(means_section(at_one_load)[0])
    assert head[:2] == ["policy", "Mean JCT"]
    assert [row[0] for row in rows] == ["fifo", "srtf"]


def results(**columns: Sequence[object]) -> pl.DataFrame:
    """A row per run, done and in no doubt unless it says otherwise."""
    size = len(columns["policy"])
    hashes = [str(run) for run in range(size)]
    plain = {"seed": [0] * size, "hash": hashes, "state": ["done"] * size, "doubts": [""] * size, "log_hash": hashes}
    found = {"policy": columns["policy"], "load": columns["load"], **plain, **columns}
    order = ["policy", "load", "seed", "hash", "state", "doubts", "log_hash", "jct_mean"]
    return pl.DataFrame({name: found[name] for name in order})


def test_the_answer_says_which_policy_is_best_where() -> None:
    policies, loads = ["fifo", "las", "fifo", "las"], [0.5, 0.5, 1.0, 1.0]
    everywhere = results(policy=policies, load=loads, jct_mean=[2.0, 1.0, 4.0, 3.0])
    assert best_places(everywhere) == "las has the lowest mean JCT everywhere."
    mixed = results(policy=policies, load=loads, jct_mean=[1.0, 2.0, 4.0, 3.0])
    assert best_places(mixed) == "fifo has the lowest mean JCT at load 0.5; las has the lowest mean JCT at load 1."
    doubtful = results(policy=policies, load=loads, jct_mean=[2.0, 1.0, 4.0, 3.0], doubts=["", "", "", "no steady state"])
    assert best_places(doubtful) == "las has the lowest mean JCT at load 0.5; at load 1 runs failed or are in doubt."
    hopeless = results(policy=policies, load=loads, jct_mean=[2.0, 1.0, 4.0, 3.0], doubts=["no steady state"] * 4)
    assert best_places(hopeless).startswith("No two policies can be compared")


def test_the_answer_comes_before_its_doubts_and_the_grid(swept: Sweep, tmp_path: Path) -> None:
    base = Setting(TraceSource(generator="day", settings={"jobs": 40, "gpus": 16}), "4x4", "fifo")
    three = run_sweep(Grid(base, (*POLICIES, PolicyChoice("las")), loads=LOADS).cases(), tmp_path / "s")
    text = render_sweep(three)
    places = [text.index(part) for part in ('class="headline"', 'class="doubts', "4 comparisons with fifo", 'id="grid-jct_mean"')]
    assert places == sorted(places)
    assert text.count('class="headline"') == 1
    assert text.count('class="headline"') < render_sweep(swept).count('class="headline"')  # two verdicts are an answer by themselves
