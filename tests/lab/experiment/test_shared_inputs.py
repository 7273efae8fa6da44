"""A run is made where nothing of the sweep's folder is: its files are sent there, and its result is sent back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gantline.lab.experiment.records import DONE, read_record
from gantline.lab.experiment.running.shared_inputs import files_of, pack, perform_here, take_in
from gantline.lab.experiment.running.tasks import Task, perform
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    (tmp_path / "far").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "far"))
    (tmp_path / "jobs.csv").write_text("job,arrival,gpus,duration\na,0,1,10\nb,1,2,5\nc,2,4,3\n")
    (tmp_path / "cluster.yaml").write_text("nodes:\n- {name: n, gpus: 4}\n")
    return Setting(TraceSource(file=str(tmp_path / "jobs.csv")), str(tmp_path / "cluster.yaml"), "srtf").pinned()


def test_a_setting_names_its_files(setting: Setting, tmp_path: Path) -> None:
    assert set(files_of(setting)) == {str(tmp_path / "jobs.csv"), str(tmp_path / "cluster.yaml")}


@pytest.mark.parametrize("keep_run", [False, True])
def test_a_result_from_afar_is_the_one_that_is_made_here(setting: Setting, tmp_path: Path, keep_run: bool) -> None:
    key = setting.hash
    for name in ("here", "sent"):
        (tmp_path / name).mkdir()
    perform(Task(setting, key, str(tmp_path / "here"), keep_run=keep_run))
    paths = files_of(setting)
    parcels = [pack(Path(path)) for path in paths]
    for path in paths:
        Path(path).rename(f"{path}.away")  # there is no such file on the other machine
    outcome, result = perform_here(Task(setting, key, "/nowhere", keep_run=keep_run), paths, parcels)
    assert outcome.state == DONE, outcome.message
    for _ in range(2):  # a task that was run again replaces its result
        take_in(result, tmp_path / "sent")
    assert sorted(one.name for one in (tmp_path / "sent").iterdir()) == sorted(one.name for one in (tmp_path / "here").iterdir())
    here, sent = (read_record(tmp_path / name, key) for name in ("here", "sent"))
    assert here.jobs().equals(sent.jobs())
    assert here.measures == sent.measures
    assert _without_times(here.summary) == _without_times(sent.summary)


def _without_times(summary: dict[str, object]) -> dict[str, object]:
    return json.loads(json.dumps({name: value for name, value in summary.items() if not name.endswith("_seconds")}))
