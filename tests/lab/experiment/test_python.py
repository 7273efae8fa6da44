"""Comparisons and sweeps from Python: the words, the defaults and the numbers of the command line."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import gantline
from gantline.core.errors import GantlineError, NotFoundError, RefusedError, UsageError
from gantline.lab.experiment.experiment import read_experiment, write_experiment
from gantline.lab.experiment.grid import PolicyChoice
from gantline.lab.experiment.setting import MANY
from gantline.lab.experiment.sweep import read_sweep

DAY = {"generate": "day", "settings": {"jobs": 40, "gpus": 16}}


def test_jobs_may_come_as_values_and_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    jobs = [{"job": str(i), "arrival": 10 * i, "gpus": 1 + i % 3, "duration": 100 + 50 * (i % 5)} for i in range(20)]
    found = gantline.compare(jobs, "1x4", ["fifo", ("las", {"service": "gpu-time"})])
    assert found.frame["policy"].unique().to_list() == ["las service=gpu-time"]
    assert list(tmp_path.iterdir())
    del found
    assert not list(tmp_path.iterdir())


def test_options_are_told_and_mistakes_are_named() -> None:
    assert set(inspect.signature(gantline.compare).parameters) >= set(MANY)
    assert "`round`: Decide every so often" in (gantline.sweep.__doc__ or "")
    with pytest.raises(UsageError, match="round: 'soon' is not a time"):
        gantline.compare(DAY, "4x4", "fifo,srtf", round="soon")
    with pytest.raises(UsageError, match=r"no option 'load' \(did you mean 'loads'"):
        gantline.sweep(DAY, "4x4", "fifo", load=[0.5])
    with pytest.raises(UsageError, match="seeds: '3' is neither"):
        gantline.sweep(DAY, "4x4", "fifo", seeds="3")  # type: ignore[arg-type]
    found = gantline.sweep(DAY, "4x4", "fifo", loads=0.5, vary={"round": "1m,5m", "min_run": 60})
    assert found.results.select("load", "round", "min_run").rows() == [(0.5, "1m", 60), (0.5, "5m", 60)]
    assert repr(found).startswith("<Sweep of 2 runs in '")
    with pytest.raises(UsageError, match="trace: 5 is no trace"):
        gantline.compare(5, "4x4", "fifo,srtf")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="policies: 3 is no policy"):
        gantline.compare(DAY, "4x4", [3])  # type: ignore[list-item]


@dataclass(frozen=True)
class Ageing(gantline.OrderPolicy):
    """Small gangs first, but waiting forgives a GPU."""

    forgives: float = 3600.0

    def key(self, snapshot: gantline.Snapshot) -> Any:
        return snapshot.jobs.gpus - snapshot.jobs.waiting / self.forgives


def test_policies_of_ones_own_are_compared_in_this_process(tmp_path: Path) -> None:
    own = [Ageing, Ageing(60.0), ("fifo", {}), (Ageing, {"forgives": 10.0})]
    found = gantline.compare(DAY, "4x4", own, against="fifo", seeds=1, round="1m", folder=tmp_path / "c")
    results = found.runs.results
    assert results["policy"].to_list() == ["Ageing", "Ageing forgives=60.0", "fifo", "Ageing forgives=10.0"]
    alone = [
        gantline.simulate(gantline.Trace.generate("day", 0, jobs=40, gpus=16), "4x4", Ageing(age), round="1m") for age in (3600.0, 60.0)
    ]
    assert results["log_hash"].to_list()[:2] == [run.summary["log_hash"] for run in alone]
    assert "Ageing forgives=60.0 " in str(found)
    again = gantline.compare(DAY, "4x4", own, against="fifo", seeds=1, round="1m", folder=tmp_path / "c")
    assert again.runs.reused == 1, "what an object does may have changed; what fifo does has not"
    assert read_sweep(tmp_path / "c").results.drop("wall_seconds").equals(again.runs.results.drop("wall_seconds"))


def test_a_sweep_varies_the_class_of_a_policy_and_keeps_its_objects_at_home() -> None:
    found = gantline.sweep(DAY, "4x4", [Ageing, "fifo"], vary={"Ageing.forgives": [60.0, 600.0]})
    assert found.results["policy"].to_list() == ["Ageing forgives=60.0", "Ageing forgives=600.0", "fifo"]
    with pytest.raises(UsageError, match=r"workers: 'Ageing' is an object of this process.*FILE\.py:CLASS"):
        gantline.sweep(DAY, "4x4", Ageing, workers=2)
    with pytest.raises(UsageError, match="has them already"):
        gantline.sweep(DAY, "4x4", Ageing(), vary={"Ageing.forgives": [60.0]})
    with pytest.raises(UsageError, match="names Ageing twice"):
        gantline.compare(DAY, "4x4", [Ageing(), Ageing])


def test_a_policy_of_ones_own_is_not_taken_for_the_one_whose_name_it_has(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Srtf(gantline.OrderPolicy):
        name = "srtf"

        def key(self, snapshot: Any) -> Any:
            return -snapshot.jobs.remaining

    own = gantline.sweep(DAY, "4x4", Srtf(), folder=tmp_path / "s").results["jct_mean"]
    published = gantline.sweep(DAY, "4x4", "srtf", folder=tmp_path / "s")
    assert published.reused == 0
    assert published.results["jct_mean"].item() < own.item()


def test_a_file_that_was_changed_has_the_new_name(tmp_path: Path) -> None:
    titles = []
    for name in ("Old", "New"):
        (tmp_path / "mine.py").write_text(f"from gantline import OrderPolicy\nclass {name}(OrderPolicy):\n    pass\n")
        titles.append(PolicyChoice(str(tmp_path / "mine.py")).title)
    assert titles == ["Old", "New"]


def test_what_fails_is_said_where_it_is_read() -> None:
    jobs = [{"job": str(i), "arrival": 10 * i, "gpus": 1 + i % 3, "duration": 100.0} for i in range(20)]
    with pytest.raises(
        GantlineError, match=r"asks for 'a100', which the cluster does not have \(say what its nodes have: a100:1x4\)"
    ) as alike:
        gantline.compare([*jobs, {**jobs[0], "job": "a", "arrival": 999, "type": "a100"}], "1x4", "fifo,srtf")
    assert alike.value.exit_code == 1
    cell: dict[str, Any] = {"gantline": gantline}
    lines = "\nclass Mine(gantline.OrderPolicy):\n    def key(self, snapshot):\n        more = 1\n        return snapshot.nothing\n"
    exec(compile(lines, "cell-7", "exec"), cell)
    broken = gantline.compare(jobs, "1x4", ["fifo", cell["Mine"]], metrics="jct_mean")
    assert "Mine and fifo cannot be compared, because of doubts: Mine: 20 of 20 decisions were lost" in str(broken)
    assert "(cell-7:5)" in broken.remarks[0]
    found = gantline.compare(jobs, "1x4", "fifo,las,srtf", estimates="none")
    assert "\nsrtf seed=0 failed: --estimates: policy 'srtf' needs remaining" in str(found)
    assert "preemptions of 20 jobs cost nothing" in found.remarks[0]
    for shown in (found._repr_html_(), found.runs._repr_html_()):
        assert "srtf seed=0 failed" in shown
        assert "cost nothing" in shown


# Experiment files: anybody can run them again, and a typo is shown with its line, its field and a suggestion.

GOOD = """\
version: 1
title: Does LAS need GPU time?
trace:
  generate: day
  settings: {jobs: 60, gpus: 16}
