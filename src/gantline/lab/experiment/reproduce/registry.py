"""Which figures can be reproduced: the studies that the manifests of published systems name."""

from __future__ import annotations

from pathlib import Path

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.lab.experiment.reproduce.study import Study
from gantline.registry import Register

_STUDIES = Register("studies", {}, where="reproduce")


def study_names() -> list[str]:
    """All studies, in the order in which they should be listed."""
    return _STUDIES.names()


def find_study(name: str, data: Path | None = None) -> Study:
    """The study of that name; ``data`` is the folder with published files that it may need."""
    if _STUDIES.find(name) is None:
        raise NotFoundError(f"no reproduction '{name}'", where="reproduce", fix=near(name, [*study_names(), "all"]))
    found = _STUDIES.load(name)
    if not (isinstance(found, type) and issubclass(found, Study)):
        raise UsageError(f"'{name}' is a {type(found).__name__}, not a study", where="reproduce", fix="derive it from Study")
    return found(data)
