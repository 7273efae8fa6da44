"""A recorded table of decisions, and the scheduler that follows it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

from gantline.core.errors import TraceError, UsageError, near
from gantline.policies.node_classes import NodeClass
from gantline.systems.sia.imitation.jobs import SiaJob
from gantline.systems.sia.imitation.rounds import SiaGrant
from gantline.traces.unpack import read_text

_COLUMNS = ("t_s", "name", "gpu_type", "nodes", "gpus")


class RecordedScheduler:
    """Every job has the last entry of the table; a row takes effect in the first round that does not end before it."""

    def __init__(self, path: str, jobs: Sequence[SiaJob], classes: Sequence[NodeClass]) -> None:
        if not path:
            raise UsageError("no table is given", where="policy 'recorded'", fix="--set table=FILE.csv with " + ",".join(_COLUMNS))
        self._source, self._classes = path, classes
        self._rows = _read(Path(path), {job.asked.name: job for job in jobs}, classes)
        self._next = 0
        self._now: dict[str, SiaGrant | None] = {}

    def decide(self, now: float, jobs: Sequence[SiaJob], held: Sequence[SiaGrant | None]) -> list[SiaGrant | None]:
        """What each job has by now."""
        line = 0
        while self._next < len(self._rows) and self._rows[self._next][0] <= now:
            _, name, grant, line = self._rows[self._next]
            self._now[name] = grant
            self._next += 1
        wanted = [self._now.get(job.asked.name) for job in jobs]
        for group, one in enumerate(self._classes):
            used = sum(grant.gpus for grant in wanted if grant is not None and grant.group == group)
            if used > one.gpus:
                raise TraceError(
                    f"at {now:g} s jobs hold {used} GPUs of '{one.type}', but there are {one.gpus}", file=self._source, line=line or None
                )
        return wanted

    def next_change(self, now: float) -> float:
        """The next row of the table."""
        return self._rows[self._next][0] if self._next < len(self._rows) else math.inf


def _read(path: Path, jobs: dict[str, SiaJob], classes: Sequence[NodeClass]) -> list[tuple[float, str, SiaGrant | None, int]]:
    """(second, job, grant, line) in the order of time; rows of one second keep theirs."""
    reader = csv.reader(io.StringIO(read_text(path)))
    names = [name.strip() for name in next(reader, [])]
    for name in _COLUMNS:
        if name not in names:
            raise TraceError(f"has no column '{name}'", file=str(path), line=1, fix="it needs " + ",".join(_COLUMNS))
    found = []
    for line, cells in enumerate(reader, start=2):
        if not any(cell.strip() for cell in cells):
            continue
        row = dict(zip(names, (cell.strip() for cell in cells), strict=False))
        second, nodes, gpus = (_number(row, name, path, line) for name in ("t_s", "nodes", "gpus"))
        job = jobs.get(row.get("name", ""))
        if job is None:
            what = f"there is no job '{row.get('name', '')}' in the trace"
            raise TraceError(what, file=str(path), line=line, field="name", fix=near(row.get("name", ""), jobs))
        grant = None if gpus == 0 else _grant(row["gpu_type"], int(nodes), int(gpus), job, classes, path, line)
        found.append((second, job.asked.name, grant, line))
    return sorted(found, key=lambda each: each[0])


def _grant(kind: str, nodes: int, gpus: int, job: SiaJob, classes: Sequence[NodeClass], path: Path, line: int) -> SiaGrant:
    """The class of nodes with that many GPUs of the type on that many nodes."""
    if kind not in {one.type for one in classes}:
        known = {one.type for one in classes}
        raise TraceError(f"the cluster has no '{kind}'", file=str(path), line=line, field="gpu_type", fix=near(kind, known))
    if kind not in job.types:
        raise TraceError(f"'{job.asked.application}' has no profile on '{kind}'", file=str(path), line=line, field="gpu_type")
    if gpus % job.types[kind].unit:
        raise TraceError(
            f"{gpus} GPUs are no whole replicas of {job.types[kind].unit}", file=str(path), line=line, field="gpus", fix="whole replicas"
        )
    for group, one in enumerate(classes):
        if one.type == kind and -(-gpus // one.size) == nodes and gpus <= one.gpus:
            return SiaGrant(group, gpus)
    raise TraceError(f"{gpus} GPUs of '{kind}' do not lie on {nodes} nodes", file=str(path), line=line, field="nodes")


def _number(row: dict[str, str], name: str, path: Path, line: int) -> float:
    text = row.get(name, "") or "0"  # a pause may be empty
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0 and (name == "t_s" or value == int(value))):
        raise TraceError(f"'{text}' is no {'time' if name == 't_s' else 'count'}", file=str(path), line=line, field=name)
    return value
