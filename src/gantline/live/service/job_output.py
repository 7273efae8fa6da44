"""Pieces of a job's output, read through the runner of the service by offset."""

from __future__ import annotations

import codecs
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from gantline.core.errors import NotFoundError
from gantline.live.runners.runner_events import KeptIncarnation, Output

MOST = 1 << 20
_LAST_LINES = 60  # of an incarnation that broke: enough for a traceback
_BLOCK = 1 << 16  # bytes that are read at a time, from the end, when last lines are searched
_FARTHEST = 8 * MOST  # bytes from the end within which the beginning of a line is searched


class KeepsOutput(Protocol):
    """The part of a runner that is asked for output."""

    def incarnations(self, job: str) -> Sequence[KeptIncarnation]: ...

    def output(self, job: str, epoch: int) -> Output: ...


class _Nothing:
    """The output of a job that has not started."""

    first = size = 0

    def read(self, start: int, count: int) -> bytes:
        return b""

    def close(self) -> None: ...


def read_log(
    runner: KeepsOutput,
    job: str,
    *,
    epoch: int | None = None,
    offset: int = 0,
    tail: int | None = None,
    rank: int | None = None,
    limit: int = MOST,
) -> dict[str, Any]:
    """Text from an offset on, and where to go on. What is kept no more is passed over: `first` is the first byte that is kept."""
    known = [one.epoch for one in runner.incarnations(job)]
    if epoch is not None and epoch not in known:
        raise NotFoundError(
            f"job '{job}' has no incarnation {epoch}", where="epoch", fix=f"it has {known}" if known else "it has not started"
        )
    chosen = epoch if epoch is not None else (known[-1] if known else None)
    kept = _Nothing() if chosen is None else runner.output(job, chosen)
    try:
        first, size = kept.first, kept.size
        start = _last_lines(kept, tail) if tail is not None else min(max(offset, first), size)
        piece = kept.read(start, limit)
    finally:
        kept.close()
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(piece)
    rest = len(decoder.getstate()[0])  # bytes of a character that ends in the next piece, if there is one
    if rest and start + len(piece) < size:
        piece = piece[:-rest]
    elif rest:
        text += decoder.decode(b"", final=True)
    if rank is not None:
        text = "".join(line for line in text.splitlines(keepends=True) if line.startswith(f"[{rank}] "))
    return {"epoch": chosen, "epochs": known, "text": text, "offset": start, "next": start + len(piece), "first": first, "size": size}


def _last_lines(output: Output, count: int) -> int:
    """Where the last lines begin."""
    end = output.size
    if count == 0:
        return end
    at = end - (end > output.first and output.read(end - 1, 1) == b"\n")
    least = max(output.first, end - _FARTHEST)
    while at > least:
        first = max(least, at - _BLOCK)
        block = output.read(first, at - first)
        place = len(block)
        while (place := block.rfind(b"\n", 0, place)) >= 0:
            count -= 1
            if count == 0:
                return first + place + 1
        at = first
    return least


def lost_output(runner: KeepsOutput, job: str) -> int:
    """Bytes of its output that could not be written, of all incarnations together."""
    return sum(one.lost for one in runner.incarnations(job))


def broken_before(runner: KeepsOutput, job: str) -> dict[str, Any] | None:
    """Why the incarnation before the newest failed, with its last lines; None: it did not fail, or there is none."""
    known = runner.incarnations(job)
    if len(known) < 2 or not known[-2].why:
        return None
    before = known[-2]
    return {"epoch": before.epoch, "why": before.why, "text": read_log(runner, job, epoch=before.epoch, tail=_LAST_LINES)["text"]}


# What jobs have reported, as curves over time: in memory since the service started, thinned out as a curve grows long.

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
