"""Checking names every contradiction; repairing puts right what has one right answer and nothing else."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline import simulate
from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import NotFoundError, UsageError
from gantline.traces.check import TraceProblem, check, repair
from gantline.traces.trace import Trace

HEADER = "job,arrival,gpus,duration"


def write(folder: Path, text: str, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def found(problems: list[TraceProblem]) -> list[tuple[int | None, str, bool]]:
    return [(problem.line, problem.field, problem.repairable) for problem in problems]


def test_foreign_names_do_not_hide_what_is_wrong_behind_them(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("job_id,submit_time,num_gpus,run_time_min\na,60,1,10\nb,0,4,60\nc,90,2,-1\n")
    assert found(check(path)) == [(3, "arrival", True), (4, "duration", False)]


def test_a_sound_trace_has_no_problems(tmp_path: Path) -> None:
    assert check(write(tmp_path, f"{HEADER}\na,0,1,5\n")) == []


def test_times_of_a_log_that_cannot_be_are_named(tmp_path: Path) -> None:
    """They stop no run, because no run reads them; what is compared with the log leaves it out."""
    path = write(tmp_path, f"{HEADER},started,ended\na,10,1,5,9,15\nb,20,1,5,30,29\nc,20,1,5,,\nd,20,1,5,20,25\n")
    assert len(Trace.load(path)) == 4
    assert [(each.line, each.field, each.what) for each in check(path)] == [
        (2, "started", "started before it arrived"),
        (3, "ended", "ended before it started"),
    ]


@pytest.mark.parametrize(
    ("row", "field", "what"),
    [
        ("T4,8,1,", "gpus", "asks for more than the 4 GPUs that the cluster has of type 'T4'"),
        (",17,1,", "gpus", "asks for more than the 16 GPUs that the cluster has of a type"),
        ("T4,1,50,", "cpus", "needs more CPUs beside each device than the 32 that the largest node of type 'T4' has"),
        (",1,100,", "cpus", "needs more CPUs beside each device than the 96 that the largest node has"),
        ("a100,1,1,", "type", "asks for type 'a100', of which the cluster has no device"),
        (",2,1,k80:2=50|h100:1=3", "options", "asks for type 'k80', of which the cluster has no device"),
        (",2,1,k80:2=50|t4:1=3", "", ""),
        ("T4,4,128,", "cpus", "needs so much beside each device that all nodes of type 'T4' together hold fewer of them than it asks for"),
        ("t4,2,64,", "", ""),
        (",16,1,", "", ""),
    ],
)
def test_jobs_that_a_cluster_cannot_hold_are_named_by_type(tmp_path: Path, row: str, field: str, what: str) -> None:
    """What the simulator refuses, the check names; what it runs, the check passes."""
    cluster = parse_cluster("V100:2x8/96c,T4:2x2/32c")
    kind, gpus, cpus, options = row.split(",")
    path = write(tmp_path, f"{HEADER},type,cpus,options\na,0,{gpus},10,{kind},{cpus},{options}\n")
    assert [(each.line, each.field, each.what) for each in check(path, cluster)] == ([(2, field, what)] if field else [])
    if field:
        with pytest.raises(UsageError):
            simulate(path, cluster, "fifo")
    else:
        assert simulate(path, cluster, "fifo").summary["completed"] == 1


def test_every_contradiction_is_listed_in_the_order_of_lines(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        f"{HEADER},min_gpus,user\na,10,1,5,,ann\nb,5,1,5,,\nc,x,-2,0,,\na,11,1.5,nan,2, bob\nb,5,1,5,,\n",
    )
    problems = check(path)
    assert set(found(problems)) == {
        (3, "arrival", True),
        (4, "arrival", False),
        (4, "gpus", False),
        (4, "duration", False),
        (5, "duration", False),
        (5, "gpus", False),
        (5, "user", True),
        (5, "min_gpus", False),
        (5, "job", False),
        (6, "arrival", True),
        (6, "job", True),
    }
    assert len(problems) == 11
    assert [problem.line for problem in problems] == sorted(problem.line or 0 for problem in problems)
    assert str(problems[0]).startswith(f"{path}:3: field 'arrival': arrives at 5, before the row above it at 10")


def test_checking_a_broken_file_gives_one_problem(tmp_path: Path) -> None:
    assert [problem.what for problem in check(write(tmp_path, ""))] == ["is empty"]
    assert [problem.what for problem in check(write(tmp_path, HEADER))] == ["holds no jobs"]
    assert found(check(write(tmp_path, "when,what\n1,2\n"))) == [
        (1, "job", True),
        (1, "arrival", False),
        (1, "gpus", False),
        (1, "duration", False),
    ]
    with pytest.raises(NotFoundError):
        check(tmp_path / "none.csv")


def test_repair_sorts_trims_renames_and_drops_repeats(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "Job_ID, submit_time ,num_gpus,run_time_min,note\na,20,1, 5,x\nb,10,2,1.5,y\nb,10,2,1.5,y\nc,10,4,2,z \n",
    )
    out = tmp_path / "fixed.csv"
    before = path.read_bytes()
    said = repair(path, out)
    trace = Trace.load(out)
    assert trace.frame.rows() == [("b", 10.0, 2, 90.0, "y"), ("c", 10.0, 4, 120.0, "z"), ("a", 20.0, 1, 300.0, "x")]
    assert said == [
        "removed spaces around column names",
        "removed spaces around 2 values",
        "renamed 'Job_ID' to 'job'",
        "renamed 'submit_time' to 'arrival'",
        "renamed 'num_gpus' to 'gpus'",
        "renamed 'run_time_min' to 'duration' and turned it into seconds (x 60)",
        "dropped 1 row equal to an earlier one",
        "sorted the rows by arrival (1 came before the row above)",
    ]
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        ("2024-01-01T02:00:00+02:00", "2024-01-01T00:00:10Z", 10.0),
        ("2024-01-01 00:00:00.5+00:00", "2024-01-01 00:30:00.5-0100", 5400.0),
        ("2024-01-01 00:00", "2024-01-01 00:01", 60.0),
        ("2024-01-01", "2024-01-02", 86400.0),
    ],
)
def test_dates_are_repaired_with_their_zones(first: str, second: str, apart: float, tmp_path: Path) -> None:
    path = write(tmp_path, f"job,arrival,gpus,duration\na,{first},1,5\nb,{second},1,5\n")
    assert all(problem.repairable for problem in check(path))
    assert repair(path, tmp_path / "out.csv") == [f"counted arrivals in seconds from {first.replace('T', ' ')}"]
    assert Trace.load(tmp_path / "out.csv").frame["arrival"].to_list() == [0.0, apart]


def test_times_in_words_are_repaired(tmp_path: Path) -> None:
    path = write(tmp_path, "job,arrival,gpus,duration\na,0,1,5m\nb,1s,1,7\nc,2,1,1-00:00:10\n")
    assert [problem.repairable for problem in check(path)] == [True, True, True]
    said = repair(path, tmp_path / "out.csv")
    assert said == ["turned 1 value of 'arrival' such as '1s' into seconds", "turned 2 values of 'duration' such as '5m' into seconds"]
    assert Trace.load(tmp_path / "out.csv").frame["duration"].to_list() == [300.0, 7.0, 86410.0]
    worse = write(tmp_path, "job,arrival,gpus,duration\na,0,1,5m\nb,1,1,long\n")
    assert not any(problem.repairable for problem in check(worse))


def test_repair_counts_from_the_first_date_or_unix_time(tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    text = f"{HEADER}\na,2017-10-09 07:01:55,1,5\nb,2017-10-09T06:01:55Z,1,5\n"
    assert "counted arrivals in seconds from 2017-10-09 06:01:55Z" in repair(write(tmp_path, text), out)
    assert Trace.load(out).frame["arrival"].to_list() == [0.0, 3600.0]
    said = repair(write(tmp_path, "submit,gpus,duration_ms\n1600000000000,1,5000\n1600000001500,1,9000\n"), out)
    assert Trace.load(out).frame.rows() == [("0", 0.0, 1, 5.0), ("1", 1.5, 1, 9.0)]
    assert "counted arrivals from the first one (Unix milliseconds 1600000000000)" in said
    assert "numbered the jobs from 0, in the order of the rows" in said


def test_units_that_the_names_leave_open_are_not_guessed(tmp_path: Path) -> None:
    path = write(tmp_path, "job,submit_time,gpus,run_time\na,1600000000000,1,5000\n")
    said = repair(path, tmp_path / "out.csv")
    assert any(line.startswith("left: 'run_time' may be in milliseconds") for line in said)
    assert any("column 'duration' is missing" in line for line in said)


def test_what_has_no_single_answer_stays_and_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path, f"{HEADER}\nb,9,1,5\na,1,1,-5\na,2,1,5\n")
    out = tmp_path / "out.csv"
    said = repair(path, out)
    assert said[0] == "sorted the rows by arrival (1 came before the row above)"
    assert said[1:] == [
        f"left: {out}:2: field 'duration': duration -5 is not positive (give the run time or drop the row)",
        f"left: {out}:3: field 'job': id 'a' is used by an earlier row (give each job its own id)",
    ]
    assert pl.read_csv(out)["duration"].to_list() == [-5, 5, 5]


def test_two_names_for_one_column_are_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path, "job,arrival,num_gpus,gpu_num,duration\na,0,1,2,5\n")
    said = repair(path, tmp_path / "out.csv")
    assert "left: num_gpus, gpu_num could all be 'gpus'; rename one" in said


def test_many_leftovers_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + "\n" + "".join(f"{i},{i},1,-1\n" for i in range(50)))
    said = repair(path, tmp_path / "out.csv")
    assert len(said) == 21
    assert said[-1] == "left: 30 more problems"


rows = st.tuples(
    st.sampled_from(["a", "b", " c", ""]),
    st.sampled_from(["0", "5", " 3", "x", "nan", ""]),
    st.sampled_from(["1", "2.0", "1.5", "-1", "0"]),
    st.sampled_from(["5", "0", "inf", "7 "]),
)


@given(st.lists(rows, max_size=6))
def test_repair_never_adds_problems_and_leaves_none_that_it_could_mend(
    tmp_path_factory: pytest.TempPathFactory, table: list[tuple[str, str, str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("repair")
    path = write(folder, HEADER + "\n" + "".join(",".join(row) + "\n" for row in table))
    before = check(path)
    repair(path, folder / "out.csv")
    after = check(folder / "out.csv")
    assert len(after) <= len(before) or any("used by an earlier row" in problem.what for problem in after)
    sortable = not any(problem.field == "arrival" and not problem.repairable for problem in after)
    assert not any(problem.repairable for problem in after if sortable)
    if not before:
        assert Trace.load(folder / "out.csv") == Trace.load(path)
