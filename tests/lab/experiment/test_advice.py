"""Advice: which policy, whether a larger cluster helps, and what really happened as one more row."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from gantline import Trace, advise, compare, simulate
from gantline.cli.main import main
from gantline.core.cluster_spec import grown, parse_cluster
from gantline.core.errors import UsageError
from gantline.lab.experiment.history import history_of
from gantline.lab.report.metrics import measure
from gantline.traces.files.clusters import grown_cluster


def log(folder: Path, wait: int = 0) -> Path:
    """Jobs that fill a 1x4 cluster one after the other, as a log with real starts."""
    rows = [f"j{i},{10 * i},4,100,{max(10 * i, 100 * i) + wait}" for i in range(12)]
    (folder / "log.csv").write_text("job,arrival,gpus,duration,started\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return folder / "log.csv"


def test_a_grown_cluster_has_more_nodes_of_every_group() -> None:
    assert grown("16x8", 0.1) == "18x8"
    assert grown("v100:10x8@r1,k80:20", 0.1) == "v100:11x8@r1,k80:22"


def test_a_cluster_file_grows_too_unless_it_is_wired(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(
        "nodes:\n  - {count: 6, type: v100, gpus: 4, cpus: 32, rack: r1}\n  - {count: 2, type: a100, gpus: 8}\n", encoding="utf-8"
    )
    assert grown_cluster(str(file), 0.1) == "v100:7x4/32c@r1,a100:3x8"
    file.write_text("nodes:\n  - {name: a, gpus: 4}\nlinks:\n  - {a: 'a:0', b: 'a:1', bandwidth: 50}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="wired"):
        grown_cluster(str(file), 0.1)


def test_a_grown_cluster_file_goes_by_the_name_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    log(tmp_path, wait=5)
    (tmp_path / "racks.yaml").write_text("nodes:\n  - {count: 2, type: v100, gpus: 4, cpus: 32, rack: r1}\n", encoding="utf-8")
    words = "advise log.csv --cluster racks.yaml --policy fifo,srtf --grow 50% --prices v100=2 --workers 1 --page a.html -o json"
    assert main(words.split()) == 0
    told = json.loads(capsys.readouterr().out)
    assert {row["cluster"] for row in told["means"]} == {"racks.yaml", "racks.yaml +50 %"}
    assert any(sentence.startswith("racks.yaml +50 % (+50 % GPUs) in place of racks.yaml") for sentence in told["advice"])
    assert told["advice"][-1] == "racks.yaml +50 % costs 17,520 a month, +5,840 against racks.yaml."
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "racks.yaml +50 %" in page
    assert "v100:3x4" not in page


def test_what_happened_is_no_policy_to_advise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The log's own mean is best; the answer names a policy all the same, what a larger cluster does for it, and what it knew."""
    monkeypatch.chdir(tmp_path)
    rows = ["a,0,4,1000,21", "b,1,4,10,1", "c,2,4,10,11"]
    (tmp_path / "log.csv").write_text("job,arrival,gpus,duration,started\n" + "\n".join(rows) + "\n", encoding="utf-8")
    assert (
        main(
            [
                "advise",
                "log.csv",
                "--cluster",
                "1x4",
                "--policy",
                "fifo,srtf",
                "--costs",
                "resume=100",
                "--workers",
                "1",
                "--page",
                "a.html",
            ]
        )
        == 0
    )
    told = capsys.readouterr().out
    assert "Lowest mean JCT on 1x4: srtf" in told
    assert "As it happened, mean JCT was 5.8 min (+9 % under srtf)" in told
    assert "2x4 (+100 % GPUs) in place of 1x4" in told
    assert "srtf knew how long each job really takes" in told
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.index("Lowest mean JCT") < page.index("Clusters side by side") < page.index("as it happened")


def test_a_log_that_cannot_have_happened_here_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("job,arrival,gpus,duration,started\na,0,4,100,0\nb,0,4,100,50\n", encoding="utf-8")
    assert main(["advise", "log.csv", "--cluster", "1x4", "--policy", "fifo", "--workers", "1"]) == 0
    told = capsys.readouterr()
    assert "What happened is left out: jobs held 8 GPUs at second 50, and the cluster has 4" in told.out
    assert "as it happened" not in told.out.lower()
    assert main(["compare", "log.csv", "--cluster", "1x4", "--policy", "fifo,srtf", "--workers", "1"]) == 0
    assert "warning: What happened is left out: jobs held 8 GPUs" in capsys.readouterr().err
    assert main(["trace", "check", "log.csv", "--cluster", "1x4"]) == 1
    assert "log.csv\t3\tstarted\tjobs held 8 GPUs" in capsys.readouterr().out
    assert main(["trace", "check", "log.csv", "--cluster", "2x4"]) == 0


