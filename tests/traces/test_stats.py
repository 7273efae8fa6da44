"""Statistics of a trace: small ones by hand, and the tables and curves made from them."""

from __future__ import annotations

import io
import json
import math
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from gantline.core.errors import UsageError
from gantline.traces.generators import generate
from gantline.traces.importers.registry import import_options, importer_names
from gantline.traces.options import WrittenOption, format_options, parse_options
from gantline.traces.sample import sample, scale, shift, window
from gantline.traces.schema import COLUMNS, REQUIRED
from gantline.traces.stats import render, series, share_table, shares, stats
from gantline.traces.trace import Trace


def four_jobs() -> Trace:
    """Four jobs in six hours: 1, 1, 2 and 4 GPUs for 1, 1, 2 and 3 hours, that is 18 GPU-hours."""
    return Trace.from_records(
        [
            {"job": "a", "arrival": 0, "gpus": 1, "duration": 3600, "user": "ann", "outcome": "completed"},
            {"job": "b", "arrival": 3600, "gpus": 1, "duration": 3600, "user": "ann", "outcome": "failed"},
            {"job": "c", "arrival": 7200, "gpus": 2, "duration": 7200, "user": "bob", "deadline": 99999},
            {"job": "d", "arrival": 21600, "gpus": 4, "duration": 10800, "user": "bob", "outcome": "completed"},
        ]
    )


def text_of(renderable: object) -> str:
    console = Console(file=io.StringIO(), width=120, legacy_windows=False)
    console.print(renderable)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


class TestValues:
    def test_the_whole(self) -> None:
        found = stats(four_jobs(), gpus=6)
        assert (found.jobs, found.span, found.gpu_hours) == (4, 21600, 18)
        assert found.offered_load == pytest.approx(18 / (6 * 6))
        assert found.jobs_per_hour == pytest.approx(0.5)
        assert (found.mean_gpus, found.largest, found.deadlines) == (2, 4, 1)

    def test_sizes_in_order_with_their_share_of_jobs_and_of_gpu_time(self) -> None:
        sizes = stats(four_jobs()).sizes
        assert [(size.name, size.count, size.jobs) for size in sizes] == [("1", 2, 0.5), ("2", 1, 0.25), ("4", 1, 0.25)]
        assert [size.gpu_time for size in sizes] == pytest.approx([2 / 18, 4 / 18, 12 / 18])

    def test_durations_and_gaps(self) -> None:
        found = stats(four_jobs())
        assert found.mean_duration == 6300
        assert (found.durations[0.0], found.durations[0.5], found.durations[1.0]) == (3600, 5400, 10800)
        assert found.mean_gap == 7200
        assert found.gap_variation == pytest.approx(np.std([3600, 3600, 14400]) / 7200)
        assert found.size_duration_correlation == pytest.approx(1)

    def test_hours_and_weekdays_of_the_traces_clock(self) -> None:
        found = stats(four_jobs())
        assert {hour: share for hour, share in enumerate(found.hour_of_day) if share} == dict.fromkeys((0, 1, 2, 6), 0.25)
        assert found.weekdays == (1, 0, 0, 0, 0, 0, 0)

    def test_people_and_outcomes(self) -> None:
        found = stats(four_jobs())
        assert [(user.name, user.count) for user in found.users] == [("ann", 2), ("bob", 2)]
        assert found.users[1].gpu_time == pytest.approx(16 / 18)
        assert {outcome.name: outcome.count for outcome in found.outcomes} == {"completed": 2, "failed": 1, "": 1}
        assert found.queues == ()

    def test_without_a_cluster_there_is_no_load(self) -> None:
        assert stats(four_jobs()).offered_load is None

    def test_one_job_has_neither_gaps_nor_a_rate(self) -> None:
        found = stats(Trace.from_frame(four_jobs().frame.head(1)), gpus=8)
        assert (found.span, found.offered_load, found.jobs_per_hour) == (0, None, None)
        assert (found.mean_gap, found.gap_variation, found.size_duration_correlation) == (None, None, None)

    def test_jobs_that_all_arrive_at_once_have_gaps_of_zero(self) -> None:
        found = stats(Trace.from_frame(four_jobs().frame.with_columns(arrival=pl.lit(0.0))))
        assert (found.mean_gap, found.gap_variation) == (0, None)

    def test_a_cluster_without_gpus_is_refused(self) -> None:
        with pytest.raises(UsageError, match="0 is not a number of GPUs"):
            stats(four_jobs(), gpus=0)

    def test_as_dict_is_plain_json(self) -> None:
        plain = json.loads(json.dumps(stats(four_jobs(), gpus=6).as_dict()))
        assert plain["durations"]["p50"] == 5400
        assert plain["sizes"][2] == {"name": "4", "count": 1, "jobs": 0.25, "gpu_time": pytest.approx(12 / 18)}


