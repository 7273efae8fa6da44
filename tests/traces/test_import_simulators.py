"""Workloads of published simulators."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from gantline.core.errors import TraceError, UsageError
from gantline.traces.importers import import_trace
from gantline.traces.options import WrittenOption, parse_options
from gantline.traces.trace import Trace

FIXTURES = Path(__file__).parent / "fixtures"


def rows(trace: Trace, *columns: str) -> list[tuple[object, ...]]:
    return trace.frame.select(columns).rows()


def gavel(**options: object) -> Trace:
    return import_trace("gavel", FIXTURES / "gavel.trace", {"throughputs": FIXTURES / "gavel_throughputs.json", **options})


def test_gavel_durations_come_from_the_speed_of_a_v100() -> None:
    trace = gavel()
    assert rows(trace, "job", "arrival", "gpus", "duration", "work", "model", "batch_size", "weight", "deadline") == [
        ("0", 0.0, 1, 3600.0, 72000.0, "ResNet-18", 64, 1.0, None),
        ("1", 30.5, 1, 1800.0, 9000.0, "A3C", None, 5.0, 30.5 + 1.2 * 1800.0),
        ("2", 61.25, 4, 4000.0, 400000.0, "LM", 20, 1.0, None),
    ]
    assert trace.frame["throughput_key"].to_list() == [
        "('ResNet-18 (batch size 64)', 1)",
        "('A3C', 1)",
        "('LM (batch size 20)', 4)",
    ]


def test_gavel_names_the_job_type_that_the_table_lacks(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"\('LM \(batch size 20\)', 4\) has speed 0") as caught:
        gavel(device="k80")
    assert caught.value.line == 3
    table = json.loads((FIXTURES / "gavel_throughputs.json").read_text())
    del table["v100"]["('A3C', 1)"]
    path = tmp_path / "table.json"
    path.write_text(json.dumps(table))
    with pytest.raises(TraceError, match=r"\('A3C', 1\) has no entry for 'v100'") as caught:
        gavel(throughputs=path)
    assert caught.value.line == 2
    with pytest.raises(UsageError, match=r"no worker type 'v10'.*did you mean 'v100'"):
        gavel(device="v10")
    path.write_text("[1, 2]")
    with pytest.raises(UsageError, match="not a throughput table"):
        gavel(throughputs=path)
    path.write_text("{")
    with pytest.raises(UsageError, match="not JSON"):
        gavel(throughputs=path)


def test_gavel_without_a_table_counts_steps() -> None:
    trace = import_trace("gavel", FIXTURES / "gavel.trace")
    assert trace.frame["duration"].to_list() == [72000.0, 9000.0, 400000.0]
    assert "1 step per second" in trace.notes[0]


def test_shockwave_and_old_gavel_traces_are_told_by_their_width() -> None:
    shockwave = import_trace("gavel", FIXTURES / "shockwave.trace")
    assert rows(shockwave, "arrival", "gpus", "duration", "mode") == [(0.0, 2, 2400.0, "accordion"), (7.0, 1, 1300.0, "gns")]
    old = import_trace("gavel", FIXTURES / "gavel_old.trace")
    assert rows(old, "arrival", "gpus", "work") == [(0.0, 1, 7000.0), (12.0, 4, 40000.0)]


def test_gavel_lines_with_missing_fields_are_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.trace"
    text = (FIXTURES / "gavel.trace").read_text()
    path.write_text(text[:-30])
    with pytest.raises(TraceError) as caught:
        import_trace("gavel", path)
    assert caught.value.line == 3
    path.write_text("one\ttwo\n")
    with pytest.raises(TraceError, match="2 tab-separated fields"):
        import_trace("gavel", path)


def test_tiresias_is_in_seconds() -> None:
    tiresias = import_trace("tiresias", FIXTURES / "tiresias.csv")
    assert rows(tiresias, "job", "arrival", "gpus", "duration", "model", "iterations") == [
        ("0", 0.0, 4, 250.0, "resnet50", 500.0),
        ("1", 40.0, 1, 135.0, "vgg16", 80.0),
        ("2", 52.0, 16, 990.0, "alexnet", 310.0),
    ]
    with pytest.raises(TraceError, match=r"milliseconds.*gantline trace import muri"):
        import_trace("tiresias", FIXTURES / "muri.csv")


def test_muri_is_in_milliseconds_and_keeps_the_stages_of_an_iteration() -> None:
    muri = import_trace("muri", FIXTURES / "muri.csv")
    stages = ("iteration_time", "stage_load", "stage_gpu", "stage_network", "opportunistic")
    assert rows(muri, "arrival", "duration", "batch_size", *stages) == [
        (0.0, 30.3, 8, 0.303, 0.0015, 0.25, 0.04, 0.0),
        (1.5, 42.8, 32, 0.214, 0.09, 0.07, 0.0005, 1.0),
    ]
    assert "milliseconds" in muri.notes[0]
    assert import_trace("muri", FIXTURES / "muri.csv", {"jobs": 1}).frame["job"].to_list() == ["0"]


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("0,8,0,100,bert,8,30300,1500,303,0,0,0,0", ":2: .*all stage times are zero"),
        ("0,8,0,100,bert,8,30300,1500,303,-1,5,5,0", ":2: .*a stage time is negative"),
        ("0,8,0,100,bert,8,30300,1500,0,1,5,5,0", ":2: .*iteration_time.*takes no time"),
    ],
)
def test_muri_traces_with_impossible_stages_are_refused(tmp_path: Path, row: str, what: str) -> None:
    head = (FIXTURES / "muri.csv").read_text().splitlines()[0]
    (tmp_path / "bad.csv").write_text(f"{head}\n{row}\n")

    with pytest.raises(TraceError, match=what):
        import_trace("muri", tmp_path / "bad.csv")


@pytest.mark.parametrize("jobs", [0, 3])
def test_more_rows_than_there_are_are_refused(jobs: int) -> None:
    with pytest.raises(TraceError, match=f"has 2 rows, and {jobs} were asked for"):
        import_trace("muri", FIXTURES / "muri.csv", {"jobs": jobs})


def test_pollux_gives_nominal_durations_and_says_so() -> None:
    trace = import_trace("pollux", FIXTURES / "pollux.csv")
    assert rows(trace, "job", "arrival", "gpus", "duration", "app", "batch_size") == [
        ("cifar10-0", 15.0, 4, 850.0, "cifar10", 512),
        ("imagenet-1", 20.5, 16, 33187.5, "imagenet", 3200),
        ("ncf-2", 90.0, 1, 32.0, "ncf", 256),
    ]
    assert "nominal" in trace.notes[0]
    slower = import_trace("pollux", FIXTURES / "pollux.csv", {"gpu_seconds": "cifar10=8000, ncf=64"})
    assert slower.frame["duration"].to_list() == [2000.0, 33187.5, 64.0]


def test_pollux_keeps_the_first_jobs_if_asked_and_reads_sias_categories(tmp_path: Path) -> None:
    assert import_trace("pollux", FIXTURES / "pollux.csv", {"first": 2}).frame["job"].to_list() == ["cifar10-0", "imagenet-1"]
    path = tmp_path / "kinds.csv"
    path.write_text(
        "name,time,application,num_replicas,batch_size,category\na,0,ncf,1,256,scale-gpus\nb,1,ncf,1,256,\nc,2,ncf,1,256,rigid\n"
    )
    assert import_trace("pollux", path).frame["kind"].to_list() == ["strong-scaling", "", "rigid"]
    path.write_text("name,time,application,num_replicas,batch_size,category\na,0,ncf,1,256,elastic\n")
    with pytest.raises(TraceError, match="'elastic' is no category"):
        import_trace("pollux", path)


def test_pollux_asks_for_the_run_time_of_an_unknown_application(tmp_path: Path) -> None:
    path = tmp_path / "sia.csv"
    path.write_text("name,time,application,num_replicas,batch_size,scaling\ngpt-0,0,gpt,8,48,hybrid\n")
    with pytest.raises(TraceError, match="gpu_seconds=gpt=3600") as caught:
        import_trace("pollux", path)
    assert (caught.value.line, caught.value.field) == (2, "application")
    trace = import_trace("pollux", path, {"gpu_seconds": "gpt=80000"})
    assert rows(trace, "duration", "scaling") == [(10000.0, "hybrid")]
    with pytest.raises(UsageError, match="NAME=SECONDS"):
        import_trace("pollux", path, {"gpu_seconds": "gpt"})


def test_blox_multiplies_iterations_by_their_time() -> None:
    trace = import_trace("blox", FIXTURES / "blox.csv")
    assert rows(trace, "job", "arrival", "gpus", "duration") == [
        ("0", 1800.0, 1, 1000.5),
        ("1", 2500.0, 4, 200.0),
        ("2", 2500.0, 2, 777.7),
    ]
    assert trace.notes == ()


def test_irfsim_jobs_have_a_gpu_form_and_a_cpu_form() -> None:
    trace = import_trace("irfsim", FIXTURES / "irfsim.txt", {"gpu_type": "k80"})
    assert rows(trace, "job", "arrival", "gpus", "duration", "user", "memory", "cpu_err", "gpu_err") == [
        ("0", 0.0, 1, 250.0, "queue0", 3.0, 0.0, 0.0),
        ("1", 12.5, 2, 70.5, "queue1", 5.0, -0.25, 0.05),
    ]
    assert parse_options(trace.frame["options"][1]) == (
        WrittenOption("k80", 2, 70.5, memory=5.0),
        WrittenOption("cpu", 0, 901.0, cpus=16.0, memory=6.5),
    )


def test_irfsim_as_a_table_is_the_same(tmp_path: Path) -> None:
    blocks = import_trace("irfsim", FIXTURES / "irfsim.txt")
    table = pl.DataFrame(
        {
            "job_id": [0, 1], "user": ["queue0", "queue1"], "arrival_s": [0, 12.5], "cpus": [16.0, 16.0],
            "mem_gb": [8, 6.5], "cpu_time_s": [400, 901], "gpus": [1, 2], "gpu_job_mem_gb": [3, 5],
            "gpu_time_s": [250, 70.5], "cpu_err": [0, -0.25], "gpu_err": [0, 0.05],
        },
        strict=False,
    )  # fmt: skip
    table.write_csv(tmp_path / "jobs.csv")
    assert import_trace("irfsim", tmp_path / "jobs.csv") == blocks


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("# 0\n1 0 1 0 q\nstage -1 16 8 400 1 3 250 1\n", 3, "ends within a job"),
        ("# 0\n1 0 1 q\nstage -1 16 8 400 1 3 250 1\n0\n", 2, "stages id iterations"),
        ("# 0\n2 0 1 0 q\nstage -1 16 8 400 1 3 250 1\n1\n", 4, "several stages"),
        ("# 0\n1 0 1 0 q\nstage -1 16 8 400 1\n0\n", 3, "9 or 11 fields"),
        ("# 0\n1 0 1 0 q\nstage -1 16 8 400 1 3 fast 1\n0\n", 3, "'fast' is not a number"),
        ("# 0\n1 0 1 0 q\nstage -1 16 8 400 1 3 250 1\n0\nnoise\n", 5, "expected '# id'"),
    ],
)
def test_irfsim_blocks_that_are_broken_are_named(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(text)
    with pytest.raises(TraceError, match=said) as caught:
        import_trace("irfsim", path)
    assert caught.value.line == line


def test_contradictions_in_a_workload_point_at_their_line(tmp_path: Path) -> None:
    path = tmp_path / "blox.csv"
    path.write_text("job_index,arrival_s,total_iterations,iteration_time_s,num_gpus\n\n0,9,5,1,1\n1,3,5,-1,1\n")
    with pytest.raises(TraceError, match="duration -5 is not positive") as caught:
        import_trace("blox", path)
    assert caught.value.line == 4


# The published workloads, where they lie beside the checkout: row counts and statistics that their authors state.

REFERENCE = Path(__file__).parents[3] / "shared" / "reference"
pytestmark = pytest.mark.skipif(not REFERENCE.is_dir(), reason=f"the published workloads are not at {REFERENCE}")


def read(name: str, path: str, **options: object) -> Trace:
    return import_trace(name, REFERENCE / path, options)


def test_the_philly_list_has_82247_jobs_and_mostly_single_gpus() -> None:
    frame = read("philly-list", "pollux/philly_jobs.csv.gz").frame
    sizes = dict(frame["gpus"].value_counts().iter_rows())
    assert len(frame) == 82247
    assert (sizes[1], sizes[2], sizes[4], sizes[8], sizes[16]) == (76627, 1818, 1870, 1643, 199)
    assert frame["gpus"].max() == 128
    assert frame["arrival"][0] == 0.0
    assert frame["queue"].n_unique() == 15


@pytest.mark.parametrize(
    ("name", "jobs", "sizes"),
    [
        ("static_single_60", 60, {1: 60}),
        ("static_multi_60", 60, {1: 45, 2: 4, 4: 11}),
        ("big_single_1000_lam900", 1000, {1: 1000}),
        ("official_max_min_fairness", 96, None),
        ("official_minimize_makespan", 100, None),
    ],
)
def test_gavel_traces(name: str, jobs: int, sizes: dict[int, int] | None) -> None:
    table = "physical_cluster" if name.startswith("official") else "simulation"
    throughputs = REFERENCE / f"gavel/throughputs/{table}_throughputs.json"
    frame = read("gavel", f"gavel/traces/{name}.trace", throughputs=throughputs).frame
    assert len(frame) == jobs
    if sizes:
        assert dict(frame["gpus"].value_counts().iter_rows()) == sizes
    if name.startswith("static"):
        # The generator draws 1, 2, 3 or 4 hours on a V100 and truncates to whole steps.
        hours = frame["duration"] / 3600
        assert ((hours - hours.round()).abs() < 2e-3).all()
        assert hours.round().is_between(1, 4).all()


def test_shockwave_traces_carry_their_durations_and_modes() -> None:
    paths = sorted((REFERENCE / "shockwave/traces").glob("120_*.trace"))
    frame = import_trace("gavel", paths[0]).frame
    assert dict(frame["mode"].value_counts().iter_rows()) == {"gns": 57, "accordion": 59, "static": 4}
    assert dict(frame["gpus"].value_counts().iter_rows()) == {1: 92, 2: 20, 4: 8}


def test_tiresias_trace_of_60_jobs() -> None:
    frame = read("tiresias", "tiresias/60_job.csv").frame
    assert dict(frame["gpus"].value_counts().iter_rows()) == {1: 30, 2: 10, 4: 10, 8: 10}
    assert (frame["duration"].min(), frame["duration"].max(), frame["arrival"].max()) == (121.0, 1800.0, 1779.0)
    assert (frame["gpus"] * frame["duration"]).sum() / 3600 == pytest.approx(7.4, abs=0.05)


@pytest.mark.parametrize(("name", "jobs"), [("trace1", 1494), ("trace2", 5755), ("trace3", 992), ("trace4", 2638), ("cluster_trace", 400)])
def test_muri_traces_in_seconds(name: str, jobs: int) -> None:
    raw = pl.read_csv(REFERENCE / f"muri/{name}.csv")
    frame = read("muri", f"muri/{name}.csv").frame
    assert len(frame) == jobs
    assert frame["duration"].sum() == pytest.approx(raw["duration"].sum() / 1000)


@pytest.mark.parametrize(
    ("folder", "jobs"), [("workloads", 160), ("workloads-0.5", 80), ("workloads-2.0", 320), ("workloads-realistic", 160)]
)
def test_pollux_workloads(folder: str, jobs: int) -> None:
    for number in range(1, 9):
        assert len(read("pollux", f"pollux/{folder}/workload-{number}.csv")) == jobs


def test_sia_workloads() -> None:
    mix = read("pollux", "sia/workloads/philly/workload-1.csv").frame["app"].value_counts()
    assert dict(mix.iter_rows()) == {"cifar10": 134, "deepspeech2": 12, "bert": 7, "yolov3": 3, "imagenet": 4}
    assert len(read("pollux", "sia/workloads/physical_phoebe_30jobs.csv")) == 30


def test_blox_workloads() -> None:
    frame = read("blox", "blox/workloads/S_load4_small_multigpu.csv").frame
    assert frame["gpus"].mean() == pytest.approx(2.25, abs=0.1)
    assert sorted(frame["gpus"].unique()) == [1, 2, 4, 8]
    single = read("blox", "blox/workloads/L2_load42_small_1gpu.csv").frame
    assert single["duration"].mean() == pytest.approx(3 * 3600, rel=0.1)


def test_irfsim_workloads() -> None:
    frame = read("irfsim", "voda-allox/trace_google_m1_10000.csv").frame
    assert len(frame) == 10000
    assert frame["user"].n_unique() == 10
    assert frame["duration"].median() == 40
    on_cpu = pl.Series([parse_options(text)[1].duration for text in frame["options"]])
    assert (on_cpu.median(), on_cpu.max()) == (214, 398)
    assert (on_cpu < frame["duration"]).mean() == pytest.approx(0.056, abs=0.001)
    assert len(read("irfsim", "voda-allox/trace_experiment_40.csv")) == 40


def test_lucid_log() -> None:
    assert len(read("helios", "lucid/synthetic_912_full_log.csv")) == 913