def test_what_happened_counts_the_jobs_that_the_runs_count(tmp_path: Path) -> None:
    """Each job waits five seconds longer than under FIFO, so that means over the same jobs differ by five seconds."""
    path = log(tmp_path, wait=5)
    for options in ({"track": (6, 9)}, {"warmup": 50.0}, {"warmup": "auto"}):
        means = advise(path, "1x4", "fifo", **options).means.filter(pl.col("cluster") == "1x4")
        ours, theirs = means["jct_mean"]
        assert theirs == pytest.approx(ours + 5), options
    assert "as it happened" in compare(path, "1x4", "fifo,srtf").frame["policy"]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ("--grow -5%", 2, "--grow: '-5%' is not a share"),
        ("--also 1x4", 2, "--also: '1x4' is the cluster itself (name another one)"),
        ("--page .", 2, "--page: '.' is a folder (name an .html file in it)"),
        ("--page a.txt", 2, "--page: 'a.txt' is not the name of a page (end it in .html)"),
        ("--against las", 3, "against: no policy 'las' among those compared (known: fifo, srtf)"),
    ],
)
def test_a_mistake_is_told_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str, code: int, said: str
) -> None:
    words = ["advise", str(log(tmp_path)), "--cluster", "1x4", "--policy", "fifo,srtf", "--out", str(tmp_path / "runs")]
    assert main([*words, *options.split()]) == code
    assert said in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("clusters", "said"),
    [
        ("1x4 --also 2x4 --also 1x2", "job 'b' asks for 9 GPUs and can never run on '1x4' with 4 of a kind, nor on '2x4', '1x2' ("),
        ("4x4 --also 1x4", "log.csv:3: field 'gpus': job 'b' asks for 9 GPUs and can never run on '1x4' with 4 of a kind ("),
        ("1x4 --also 1x1", "on '1x4' with 4 of a kind; job 'a' asks for 2 GPUs and can never run on '1x1' with 1 of a kind (2 such jobs)"),
    ],
)  # fmt: skip
def test_a_job_that_clusters_cannot_hold_is_told_once_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], clusters: str, said: str
) -> None:
    (tmp_path / "log.csv").write_text("job,arrival,gpus,duration\na,0,2,10\nb,0,9,10\n", encoding="utf-8")
    words = ["advise", str(tmp_path / "log.csv"), "--policy", "fifo,srtf", "--grow", "0", "--out", str(tmp_path / "runs"), "--cluster"]
    assert main([*words, *clusters.split()]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("job 'b' asks for 9 GPUs") == 1
    assert not (tmp_path / "runs").exists()
    with pytest.raises(UsageError, match="job 'b' asks for 9 GPUs"):
        advise(tmp_path / "log.csv", "1x4", "fifo,srtf")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--metric jct_mean --metric jct_mean", "metrics: 'jct_mean' is named twice"),
        ("--metric nope", "metrics: no metric 'nope' to compare by"),
        ("--confidence nan", "confidence nan is not between 0 and 1"),
        ("--against las", "no policy 'las' among those compared"),
    ],
)
def test_what_cannot_be_compared_is_told_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str, said: str
) -> None:
    words = ["compare", str(log(tmp_path)), "--cluster", "1x4", "--policy", "fifo,srtf", "--out", str(tmp_path / "runs")]
    assert main([*words, *options.split()]) in (2, 3)
    assert said in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_comparison_says_who_knew_true_durations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(tmp_path)
    said = "srtf knew how long each job really takes; with --estimates history"
    for estimates, told in (("oracle", True), ("history", False)):
        words = ["compare", str(path), "--cluster", "1x4", "--policy", "fifo,srtf", "--workers", "1", "--estimates", estimates]
        assert main(words) == 0
        assert (f"note: {said}" in capsys.readouterr().err) is told
        remarks = compare(path, "1x4", "fifo,srtf", estimates=estimates).remarks
        assert any(remark.startswith(said) for remark in remarks) is told


def test_time_limits_are_estimates(tmp_path: Path) -> None:
    """The short job has the longer limit, so it goes second under SRTF."""
    jobs = [
        {"job": "first", "arrival": 0, "gpus": 1, "duration": 50, "time_limit": 60},
        {"job": "short", "arrival": 1, "gpus": 1, "duration": 10, "time_limit": 900},
        {"job": "long", "arrival": 2, "gpus": 1, "duration": 100, "time_limit": 300},
    ]
    run = simulate(jobs, "1x1", "srtf", estimates="limit")
    assert run.jobs.sort("first_start")["job"].to_list() == ["first", "long", "short"]
    with pytest.raises(UsageError, match="no job of the trace has a time limit"):
        simulate([{"job": "a", "arrival": 0, "gpus": 1, "duration": 5}], "1x1", "srtf", estimates="limit")


def test_what_really_happened_is_measured_like_a_run(tmp_path: Path) -> None:
    found = history_of(Trace.load(log(tmp_path, wait=5)), parse_cluster("1x4"))
    numbers = measure(found)
    assert numbers["jct_mean"] == pytest.approx(sum(100 * i + 105 - 10 * i for i in range(12)) / 12)
    assert numbers["makespan"] == 1205.0
    assert numbers["utilization"] == pytest.approx(1200 / 1205, abs=1e-3)
    assert history_of(Trace.from_records([{"job": "a", "arrival": 0, "gpus": 1, "duration": 5}]), parse_cluster("1x4")) is None


def test_advice_names_policy_cluster_and_money(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    log(tmp_path, wait=5)
    assert main(["advise", "log.csv", "--cluster", "1x4", "--policy", "fifo", "--prices", "gpu=2", "--workers", "1", "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    rows = {(row["policy"], row["cluster"]): row["jct_mean"] for row in told["means"]}
    assert set(rows) == {("fifo", "1x4"), ("fifo", "2x4"), ("as it happened", "1x4")}
    assert rows["as it happened", "1x4"] == pytest.approx(rows["fifo", "1x4"] + 5)
    assert any(sentence.startswith("Under fifo: 2x4 against 1x4 in one run: mean JCT -") for sentence in told["advice"])
    words = "2x4 (+100 % GPUs) in place of 1x4 in one run, which decides nothing: mean JCT -"
    assert any(sentence.startswith(words) for sentence in told["advice"])
    assert told["advice"][-1] == "2x4 costs 11,680 a month, +5,840 against 1x4."
    assert main(["compare", "log.csv", "--cluster", "1x4", "--policy", "fifo,srtf", "--workers", "1", "--out", "c"]) == 0
    assert "as it happened" in pl.read_parquet("c/differences.parquet")["policy"].to_list()