class TestTables:
    def test_the_overview_states_load_sizes_and_durations(self) -> None:
        text = text_of(render(stats(four_jobs(), gpus=6)))
        for words in ("offered load on 6 GPUs", "0.500", "mean 2.00, largest 4", "median 90.0 min", "ann", "failed"):
            assert words in text

    def test_what_is_unknown_is_left_out(self) -> None:
        text = text_of(render(stats(Trace.from_frame(four_jobs().frame.head(1).drop("user")))))
        for words in ("offered load", "variation", "user", "queue"):
            assert words not in text

    def test_many_users_are_summed_up(self) -> None:
        trace = generate("generic", seed=1, jobs=3000, jobs_per_hour=9, users=50)
        rows = shares(trace.frame, "user")
        text = text_of(share_table("user", rows, most=5))
        assert "46 others" in text
        assert f"{sum(row.count for row in rows[4:]):,}" in text

    def test_a_name_with_markup_stays_text(self) -> None:
        frame = four_jobs().frame.with_columns(user=pl.lit("[red]eve[/red]"))
        assert "[red]eve[/red]" in text_of(share_table("user", shares(frame, "user")))


class TestSeries:
    def test_curves_rise_to_one(self) -> None:
        trace = generate("generic", seed=1, jobs=5000, jobs_per_hour=9)
        curve = series(trace)["durations"]
        assert len(curve) == 400
        assert curve["share"][-1] == 1
        assert curve["duration"].is_sorted()
        assert curve["duration"][-1] == trace.frame["duration"].max()

    def test_arrivals_count_jobs_gpus_and_work_by_the_hour(self) -> None:
        rows = series(four_jobs())["arrivals"].to_dicts()
        assert rows[-1] == {"hour": 6, "jobs": 1, "gpus": 4, "work": 43200}
        assert [row["hour"] for row in rows] == [0, 1, 2, 6]

    def test_one_job_has_an_empty_curve_of_gaps(self) -> None:
        found = series(Trace.from_frame(four_jobs().frame.head(1)))
        assert len(found["gaps"]) == 0
        assert found["hour_of_day"]["share"].sum() == 1
        assert found["sizes"].columns == ["gpus", "count", "jobs", "gpu_time"]


# Sampling, scaling, shifting and cutting give new traces and leave the old one alone.


def trace(count: int = 100) -> Trace:
    return Trace.from_records(
        {"job": f"j{i}", "arrival": 10.0 * i, "gpus": 1 + i % 8, "duration": 60.0, "deadline": 10.0 * i + 100} for i in range(count)
    )


def test_a_sample_is_a_subset_in_order_and_follows_its_seed() -> None:
    whole = trace()
    tenth = sample(whole, fraction=0.1, seed=7)
    assert len(tenth) == 10
    assert tenth.frame["arrival"].is_sorted()
    assert set(tenth.frame.rows()) < set(whole.frame.rows())
    assert tenth == sample(whole, n=10, seed=7)
    assert tenth != sample(whole, n=10, seed=8)
    assert tenth.notes == ("a sample of 10 of 100 jobs (seed 7)",)
    assert sample(whole, n=100) == whole


def test_every_job_has_the_same_chance() -> None:
    whole = trace(10)
    counts = dict.fromkeys(whole.frame["job"], 0)
    for seed in range(400):
        for job in sample(whole, n=5, seed=seed).frame["job"]:
            counts[job] += 1
    assert min(counts.values()) > 140
    assert max(counts.values()) < 260


def test_scaling_divides_the_time_between_arrivals() -> None:
    twice = scale(trace(), load=2)
    assert twice.frame["arrival"].to_list() == [5.0 * i for i in range(100)]
    assert twice.frame["duration"].to_list() == [60.0] * 100
    assert (twice.frame["deadline"] - twice.frame["arrival"]).to_list() == [100.0] * 100
    assert scale(twice, load=0.5) == trace()