cluster: 4x4
policies:
  - fifo
  - policy: las
    settings: {service: gpu-time}
    name: las-gpu
loads: [0.5, 0.9]
seeds: 2
vary:
  placement: [first-free, consolidated]
round: 5m
compare:
  against: fifo
  metrics: [jct_mean, utilization]
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "las.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_file_becomes_a_grid(tmp_path: Path) -> None:
    experiment = read_experiment(written(tmp_path, GOOD))
    cases = experiment.grid.cases()
    assert len(cases) == 2 * 2 * 2 * 2
    assert {case.policy for case in cases} == {"fifo", "las-gpu"}
    assert cases[0].setting.round == 300.0
    assert experiment.metrics == ("jct_mean", "utilization")
    assert experiment.title == "Does LAS need GPU time?"


def test_what_is_written_reads_the_same(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("job,arrival,gpus,duration\na,0,1,100\n", encoding="utf-8")
    (tmp_path / "there").mkdir()
    text = GOOD.replace("  generate: day\n  settings: {jobs: 60, gpus: 16}\n", "  file: jobs.csv\n")
    experiment = read_experiment(written(tmp_path, text))
    again = read_experiment(write_experiment(experiment, tmp_path / "there" / "experiment.yaml"))
    assert [case.hash for case in again.grid.cases()] == [case.hash for case in experiment.grid.cases()]
    assert [case.name for case in again.grid.cases()] == [case.name for case in experiment.grid.cases()]
    assert (again.title, again.against, again.metrics) == (experiment.title, experiment.against, experiment.metrics)


def test_paths_are_seen_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "jobs.csv").write_text("job,arrival,gpus,duration\na,0,1,100\n", encoding="utf-8")
    (tmp_path / "deep" / "place.yaml").write_text("nodes: [{count: 2, gpus: 4}]\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path / "deep", "version: 1\ntrace: jobs.csv\ncluster: place.yaml\npolicies: [fifo]\n")
    (case,) = read_experiment(file).grid.cases()
    assert set(case.setting.files) == {"trace", "cluster"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cluster:", "clutser:", r"las\.yaml:6: field 'clutser': there is no such field \(did you mean 'cluster'"),
        ("generate: day", "generate: dya", r"las\.yaml:4: field 'trace\.generate': no generator 'dya' \(did you mean 'day'"),
        ("settings: {jobs", "setings: {jobs", r"las\.yaml:5: field 'trace\.setings': unknown key 'setings' \(did you mean 'settings'\?\)"),
        ("{jobs: 60", "{jbos: 60", r"las\.yaml:5: field 'trace\.settings\.jbos': there is no such setting \(did you mean 'jobs'\?\)"),
        ("- fifo", "- fifoo", r"las\.yaml:8: field 'policies\.0': .*no policy 'fifoo' \(did you mean 'fifo'"),
        (
            "{service:",
            "{srvice:",
            r"las\.yaml:10: field 'policies\.1\.settings\.srvice': no parameter 'srvice' \(did you mean 'service'",
        ),
        ("name: las-gpu", "nmae: las-gpu", r"las\.yaml:11: field 'policies\.1\.nmae': there is no such field \(did you mean 'name'"),
        ("[0.5, 0.9]", "[0.5, high]", r"las\.yaml:12: field 'loads': 'high' is not a number"),
        ("seeds: 2", "seeds: 0", r"las\.yaml:13: field 'seeds': 0 is not a number of seeds"),
        ("placement: [", "plaecment: [", r"las\.yaml:15: field 'vary\.plaecment': nothing called 'plaecment' can be varied \(did you mean"),
        ("placement: [first-free, consolidated]", "placement: random", r"las\.yaml:15: field 'vary\.placement': 'random' is not a list"),
        ("first-free,", "first-fee,", r"no placement 'first-fee' \(did you mean 'first-free'"),
        ("round: 5m", "round: soon", r"las\.yaml:16: field 'round': 'soon' is not a time"),
        ("against: fifo", "aganst: fifo", r"las\.yaml:18: field 'compare\.aganst': there is no such field \(did you mean 'against'"),
        ("cluster: 4x4", "cluster: 4y4", r"las\.yaml:6: field 'cluster': .*'4y4' is not a group of nodes"),
        ("cluster: 4x4", "title: again", r"las\.yaml:6: the key 'title' is given twice"),
        ("cluster: 4x4\n", "", r"las\.yaml: lacks 'cluster'"),
        ("seeds: 2", "seeds: [1, 2", r"las\.yaml:\d+: broken YAML"),
        ("version: 1", "version: one", r"las\.yaml:1: field 'version': 'one' is not a version"),
    ],
)
def test_a_typo_is_shown_with_line_field_and_suggestion(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert GOOD.count(old) >= 1
    with pytest.raises(GantlineError, match=message):
        read_experiment(written(tmp_path, GOOD.replace(old, new, 1)))


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"las\.yaml:1: field 'version': version 7 is newer than this program, which reads 1"):
        read_experiment(written(tmp_path, GOOD.replace("version: 1", "version: 7")))


def test_files_that_are_no_experiment_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such file"):
        read_experiment(tmp_path / "nothing.yaml")
    for text in ("", "- 1\n", "just words\n"):
        with pytest.raises(GantlineError, match="is not a mapping"):
            read_experiment(written(tmp_path, text))
    (tmp_path / "las.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(GantlineError, match="cannot be read"):
        read_experiment(tmp_path / "las.yaml")


def test_no_code_hides_in_a_file(tmp_path: Path) -> None:
    with pytest.raises(GantlineError, match="broken YAML: could not determine a constructor"):
        read_experiment(written(tmp_path, "version: !!python/object/apply:os.system ['true']\n"))
