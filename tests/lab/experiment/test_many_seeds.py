"""Means are over seeds, doubts go by the share of seeds, and advice compares policies on the same seeds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from gantline.lab.experiment import advice
from gantline.lab.experiment.charts import points_against
from gantline.lab.experiment.results import doubt_of, means_of
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource
from gantline.lab.report.run_warnings import MARK, UNSTEADY

BROKEN = "3 of 30 decisions were lost"


def results(**columns: Any) -> pl.DataFrame:
    """Five seeds of one policy: three gave one and the same run, the other two runs of their own."""
    fixed = {"name": "a", "policy": "a", "load": 1.0, "seed": range(5), "hash": "", "state": "done", "log_hash": ["x", "x", "x", "y", "z"]}
    return pl.DataFrame({**fixed, "jct_mean": [20.0, 20.0, 20.0, 30.0, 35.0], "doubts": "", **columns})


def test_seeds_that_gave_the_same_run_weigh_as_much_as_others() -> None:
    frame = results()
    assert means_of(frame, ["jct_mean"])["jct_mean"].item() == 25.0
    assert points_against(frame, "load")["value"].item() == 25.0
    assert points_against(frame, "load")["runs"].item() == 5


def test_a_run_that_all_seeds_repeat_has_no_interval() -> None:
    means = means_of(results(log_hash="x", jct_mean=20.0), ["jct_mean"])
    assert means.select("jct_mean", "runs").row(0) == (20.0, 5)
    assert means["jct_mean_low"].is_nan().item()


@pytest.mark.parametrize(
    ("told", "found"),
    [
        (["", "", ""], ""),
        ([UNSTEADY], UNSTEADY),
        ([UNSTEADY, "", "", "", ""], ""),
        ([UNSTEADY, UNSTEADY, "", ""], ""),
        ([UNSTEADY, UNSTEADY, UNSTEADY, "", ""], f"{UNSTEADY} in 3 of 5 runs"),
        ([BROKEN, "", ""], f"in 1 of 3 runs, in the first of them {BROKEN}"),
        ([BROKEN], BROKEN),
    ],
)
def test_a_doubt_goes_by_the_share_of_seeds(told: list[str], found: str) -> None:
    """A queue that grows by chance in one seed in ten never voids a comparison because there are many seeds; a lost turn always does."""
    assert doubt_of(told) == found


def test_the_mark_goes_by_the_share_too() -> None:
    few, most = results(doubts=[UNSTEADY, "", "", "", ""]), results(doubts=[UNSTEADY, UNSTEADY, UNSTEADY, "", ""])
    assert [means_of(frame, ["jct_mean"])["mark"].item() for frame in (few, most)] == ["", MARK]
    assert [points_against(frame, "load")["name"].item() for frame in (few, most)] == ["a", f"a{MARK}"]


def advised(rows: list[tuple[str, int, float, str]]) -> str:
    frame = pl.DataFrame(rows, schema=["policy", "seed", "jct_mean", "doubts"], orient="row")
    own = pl.concat_str("policy", "seed").alias("log_hash")
    frame = frame.select(
        "policy", "seed", pl.lit("1x4").alias("cluster"), pl.lit("").alias("hash"), "jct_mean", "doubts", state=pl.lit("done"), log_hash=own
    )
    base = Setting(TraceSource(generator="day"), "1x4", "fifo")
    return advice._answer(SimpleNamespace(results=frame, cases=()), base, ())[0]  # type: ignore[arg-type]


def test_advice_never_compares_means_over_different_seeds() -> None:
    """Policy a is unsteady in its slow seed. Without that seed it would look better than b, which is faster in every single one."""
    seeds = [(10.0, 9.0), (11.0, 10.0), (100.0, 90.0), (12.0, 11.0)]
    rows = [("a", seed, old, UNSTEADY if seed == 2 else "") for seed, (old, _) in enumerate(seeds)]
    rows += [("b", seed, new, "") for seed, (_, new) in enumerate(seeds)]
    assert advised(rows).startswith("Lowest mean JCT on 1x4: b, 30.0 s, over 4 seeds")
    assert advised(rows[1:]).startswith("Lowest mean JCT on 1x4: b, 37.0 s, over 3 seeds")  # a failed in seed 0, so that it counts for none


def test_advice_says_from_whom_the_best_is_not_told_apart() -> None:
    seeds = [(10.0, 9.0, 20.0), (11.0, 11.2, 22.0), (10.0, 9.7, 19.9), (12.0, 11.0, 24.1), (11.0, 11.1, 22.0)]
    rows = [(name, seed, row[k], "") for k, name in enumerate("abc") for seed, row in enumerate(seeds)]
    assert advised(rows).endswith("over 5 seeds; not told apart from a.")
    doubted = [(name, seed, value, UNSTEADY if name != "c" else "") for name, seed, value, _ in rows]
    assert advised(doubted) == "Lowest mean JCT on 1x4: c, 21.6 s."
