"""Experiment files: anybody can run them again, and a typo is shown with its line, its field and a suggestion."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantline.core.errors import GantlineError, NotFoundError, RefusedError
from gantline.lab.experiment.experiment import read_experiment, write_experiment

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
