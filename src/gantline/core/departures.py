"""The jobs that were there when the policy was last asked and have left since: what it has not yet seen of them.

A job that has ended, or was put on hold, is not among the active ones any more. What it used after the last question can be read here,
once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.errors import UsageError, near
from gantline.core.json_reader import Reader, json_number
from gantline.core.tables import Tables


class Left(NamedTuple):
    """One entry per job, in the order of rows."""

    row: Ints
    user: Ints
    queue: Ints
    attained: Floats  # seconds run
    attained_gpu: Floats  # GPU-seconds run
    since: Floats  # when it stopped running


_NONE = np.zeros(0, dtype=np.int64)
NOBODY = Left(_NONE, _NONE, _NONE, np.zeros(0), np.zeros(0), np.zeros(0))


def read_left(tables: Tables, rows: Ints) -> Left:
    """What became of these rows, which are not active any more; those that never ran are left out."""
    F, I = tables.F, tables.I
    rows = rows[F[Job.SERVICE][rows] > 0.0]
    return Left(rows, I[Job.USER][rows], I[Job.QUEUE][rows], F[Job.SERVICE][rows], F[Job.GPUTIME][rows], F[Job.SINCE][rows])


def joined(one: Left, other: Left) -> Left:
    """Both, in the order of rows."""
    if not len(one.row):
        return other
    order = np.argsort(np.concatenate([one.row, other.row]), kind="stable")
    return Left._make(np.concatenate(pair)[order] for pair in zip(one, other))


def without(left: Left, rows: Ints) -> Left:
    """All but these rows."""
    there = np.isin(left.row, rows)
    return Left._make(column[~there] for column in left) if there.any() else left


def encode_left(left: Left, tables: Tables) -> list[dict[str, object]]:
    """As a snapshot's document has it."""
    return [
        {"row": row, "user": tables.users[user], "queue": tables.queues[queue]}
        | {"service": json_number(ran), "gpu_time": json_number(used), "since": json_number(since)}
        for row, user, queue, ran, used, since in zip(*(column.tolist() for column in left))
    ]  # fmt: skip


def decode_left(reader: Reader, tables: Tables) -> Left:
    """What a document says."""
    jobs = [Reader(item, path) for item, path in reader.items("left")]
    if not jobs:
        return NOBODY
    for job in jobs:
        job.only(("row", "user", "queue", "service", "gpu_time", "since"))
    codes = {key: {name: code for code, name in enumerate(names)} for key, names in (("user", tables.users), ("queue", tables.queues))}
    ints = [[job.whole("row") for job in jobs], *([_code(job, key, codes[key]) for job in jobs] for key in ("user", "queue"))]
    floats = [[job.number(key, 0.0) for job in jobs] for key in ("service", "gpu_time", "since")]
    return Left._make([*(np.array(column, dtype=np.int64) for column in ints), *map(np.array, floats)])


def _code(job: Reader, key: str, codes: Mapping[str, int]) -> int:
    name = job.text(key, "")
    if name not in codes:
        fix = f"{near(name, codes)}, or add it to '{key}s'"
        raise UsageError(f"no {key} '{name}'", where=job.at(key), fix=fix)
    return codes[name]
