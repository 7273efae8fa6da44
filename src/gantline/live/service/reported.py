"""What jobs have reported, as curves over time: in memory since the service started, thinned out as a curve grows long."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

NAMES = ("done", "throughput", "loss")
_POINTS = 500  # of one job; beyond that every second one is dropped
_JOBS = 2000  # with a line, those that reported last


class ReportedCurves:
    """Points by job; written and read by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: OrderedDict[str, _Line] = OrderedDict()

    def add(self, job: str, at: float, report: Mapping[str, Any]) -> None:
        """A report; `at` is the time of day."""
        values = tuple(report.get(name) for name in NAMES)
        if all(value is None for value in values):
            return
        with self._lock:
            line = self._lines.setdefault(job, _Line())
            self._lines.move_to_end(job)
            line.add((at, *values))
            if len(self._lines) > _JOBS:
                self._lines.popitem(last=False)

    def of(self, job: str) -> dict[str, list[float | None]]:
        """The lines of a job, as columns."""
        with self._lock:
            line = self._lines.get(job)
            points = [*line.points, *line.newest] if line is not None else []
        return {name: [point[place] for point in points] for place, name in enumerate(("time", *NAMES))}


class _Line:
    """Every n-th point, and always the newest."""

    def __init__(self) -> None:
        self.points: list[tuple[Any, ...]] = []
        self.newest: list[tuple[Any, ...]] = []  # where it is not among the points
        self._every, self._seen = 1, 0

    def add(self, point: tuple[Any, ...]) -> None:
        if self._seen % self._every == 0:
            self.points.append(point)
            self.newest = []
        else:
            self.newest = [point]
        self._seen += 1
        if len(self.points) >= _POINTS:
            self.points = self.points[::2]
            self._every *= 2