def test_shifting_moves_arrivals_and_deadlines() -> None:
    later = shift(trace(), by=5.5)
    assert later.frame["arrival"][0] == 5.5
    assert later.frame["deadline"][0] == 105.5
    assert shift(later, by=-5.5) == trace()


def test_a_window_begins_at_zero_and_leaves_out_its_end() -> None:
    part = window(trace(), start=100, end=150)
    assert part.frame["job"].to_list() == ["j10", "j11", "j12", "j13", "j14"]
    assert part.frame["arrival"].to_list() == [0.0, 10.0, 20.0, 30.0, 40.0]
    assert part.frame["deadline"].to_list() == [100.0, 110.0, 120.0, 130.0, 140.0]
    assert window(trace()) == trace()


@given(st.floats(0, 1000), st.floats(0, 1000), st.floats(0, 1000))
def test_adjoining_windows_hold_every_job_once(a: float, b: float, c: float) -> None:
    whole = trace()
    first, second, third = sorted((a, b, c))
    jobs: list[str] = []
    for start, end in ((-1.0, first), (first, second), (second, third), (third, math.inf)):
        if whole.frame["arrival"].is_between(start, end, closed="left").any():
            jobs += window(whole, start=start, end=end).frame["job"].to_list()
    assert jobs == whole.frame["job"].to_list()


def test_requests_that_make_no_sense_are_refused() -> None:
    for call, said in (
        (lambda: sample(trace()), "either a number"),
        (lambda: sample(trace(), n=3, fraction=0.5), "either a number"),
        (lambda: sample(trace(), n=101), "cannot take 101 of 100"),
        (lambda: sample(trace(), fraction=1.5), "at most 1"),
        (lambda: scale(trace(), load=0), "not above 0"),
        (lambda: scale(trace(), load=math.nan), "not above 0"),
        (lambda: shift(trace(), by=-1), "before 0"),
        (lambda: window(trace(), start=5000), "arrivals lie between 0 and 990"),
        (lambda: window(trace(), start=50, end=50), "no job arrives"),
    ):
        with pytest.raises(UsageError, match=said):
            call()


# The options cell is read back as it was written.

TEXTS = "v100:4=3600|cpu:0/20=9000|a100:1/8/64=12.5"


def test_alternatives_are_read_with_their_resources() -> None:
    assert parse_options(TEXTS) == (
        WrittenOption("v100", 4, 3600.0),
        WrittenOption("cpu", 0, 9000.0, cpus=20.0),
        WrittenOption("a100", 1, 12.5, cpus=8.0, memory=64.0),
    )
    assert parse_options("") == ()
    assert format_options(parse_options(TEXTS)) == TEXTS


@pytest.mark.parametrize("text", ["v100", "v100:4", "v100:x=1", ":4=1", "v100:4=1||", "v100:1/2/3/4/5=6", "v100:4=-1"])
def test_what_is_no_alternative_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="type:gpus"):
        parse_options(text)


numbers = st.floats(0, 1e12, allow_nan=False)


@given(
    st.lists(
        st.builds(WrittenOption, st.sampled_from(["v100", "A100-80GB", "cpu"]), st.integers(0, 99), *[numbers] * 4, st.integers(0, 9)),
        min_size=1,
    )
)
def test_every_option_round_trips_and_passes_the_trace_check(options: list[WrittenOption]) -> None:
    text = format_options(options)
    assert list(parse_options(text)) == options
    Trace.from_records([{"job": "a", "arrival": 0, "gpus": 1, "duration": 1, "options": text}])


# The page about traces names every column, every format and every option that the code knows.

PAGE = (Path(__file__).parents[2] / "docs" / "traces.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ")]


@pytest.mark.parametrize("name", COLUMNS)
def test_every_column_is_in_the_table(name: str) -> None:
    (row,) = [row for row in ROWS if re.search(rf"`{name}`", row.split("|")[1])]
    assert COLUMNS[name].kind in row
    assert ("**" in row.split("|")[1]) == (name in REQUIRED)
    if COLUMNS[name].unit:
        assert COLUMNS[name].unit == row.split("|")[3].strip()


@pytest.mark.parametrize("name", importer_names())
def test_every_format_is_in_the_table_with_its_options(name: str) -> None:
    (row,) = [row for row in ROWS if row.split("|")[1].strip() == f"`{name}`"]
    written = re.findall(r"`(\w+)`(?! or)(?=[^`]*)", row.split("|")[3])
    assert {option.name for option in import_options(name)} <= set(written)
