"""Logs of real clusters, with the defects they are known for."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gantline import simulate
from gantline.core.errors import NotFoundError, TraceError
from gantline.lab.report.run_warnings import ways_left_out
from gantline.traces.importers import import_trace
from gantline.traces.options import WrittenOption, parse_options

FIXTURES = Path(__file__).parent / "fixtures"


def rows(frame: pl.DataFrame, *columns: str) -> list[tuple[object, ...]]:
    return frame.select(columns).rows()


def test_philly_sums_attempts_and_counts_each_defect() -> None:
    trace = import_trace("philly", FIXTURES / "philly.json")
    assert rows(trace.frame, "job", "arrival", "gpus", "duration", "user", "queue", "outcome", "attempts") == [
        ("application_1_0002", 0.0, 1, 300.0, "u2", "aa11", "killed", 1),
        ("application_1_0001", 1800.0, 4, 4200.0, "u1", "aa11", "completed", 2),
        ("application_1_0006", 16200.0, 1, 30.0, "u3", "bb22", "failed", 2),
    ]
    assert trace.notes == (
        "dropped 1 of 7 jobs: no recorded attempt",
        "dropped 2 of 7 jobs: no attempt with a start and a later end",
        "dropped 1 of 7 jobs: no GPUs",
        "1 attempts end before they start",
        "1 attempts lack a time",
        "1 attempts were still running when the log was taken",
        "1 jobs changed their number of GPUs between attempts (the last one counts)",
        "1 jobs lack a time of submission (their first start is taken)",
        "time 0 is 2017-10-07 00:30:00 (Pacific time)",
        "sorted by arrival (1 came before the row above)",
    )
    last = import_trace("philly", FIXTURES / "philly.json", {"attempts": "last"})
    assert last.frame["duration"].to_list() == [300.0, 3600.0, 30.0]


def test_philly_names_the_job_with_a_broken_date(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text('[\n{"jobid": "x1",\n "submitted_time": "yesterday", "attempts": []}]')
    with pytest.raises(TraceError, match="job 'x1': 'yesterday' is not a date") as caught:
        import_trace("philly", path)
    assert (caught.value.line, caught.value.field) == (2, "submitted_time")
    path.write_text('[{"jobid": "x1", "attempts": ["oops"]}]')
    with pytest.raises(TraceError, match="job 'x1' does not have the published form"):
        import_trace("philly", path)
    path.write_text('{"jobid": "x1"}')
    with pytest.raises(TraceError, match="not a JSON list"):
        import_trace("philly", path)


def test_philly_list_sorts_by_date_and_drops_what_cannot_run() -> None:
    trace = import_trace("philly-list", FIXTURES / "philly_list.csv")
    assert rows(trace.frame, "job", "arrival", "gpus", "duration", "queue") == [
        ("0", 0.0, 2, 120.0, "c1"),
        ("1", 14401.0, 8, 1000.5, "c2"),
        ("2", 18031.0, 1, 45.0, "c1"),
    ]
    assert trace.notes == (
        "dropped 1 of 7 jobs: no date",
        "dropped 2 of 7 jobs: no positive duration",
        "dropped 1 of 7 jobs: no GPUs",
        "time 0 is 2017-10-08 23:59:59",
    )


def test_helios_keeps_gpu_jobs_and_takes_the_virtual_cluster_as_queue() -> None:
    trace = import_trace("helios", FIXTURES / "helios.csv")
    assert rows(trace.frame, "job", "arrival", "gpus", "duration", "user", "queue", "cpus", "outcome") == [
        ("101", 0.0, 1, 3600.0, "uA", "vc1", 6.0, "completed"),
        ("106", 230.0, 2, 60.0, "uC", "vc1", 8.0, "failed"),
        ("102", 290.0, 16, 100.0, "uB", "vc2", 64.0, "killed"),
        ("104", 380.0, 8, 86400.0, "uC", "vc1", 48.0, "failed"),
    ]
    assert trace.notes[:2] == (
        "dropped 1 of 6 jobs: never ran (no positive duration)",
        "dropped 1 of 6 jobs: no GPUs",
    )
    with_cpu = import_trace("helios", FIXTURES / "helios.csv", {"cpu_jobs": "true"})
    assert rows(with_cpu.frame.filter(pl.col("gpus") == 0), "job", "cpus") == [("103", 32.0)]
    assert import_trace("helios", FIXTURES / "helios.csv", {"vc": "vc2"}).frame["job"].to_list() == ["102"]


def test_lucid_logs_carry_their_model() -> None:
    frame = import_trace("helios", FIXTURES / "lucid.csv").frame
    assert rows(frame, "arrival", "app", "model", "batch_size", "speed") == [
        (0.0, "train", "ResNet18", 64, 900.5),
        (87.0, "gan", "DCGAN", 128, 800.25),
    ]


def test_pai_adds_up_tasks_and_rounds_parts_of_gpus_up() -> None:
    trace = import_trace("pai", FIXTURES / "pai_task_table.csv", {"jobs": FIXTURES / "pai_job_table.csv"})
    columns = ("job", "arrival", "gpus", "gpu_demand", "duration", "type", "cpus", "memory", "outcome", "user")
    assert rows(trace.frame, *columns) == [
        ("job-g", 0.0, 2, 2.0, 50.0, "", 6.0, 30.0, "completed", ""),
        ("job-a", 90.0, 1, 0.5, 500.0, "MISC", 5.0, 12.5, "completed", "user1"),
        ("job-b", 200.0, 3, 3.0, 2810.0, "V100", 32.0, 200.0, "completed", "user2"),
        ("job-c", 390.0, 1, 0.5, 1.0, "T4", 12.0, 60.0, "failed", "user1"),
    ]
    assert trace.notes[:5] == (
        "1 jobs have no time of submission in pai_job_table.csv (their first start is taken)",
        "dropped 1 of 7 jobs: never started",
        "dropped 1 of 7 jobs: not finished when the log was taken",
        "dropped 1 of 7 jobs: no GPUs",
        "rounded 2 requests for parts of a GPU up to whole ones (exact in gpu_demand)",
    )


def test_pai_reads_a_folder_one_table_or_tables_with_headers(tmp_path: Path) -> None:
    both = import_trace("pai", FIXTURES)
    assert both == import_trace("pai", FIXTURES / "pai_task_table.csv", {"jobs": FIXTURES / "pai_job_table.csv"})
    alone = import_trace("pai", FIXTURES / "pai_task_table.csv", {"cpu_jobs": True})
    assert alone.frame["arrival"].to_list() == [0.0, 100.0, 300.0, 400.0, 600.0]
    assert "no job table given" in alone.notes[0]
    headed = tmp_path / "tasks.csv"
    header = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"
    headed.write_text(header + (FIXTURES / "pai_task_table.csv").read_text())
    assert import_trace("pai", headed, {"cpu_jobs": True}) == alone
    with pytest.raises(TraceError, match="is the job table"):
        import_trace("pai", FIXTURES / "pai_job_table.csv")
    with pytest.raises(NotFoundError, match="no pai_task_table"):
        import_trace("pai", tmp_path)


def test_openb_pods_become_jobs_with_alternatives() -> None:
    trace = import_trace("openb", FIXTURES / "openb.csv")
    assert rows(trace.frame, "job", "arrival", "gpus", "gpu_demand", "duration", "type", "outcome") == [
        ("openb-pod-0000", 0.0, 1, 1.0, 990000.0, "", ""),
        ("openb-pod-0005", 50.0, 1, 1.0, 5.0, "T4", "completed"),
        ("openb-pod-0001", 61.0, 1, 0.35, 7000.0, "", "completed"),
        ("openb-pod-0002", 100.0, 8, 8.0, 60.0, "", "failed"),
    ]
    assert parse_options(trace.frame["options"][3]) == (WrittenOption("V100M16", 8, 60.0), WrittenOption("V100M32", 8, 60.0))
    assert trace.frame["memory"][1] == pytest.approx(8.589934592)
    assert "dropped 1 of 6 jobs: never scheduled" in trace.notes
    assert import_trace("pai", FIXTURES / "openb.csv") == trace


def test_pods_run_on_those_of_their_types_that_are_there() -> None:
    trace = import_trace("openb", FIXTURES / "openb.csv")
    run = simulate(trace, "V100M32:1x16/96c/900g,T4:1x4/96c/900g", "fifo")
    ran = dict(run.allocations.select("job", "type").iter_rows())
    assert (ran["openb-pod-0002"], ran["openb-pod-0005"]) == ("V100M32", "T4")
    assert run.summary["absent_types"] == ["V100M16"]
    assert "'V100M16', which the cluster does not have" in ways_left_out(run.summary)
    with pytest.raises(TraceError, match="'openb-pod-0002' asks for 'V100M16', which the cluster does not have"):
        simulate(trace, "T4:2x8", "fifo")
    with pytest.raises(TraceError, match="'openb-pod-0005' asks for 'T4', which the cluster does not have"):
        simulate(trace, "V100M16:2x8", "fifo")
    with pytest.raises(TraceError, match="no node has the CPUs, the memory and the storage that it asks for"):
        simulate(trace, "V100M32:1x16/96c/900g,T4:1x4/3c/900g", "fifo")


def test_spot_jobs_multiply_workers_and_keep_their_class() -> None:
    trace = import_trace("spot", FIXTURES / "spot.csv")
    assert rows(trace.frame, "job", "gpus", "gpu_demand", "cpus", "priority", "type", "user") == [
        ("11", 1, 1.0, 20.0, 1.0, "A10", "7"),
        ("12", 16, 16.0, 240.0, 0.0, "A100-SXM4-80GB", "7"),
        ("13", 1, 0.5, 8.0, 0.0, "A10", "9"),
    ]
    assert trace.notes[:2] == ("dropped 1 of 5 jobs: no positive duration", "dropped 1 of 5 jobs: no GPUs")


def test_acme_keeps_what_ran_on_gpus_and_when_it_really_started() -> None:
    trace = import_trace("acme", FIXTURES / "acme.csv")
    columns = ("job", "arrival", "gpus", "duration", "app", "outcome", "started", "memory")
    assert trace.frame.select(columns).rows() == [
        ("12", 0.0, 32, 3600.0, "Pretrain", "killed", 600.0, 3600.0),
        ("13", 60.0, 1, 60.0, "Evaluation", "failed", 70.0, 120.0),
    ]
    assert trace.notes[0] == "dropped 1 of 4 jobs: never ran (no positive duration)"
    assert import_trace("acme", FIXTURES / "acme.csv", {"cpu_jobs": "true"}).frame["gpus"].to_list() == [0, 32, 1]
    assert import_trace("acme", FIXTURES / "acme.csv", {"kind": "pretrain"}).frame["job"].to_list() == ["12"]
