"""How each job of a store was run, those in the archive included, which are read when the first of them is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gantline.live.archive import Archive
from gantline.live.launch import Launch


class Launches:
    """Launches by job."""

    def __init__(self, records: Iterable[Mapping[str, Any]], archive: Archive | None = None) -> None:
        self._known = {str(job["id"]): Launch.from_json(job["launch"]) for job in records}
        self._archive = archive

    def __getitem__(self, job: str) -> Launch:
        if job not in self._known and self._archive is not None:
            self._known, self._archive = {**self._archive.launches(), **self._known}, None
        return self._known[job]
