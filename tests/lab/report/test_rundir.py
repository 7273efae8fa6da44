"""Run directories: whole or not at all, readable by others, refused with a reason."""

import json
import math

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.lab.report.example_runs import example_run

from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.lab.report.frames import StoredRun
from gantline.lab.report.rundir import is_run, plain, read_run, write_run

FRAMES = ["jobs", "allocations", "events", "series"]


@pytest.fixture
def run():
    return example_run(jobs=30, gap=100, until=3000.0)


@pytest.fixture
def stored(run, tmp_path):
    return write_run(run, tmp_path / "results" / "fifo")


def test_what_is_written_is_read_back(run, stored):
    again = read_run(stored)
    for name in FRAMES:
        assert_frame_equal(getattr(again, name), getattr(run, name))
    assert again.summary == run.summary
    assert again.jobs["finish"].is_nan().any()  # unfinished jobs stay NaN


def test_polars_pandas_and_duckdb_read_the_same_numbers(run, stored):
    file = stored / "jobs.parquet"
    mean = run.jobs["responsiveness"].drop_nans().mean()  # some jobs have not started
    assert pl.read_parquet(file)["responsiveness"].mean() == mean
    assert pd.read_parquet(file)["responsiveness"].mean() == pytest.approx(mean)
    assert duckdb.sql(f"select avg(responsiveness) from '{file}'").fetchall()[0][0] == pytest.approx(mean)
    unknown = run.jobs["finish"].is_nan().sum()
    assert duckdb.sql(f"select count(*) from '{file}' where finish is null").fetchall()[0][0] == unknown > 0
    query = f"select sum(len(devices)) from '{stored}/allocations.parquet'"
    assert duckdb.sql(query).fetchall()[0][0] == run.allocations["gpus"].sum()


def test_columns_we_do_not_know_are_kept(run, tmp_path):
    more = StoredRun(run.jobs.with_columns(colour=pl.lit("red")), run.allocations, run.events, run.series, run.summary)
    assert read_run(write_run(more, tmp_path / "r")).jobs["colour"].unique().to_list() == ["red"]


def test_a_run_is_not_overwritten_unless_asked(run, stored):
    with pytest.raises(RefusedError, match="exists already"):
        write_run(run, stored)
    other = example_run(jobs=5, name="other")
    write_run(other, stored, replace=True)
    assert read_run(stored).jobs.height == 5
    assert [entry.name for entry in stored.parent.iterdir()] == ["fifo"]


def test_replacing_never_removes_what_is_not_a_run(run, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("...")
    with pytest.raises(RefusedError, match="not a run directory"):
        write_run(run, tmp_path / "thesis", replace=True)
    assert (tmp_path / "thesis" / "chapter1.tex").exists()


def test_a_failure_while_writing_leaves_nothing_behind(run, tmp_path, monkeypatch):
    def full_disk(self, *args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_run(run, tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_while_replacing_keeps_the_old_run(run, stored, monkeypatch):
    monkeypatch.setattr(pl.DataFrame, "write_parquet", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        write_run(example_run(jobs=5), stored, replace=True)
    monkeypatch.undo()
    assert read_run(stored).jobs.height == run.jobs.height


def test_a_newer_schema_is_refused_by_name(stored):
    head = json.loads((stored / "summary.json").read_text())
    head["schema_version"] = 3
    (stored / "summary.json").write_text(json.dumps(head))
    with pytest.raises(RefusedError, match=r"written by a newer Gantline \(schema version 3.*upgrade"):
        read_run(stored)
    assert is_run(stored)


def test_a_run_that_counted_otherwise_is_refused(stored):
    head = json.loads((stored / "summary.json").read_text())
    head["schema_version"] = 1
    (stored / "summary.json").write_text(json.dumps(head))
    with pytest.raises(RefusedError, match=r"older Gantline.*without the time that changes cost.*run again"):
        read_run(stored)


def test_half_and_foreign_directories_are_refused_with_a_reason(stored, tmp_path):
    with pytest.raises(NotFoundError, match="no such run"):
        read_run(tmp_path / "nowhere")
    (tmp_path / "photos").mkdir()
    with pytest.raises(UsageError, match=r"not a run directory: it has no summary\.json"):
        read_run(tmp_path / "photos")
    (tmp_path / "photos" / "summary.json").write_text('{"format": "albums"}')
    with pytest.raises(UsageError, match="not the summary of a run"):
        read_run(tmp_path / "photos")
    (tmp_path / "photos" / "summary.json").write_text("{")
    with pytest.raises(UsageError, match="not readable as JSON"):
        read_run(tmp_path / "photos")
    (stored / "events.parquet").unlink()
    with pytest.raises(UsageError, match=r"incomplete: events\.parquet is missing"):
        read_run(stored)


def test_a_damaged_or_exchanged_file_is_named(run, stored):
    whole = (stored / "jobs.parquet").read_bytes()
    (stored / "jobs.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match=r"jobs\.parquet: is damaged"):
        read_run(stored)
    run.jobs.head(3).write_parquet(stored / "jobs.parquet")
    with pytest.raises(UsageError, match=r"has 3 rows where the summary counts"):
        read_run(stored)


def test_summaries_become_strict_json():
    odd = {"mean": math.nan, "n": np.int64(3), 5: (np.float64(1.5), {"b", "a"}), "path": pytest}
    assert plain(odd) | {"path": ""} == {"mean": None, "n": 3, "5": [1.5, ["a", "b"]], "path": ""}
