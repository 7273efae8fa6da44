"""A policy with its settings in a file is a policy like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantline.core.errors import GantlineError
from gantline.lab.experiment.grid import policies_of
from gantline.lab.experiment.setting import Setting, move_policy
from gantline.lab.experiment.trace_source import TraceSource
from gantline.policies.registry import make_policy
from gantline.traces.files.policies import load_policy, settings_text

MINE = """
from dataclasses import dataclass
from gantline import OrderPolicy

@dataclass(frozen=True)
class Mine(OrderPolicy):
    slope: float = 1.0

    def key(self, snapshot):
        return self.slope * snapshot.jobs.arrival
"""


def written(folder: Path, text: str) -> str:
    file = folder / "best.yaml"
    file.write_text(text)
    return str(file)


def test_a_file_means_the_policy_with_its_settings(tmp_path: Path) -> None:
    name = written(tmp_path, settings_text("tiresias", {"limits": (60.0, 7200.5)}, tmp_path, "tuned\non two traces"))
    assert load_policy(name) == make_policy("tiresias", {"limits": "60,7200.5"})
    assert load_policy(name, {"limits": "30"}) == make_policy("tiresias", {"limits": "30"}), "what is said beside the file counts"
    assert policies_of([name])[0].title == "tiresias limits=60.0,7200.5"


def test_a_policy_of_ones_own_is_found_from_the_folder_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "out").mkdir()
    name = written(tmp_path / "out", settings_text(str(tmp_path / "mine.py"), {"slope": 2.5}, tmp_path / "out"))
    monkeypatch.chdir("/")
    assert load_policy(name).slope == 2.5  # type: ignore[attr-defined]


def test_another_content_of_the_file_is_another_run(tmp_path: Path) -> None:
    def hash_of(limit: float) -> str:
        name = written(tmp_path, settings_text("tiresias", {"limits": (limit,)}, tmp_path))
        return Setting(TraceSource(generator="day"), "8x8", name).pinned().hash

    assert hash_of(60.0) != hash_of(61.0)
    assert hash_of(60.0) == hash_of(60.0)


def test_an_experiment_finds_the_file_beside_itself() -> None:
    assert move_policy("best.yaml", lambda path: f"/there/{path}") == "/there/best.yaml"
    assert move_policy("las", lambda path: f"/there/{path}") == "las"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("policy: lass", "did you mean 'las'"),
        ("polcy: las", "best.yaml:1: field 'polcy': unknown key 'polcy' (did you mean 'policy'"),
        ("policy: las\nsettings: 3", "field 'settings': 3 is not a mapping"),
        ("policy: tiresias\nsettings: {limits: [soon]}", "is 'soon', not a"),
        ("policy: las\nsettings: {treshold: 3}", "no parameter 'treshold'"),
        ("policy: other.yaml", "names another file of settings"),
        ("settings: {}", "is not a text"),
        ("- las", "is not a mapping"),
    ],
)
def test_a_mistake_in_the_file_is_one_clear_message(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(GantlineError) as caught:
        load_policy(written(tmp_path, text))
    assert told in str(caught.value)


def test_a_file_that_is_not_there_is_not_found() -> None:
    with pytest.raises(GantlineError, match="no such file") as caught:
        load_policy("nowhere.yaml")
    assert caught.value.exit_code == 3
