"""Standard accounting logs: SWF and Slurm."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gantline import simulate
from gantline.core.errors import NotFoundError, TraceError, UsageError
from gantline.lab.report.run_warnings import ways_left_out
from gantline.traces.importers import import_trace
from gantline.traces.importers.slurm import gpus_of, memory_of, seconds_of, type_of
from gantline.traces.options import WrittenOption, parse_options
from gantline.traces.trace import Trace

FIXTURES = Path(__file__).parent / "fixtures"


def test_swf_takes_processors_as_gpus() -> None:
    trace = import_trace("swf", FIXTURES / "swf.txt")
    columns = ("job", "arrival", "gpus", "duration", "user", "queue", "outcome", "time_limit")
    assert trace.frame.select(columns).rows() == [
        ("1", 0.0, 16, 600.0, "3", "1", "completed", 3600.0),
        ("3", 30.0, 8, 100.0, "3", "2", "failed", None),
        ("4", 80.0, 5, 500.0, "", "2", "completed", 7200.0),
    ]
    assert trace.frame["memory"].to_list() == [None, pytest.approx(8 * 2048 * 1024e-9), pytest.approx(5 * 1024**2 / 1e9)]
    assert trace.notes[:3] == (
        "dropped 2 of 6 jobs: parts of a checkpointed job (its summary line is kept)",
        "dropped 1 of 6 jobs: never ran (no positive run time)",
        "time 0 of the log is Unix time 1500000000",
    )


def test_swf_may_count_several_processors_as_one_gpu() -> None:
    trace = import_trace("swf", FIXTURES / "swf.txt", {"procs_per_gpu": "4"})
    assert trace.frame["gpus"].to_list() == [4, 2, 2]
    with pytest.raises(UsageError, match="below 1"):
        import_trace("swf", FIXTURES / "swf.txt", {"procs_per_gpu": 0})


def test_swf_lines_with_other_widths_are_named(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; note\n1 2 3\n")
    with pytest.raises(TraceError, match="has 3 fields, a job has 18") as caught:
        import_trace("swf", path)
    assert caught.value.line == 2
    path.write_text("; only: comments\n")
    with pytest.raises(TraceError, match="holds no jobs"):
        import_trace("swf", path)


def test_swf_outcomes_parts_and_which_processors_count(tmp_path: Path) -> None:
    """Codes 2 to 4 are parts of a job whose summary line is kept, 5 is killed; what was asked for goes before what was used."""
    rows = [
        "1 0 5 100 8 -1 -1 4 -1 -1 1 1 1 -1 1 -1 -1 -1",
        "2 1 5 100 8 -1 -1 -1 -1 -1 5 1 1 -1 1 -1 -1 -1",
        "3 2 5 100 8 -1 -1 0 -1 -1 0 1 1 -1 1 -1 -1 -1",
        *(f"{number} 3 5 100 8 -1 -1 4 -1 -1 {number} 1 1 -1 1 -1 -1 -1" for number in (2, 3, 4)),
    ]
    path = tmp_path / "log.swf"
    path.write_text("\n".join(rows) + "\n")
    frame = import_trace("swf", path).frame
    assert frame["gpus"].to_list() == [4, 8, 8]
    assert frame["outcome"].to_list() == ["completed", "killed", "failed"]


def test_sacct_reads_times_and_resources() -> None:
    trace = import_trace("sacct", FIXTURES / "sacct.txt")
    columns = ("job", "arrival", "gpus", "duration", "type", "outcome", "user", "queue", "time_limit", "cpus")
    assert trace.frame.select(columns).rows() == [
        ("101_3", 0.0, 16, 93784.0, "", "killed", "bob", "gpu", None, 64.0),
        ("100", 60.0, 2, 3600.0, "a100", "completed", "ann", "gpu", 86400.0, 8.0),
        ("103", 1260.0, 1, 30.0, "h100", "failed", "ann", "gpu", 1800.0, 4.0),
        ("103#2", 1560.0, 1, 90.0, "h100", "completed", "ann", "gpu", 1800.0, 4.0),
    ]
    assert trace.notes == (
        "left out 1 steps of jobs (sacct -X leaves them out itself)",
        "dropped 1 of 8 jobs: array members that never started",
        "dropped 1 of 8 jobs: not finished",
        "dropped 1 of 8 jobs: never ran (no elapsed time)",
        "dropped 1 of 8 jobs: no GPUs",
        "time 0 is 2024-03-01 07:59:00, the cluster's local time",
        "sorted by arrival (1 came before the row above)",
        "renamed 1 repeated id (x, then x#2, x#3, ...)",
        "kept beside the usual columns, for a regime that reads them: time_limit",
    )
    with_cpu = import_trace("sacct", FIXTURES / "sacct.txt", {"cpu_jobs": True})
    assert (0, 32.0) in with_cpu.frame.select("gpus", "cpus").rows()


def test_sacct_with_older_columns(tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    path.write_text(
        "JobIDRaw|Submit|ElapsedRaw|State|NNodes|AllocGRES|AllocCPUS|Restarts\n7|2019-01-01T00:00:00|50|COMPLETED|2|gpu:tesla:4|16|1\n"
    )
    frame = import_trace("sacct", path).frame
    assert frame.select("gpus", "type", "cpus", "attempts", "duration").rows() == [(8, "tesla", 16.0, 2, 50.0)]


def test_sacct_without_elapsed_takes_start_and_end(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(
        "JobID|Submit|Start|End|AllocTRES\n1|2024-03-01T08:00:00|2024-03-01T08:10:00|2024-03-01T09:00:00|gres/gpu=2\n"
        "2|2024-03-01T08:00:00|2024-03-01T08:10:00|Unknown|gres/gpu=2\n"
    )
    trace = import_trace("sacct", tmp_path / "log")
    assert trace.frame.select("job", "duration", "started").rows() == [("1", 3000.0, 600.0)]


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("JobID|Submit|Elapsed", "no column holds the GPUs"),
        ("JobID|Submit|AllocTRES", "no column holds the run time"),
        ("JobID|Elapsed|AllocTRES", "column 'Submit' is missing"),
        ("JobIDx|Submit|AllocTRES", r"column 'JobID' is missing \(print it with sacct -aXP -o JobID,"),
    ],
)
def test_sacct_says_which_column_to_ask_for(tmp_path: Path, header: str, said: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text(header + "\n1|2019-01-01T00:00:00|gres/gpu=1\n")
    with pytest.raises(TraceError, match=said):
        import_trace("sacct", path)
    if "|" in header:
        with pytest.raises(TraceError, match=r"is a log of Slurm \(add --format sacct"):
            Trace.load(path)


def test_sacct_names_the_line_of_a_broken_duration(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("JobID|Submit|Elapsed|AllocTRES\n1|2019-01-01T00:00:00|00:01:00|gres/gpu=1\n2|2019-01-01T00:00:00|1:2:3:4|gres/gpu=1\n")
    with pytest.raises(TraceError, match="'1:2:3:4' is not a duration") as caught:
        import_trace("sacct", path)
    assert (caught.value.line, caught.value.field) == (3, "Elapsed")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:00:30", 30.0),
        ("01:00:00", 3600.0),
        ("1-02:03:04", 93784.0),
        ("2-00", 172800.0),
        ("30:00", 1800.0),
        ("90", 5400.0),
        ("05:30.250", 330.25),
        ("UNLIMITED", None),
        ("", None),
    ],
)
def test_slurm_durations(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["1:2:3:4", "x", "-5", "1-", "1-x", "nan", "1_0"])
def test_what_is_no_slurm_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        seconds_of(text)


@pytest.mark.parametrize(
    ("text", "gpus", "kind"),
    [
        ("cpu=8,gres/gpu=2,mem=1G", 2, ""),
        ("gres/gpu:a100=2,gres/gpu=2", 2, "a100"),
        ("gres/gpu:a100=2", 2, "a100"),
        ("gres/gpu:a100=2,gres/gpu:v100=1", 3, ""),
        ("gpu:4", 4, ""),
        ("gpu:tesla:4", 4, "tesla"),
        ("gres:gpu:2", 2, ""),
        ("gpu", 1, ""),
        ("cpu=8,mem=1G", 0, ""),
        ("", 0, ""),
        ("craynetwork:1,gpu:k80:1", 1, "k80"),
    ],
)
def test_slurm_resources(text: str, gpus: int, kind: str) -> None:
    assert (gpus_of(text), type_of(text)) == (gpus, kind)


def test_slurm_memory_in_gigabytes() -> None:
    assert memory_of("cpu=1,mem=64G") == pytest.approx(68.719476736)
    assert memory_of("mem=1000") == pytest.approx(1.048576)
    assert memory_of("cpu=1") is None


def test_parts_of_heterogeneous_jobs_are_told(tmp_path: Path) -> None:
    rows = ["JobID|Submit|Start|Elapsed|AllocTRES"]
    rows += [f"7+{part}|2024-01-01T00:00:00|2024-01-01T00:01:00|00:10:00|gres/gpu={part + 1}" for part in (0, 1)]
    (tmp_path / "log").write_text("\n".join(rows) + "\n", encoding="utf-8")
    trace = import_trace("sacct", tmp_path / "log")
    assert trace.frame["started"].to_list() == [60.0, 60.0]
    assert trace.notes[0].startswith("1 heterogeneous jobs have 2 parts")


def test_every_run_of_a_requeued_slurm_job_counts(tmp_path: Path) -> None:
    rows = ["7|2024-01-01T00:00:00|60|REQUEUED|gres/gpu=2", "7|2024-01-01T00:05:00|90|COMPLETED|gres/gpu=2"]
    (tmp_path / "log.txt").write_text("JobID|Submit|ElapsedRaw|State|AllocTRES\n" + "\n".join(rows) + "\n", encoding="utf-8")
    frame = import_trace("sacct", tmp_path / "log.txt").frame
    assert frame["job"].to_list() == ["7", "7#2"]
    assert frame["duration"].to_list() == [60.0, 90.0]
    assert frame["outcome"].to_list() == ["killed", "completed"]


# Logs of real clusters, with the defects they are known for.


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
