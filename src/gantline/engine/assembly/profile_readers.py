"""Measured profiles of a run: what reads the folder depends on the regime, then on the performance model; else it has Pollux' layout."""

from __future__ import annotations

from pathlib import Path

from gantline.core.errors import NotFoundError
from gantline.engine.assembly.spec import RunSpec
from gantline.registry import Register

_READERS = Register("profile_readers", {"pairs": "gantline.traces.files.speeds:read_pair_profiles"}, where="--profiles")
_OF_FILES = frozenset({"pairs"})
"""Readers that take a file as well as a folder."""


def read_profiles_for(spec: RunSpec) -> object:
    """The profiles that the run names, or that it was given; None: it has none."""
    given = spec.profiles
    if not isinstance(given, str):
        return given
    if not given:
        return None
    regime = spec.regime if isinstance(spec.regime, str) else spec.regime.name
    for name in (regime, spec.performance):
        if isinstance(name, str) and _READERS.find(name) is not None:
            path = Path(given)
            if not (path.is_dir() or (path.is_file() and name in _OF_FILES)):
                what = "no such file or folder" if name in _OF_FILES else "no such folder"
                raise NotFoundError(what, where=f"profiles {path}", fix=f"name the folder with the profiles of '{name}'")
            return _READERS.load(name)(path)
    from gantline.traces.files.profiles import read_profiles

    return read_profiles(given)
