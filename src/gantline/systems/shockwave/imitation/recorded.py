"""A recorded schedule: which jobs were started in which round."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from gantline.core.errors import TraceError, UsageError
from gantline.systems.shockwave.imitation.jobs import ShockwaveJob
from gantline.systems.shockwave.imitation.loop import ShockwaveRounds
from gantline.traces.unpack import read_text


class RecordedRounds:
    """Starts in every round the jobs that the table names, as far as they are still present."""

    def __init__(self, path: str, jobs: Sequence[ShockwaveJob]) -> None:
        if not path:
            raise UsageError("no table is given", where="policy 'recorded'", fix="--set table=FILE.csv with round,jobs")
        self._rounds = _read(Path(path), len(jobs))

    def round_ended(self, rounds: ShockwaveRounds, closed: Sequence[ShockwaveJob]) -> None:
        """Nothing to learn."""

    def choose(self, rounds: ShockwaveRounds) -> list[ShockwaveJob]:
        wanted = self._rounds.get(rounds.passes, ())
        active = {job.index: job for job in rounds.active}
        chosen = [active[index] for index in wanted if index in active]
        used = sum(job.gang for job in chosen)
        if used > rounds.gpus:
            raise TraceError(f"in round {rounds.passes} jobs hold {used} GPUs, but there are {rounds.gpus}", file="the recorded table")
        return chosen


def _read(path: Path, jobs: int) -> dict[int, list[int]]:
    """Jobs by round; jobs are numbers in the order of the trace, with spaces between them."""
    reader = csv.DictReader(io.StringIO(read_text(path)))
    names = [name for name in (reader.fieldnames or ()) if name in ("jobs", "job_indices")]
    if "round" not in (reader.fieldnames or ()) or not names:
        raise TraceError("has no columns 'round' and 'jobs'", file=str(path), line=1, fix="write round,jobs with jobs as in 0 3 7")
    found: dict[int, list[int]] = {}
    for line, row in enumerate(reader, start=2):
        try:
            number, members = int(row["round"]), [int(word) for word in (row[names[0]] or "").split()]
        except (TypeError, ValueError):
            raise TraceError("holds no round and jobs", file=str(path), line=line, fix="write 12,0 3 7") from None
        for index in members:
            if not 0 <= index < jobs:
                raise TraceError(f"there is no job {index} among {jobs}", file=str(path), line=line, field=names[0])
        if number in found:
            raise TraceError(f"round {number} stands twice", file=str(path), line=line, field="round")
        found[number] = members
    return found
