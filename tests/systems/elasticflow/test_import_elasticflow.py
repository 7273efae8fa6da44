"""ElasticFlow's traces and tables, raw and generated."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantline.core.errors import GantlineError
from gantline.traces.importers import import_trace
from gantline.traces.options import parse_options
from gantline.traces.trace import Trace

TABLE = "model,global_batch,g1,g2,g4,g8\nnet,4,2.0,3.5,5.0,\nnet,8,1.0,1.5,nan,0\nbig,8,1.0,2.0,4.0,3.0\n"
RAW = "job_id,submission_time,duration,num_gpu\na,100,700,2\nb,50,1000,1\nshort,60,599,1\nodd,60,900,3\nwide,70,900,128\n"
MADE = (
    "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration,best_effort\n"
    "x,10,2000,net,900,4,2,600,0\ny,5,100,big,50,8,8,40,1\n"
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name, text in (("Gpu9.csv", TABLE), ("raw.csv", RAW), ("made.csv", MADE)):
        (tmp_path / name).write_text(text)
    return tmp_path


def read(home: Path, name: str, **options: object) -> Trace:
    return import_trace("elasticflow", home / name, {"throughputs": home / "Gpu9.csv", **options})


def test_a_generated_trace_keeps_names_iterations_and_deadlines(home: Path) -> None:
    trace = read(home, "made.csv")
    columns = ("job", "arrival", "gpus", "duration", "work", "model", "batch_size", "deadline", "min_gpus", "max_gpus", "scale_limit")
    assert trace.frame.select(columns).rows() == [
        ("y", 5.0, 8, 40.0, 100.0, "big", 8, None, 1, 8, 4),  # fastest on 4
        ("x", 10.0, 2, 600.0, 2000.0, "net", 4, 900.0, 1, 4, 4),
    ]
    assert [(one.type, one.gpus, one.duration) for one in parse_options(trace.frame["options"][1])] == [
        ("gpu9", 1, 1000.0),
        ("gpu9", 2, 2000.0 / 3.5),
        ("gpu9", 4, 400.0),
    ]
    assert trace.frame["throughputs"][1] == "1=2.0|2=3.5|4=5.0"


def test_raw_jobs_are_given_what_the_generator_draws(home: Path) -> None:
    trace = read(home, "raw.csv", seed=3)
    assert sorted(trace.frame["job"].to_list()) == ["a", "b"]
    assert any("shorter than ten minutes" in note for note in trace.notes)
    assert any("power of two" in note for note in trace.notes)
    for job in trace.frame.iter_rows(named=True):
        speeds = {int(size): float(speed) for size, _, speed in (part.partition("=") for part in job["throughputs"].split("|"))}
        assert job["work"] == int(job["duration"] * speeds[job["gpus"]])
        assert 0.5 * job["duration"] - 1 <= job["deadline"] - job["arrival"] <= 1.5 * job["duration"]
    assert read(home, "raw.csv", seed=3) == trace
    fixed = read(home, "raw.csv", slack="1.5:1.5")
    assert fixed.frame["deadline"].to_list() == [50 + 1500, 100 + 1050]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("made.csv", MADE.replace("net,900,4", "net,900,5"), "no speed of 'net' at batch size 5"),
        ("made.csv", MADE.replace("iteration,", "steps,"), "column 'num_iteration' is missing"),
        ("raw.csv", RAW.replace("duration", "length"), "column 'duration' is missing"),
        ("Gpu9.csv", "model,global_batch,g3\nnet,4,1\n", "g1, g2, g4"),
    ],
)
def test_a_mistake_is_named(home: Path, name: str, text: str, told: str) -> None:
    (home / name).write_text(text)
    with pytest.raises(GantlineError, match=told):
        read(home, "raw.csv" if name == "raw.csv" else "made.csv")


def test_without_a_table_it_says_so(home: Path) -> None:
    with pytest.raises(GantlineError, match="needs a table of speeds"):
        import_trace("elasticflow", home / "made.csv")
    with pytest.raises(GantlineError, match="slack is 'x'"):
        read(home, "raw.csv", slack="x")


def test_only_the_first_jobs_or_only_the_sizes_they_ask_for(home: Path) -> None:
    assert read(home, "made.csv", first=1).frame["job"].to_list() == ["y"]
    rigid = read(home, "made.csv", rigid=True).frame
    assert rigid["throughputs"].to_list() == ["8=3.0", "2=3.5"]
    assert rigid.select("min_gpus", "max_gpus").rows() == [(8, 8), (2, 2)]
    with pytest.raises(GantlineError, match="first is -1"):
        read(home, "made.csv", first=-1)
