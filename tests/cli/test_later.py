"""Libraries that are imported on first use."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gantline.cli.later import import_later, is_there


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with a part, whose parts import each other, and which offers a name of the past."""
    name = "library_of_late_days"
    (tmp_path / name).mkdir()
    old = "def __getattr__(name):\n    if name == 'OLD':\n        return VALUE - 1\n    raise AttributeError(name)\n"
    (tmp_path / name / "__init__.py").write_text(f"from {name}.part import VALUE\n\n{old}")
    (tmp_path / name / "part.py").write_text(f"import {name}\n\nVALUE = 7\nSEEN = hasattr({name}, 'VALUE')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for module in (name, f"{name}.part"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    import_later(name)
    return name


def test_it_is_loaded_when_something_of_it_is_used(library: str) -> None:
    one, other = __import__(library), __import__(library)
    assert one is other is sys.modules[library]
    assert not is_there(library)
    assert one.VALUE == 7
    assert is_there(library)
    assert one.OLD == 6
    assert not one.part.SEEN  # the part looked while the library was being loaded
    with pytest.raises(AttributeError):
        _ = one.NEVER


def test_a_part_of_it_brings_the_whole(library: str) -> None:
    part = __import__(f"{library}.part", fromlist=["VALUE"])
    assert part.VALUE == 7
    assert is_there(library)


def test_what_is_there_or_nowhere_is_left_alone() -> None:
    import_later("json")
    assert is_there("json")
    import_later("no_such_library_anywhere")
    assert "no_such_library_anywhere" not in sys.modules
