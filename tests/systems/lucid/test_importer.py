"""Lucid's logs: the clock of its simulator, the days that it simulates, and what a job trains as one key."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantline.core.errors import GantlineError
from gantline.traces.importers import import_trace
from gantline.traces.trace import Trace

HEAD = "job_id,vc,gpu_num,submit_time,duration,model,dataset,batchsize,amp,gmem\n"
SEED = "0,vcA,1,{zero},60,Wren,Birds,32,0,2048\n"


def log(tmp_path: Path, *rows: str, zero: str = "2020-04-01 00:00:00") -> Path:
    path = tmp_path / "log.csv"
    path.write_text(HEAD + SEED.format(zero=zero) + "".join(f"{row}\n" for row in rows))
    return path


def arrivals(trace: Trace) -> dict[str, float]:
    return dict(trace.frame.select("job", "arrival").rows())


def test_the_first_of_september_is_second_13219200_where_the_log_begins_with_april(tmp_path: Path) -> None:
    path = log(tmp_path, "1,vcA,2,2020-09-01 00:00:00,60,Wren,Birds,32,0,2048")

    assert arrivals(import_trace("lucid", path)) == {"1": 13_219_200.0}


def test_the_first_submission_sets_zero_wherever_it_falls(tmp_path: Path) -> None:
    rows = ("1,vcA,2,2020-09-01 00:00:00,60,Wren,Birds,32,0,2048", "2,vcA,2,2020-09-01 02:00:00,60,Wren,Birds,32,0,2048")
    path = log(tmp_path, *rows, zero="2020-04-01 01:00:00")

    assert arrivals(import_trace("lucid", path)) == {"2": 13_219_200.0 + 3600.0}  # the other one is before the first second


def test_jobs_without_gpus_set_no_zero_and_are_left_out(tmp_path: Path) -> None:
    rows = ("8,vcA,0,2020-04-01 00:00:10,60,,,,,", "1,vcA,2,2020-09-01 01:00:00,60,Wren,Birds,32,0,2048")
    path = log(tmp_path, *rows, zero="2020-04-01 00:00:20")

    assert arrivals(import_trace("lucid", path)) == {"1": 13_219_200.0 + 3600.0 - 20.0}


@pytest.mark.parametrize(("moment", "kept"), [("2020-09-26 23:59:00", True), ("2020-09-26 23:59:01", False)])
def test_the_last_second_is_kept_and_the_next_is_not(tmp_path: Path, moment: str, kept: bool) -> None:
    path = log(tmp_path, "1,vcA,1,2020-09-02 00:00:00,60,Wren,Birds,32,0,9", f"2,vcA,1,{moment},60,Wren,Birds,32,0,9")

    assert ("2" in arrivals(import_trace("lucid", path))) is kept


def test_jobs_of_virtual_clusters_that_are_not_listed_can_be_left_out(tmp_path: Path) -> None:
    listed = tmp_path / "vcs.csv"
    listed.write_text(",num\nvcB,2\n")
    rows = ("1,vcB,1,2020-04-01 00:01:00,60,Wren,Birds,32,0,9", "2,vcB,1,2020-09-02 00:00:00,60,Wren,Birds,32,0,9")

    trace = import_trace("lucid", log(tmp_path, *rows), {"vcs": str(listed)})

    assert arrivals(trace) == {"2": 13_219_200.0 + 86_400.0 - 60.0}  # the first job of a listed one is a minute later
    assert any("dropped 1 of 3 jobs: of virtual clusters" in note for note in trace.notes)


def test_what_a_job_trains_is_one_key_and_its_memory_is_in_gb(tmp_path: Path) -> None:
    rows = ("1,vcA,1,2020-09-02 00:00:00,60,Wren,Birds,32,1,2048", "2,vcA,1,2020-09-02 00:00:01,60,Wren,Birds,32,0,3072")
    frame = import_trace("lucid", log(tmp_path, *rows)).frame

    assert frame["model"].to_list() == ["Wren/Birds/32/amp", "Wren/Birds/32/fp32"]
    assert frame["device_memory"].to_list() == [2.0, 3.0]
    assert frame["queue"].to_list() == ["vcA", "vcA"]


def test_a_log_without_jobs_in_september_says_why_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(GantlineError, match=r"no job is left: .*13219200"):
        import_trace("lucid", log(tmp_path))
