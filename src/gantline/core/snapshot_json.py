"""Snapshots as plain JSON values and back, without loss; `docs/snapshots.md` is the reference.

Only active rows are stored. Row numbers, codes of users and positions of options are kept, because a policy's memory may name them:
a decoded snapshot gives the same plan. The performance model is not part of a snapshot: the caller that decodes one passes it in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gantline.core import memory as memories
from gantline.core.cluster_now import ClusterNow
from gantline.core.cluster_spec import decode_cluster, decode_nodes, encode_cluster, encode_nodes
from gantline.core.errors import UsageError, near
from gantline.core.facts import FACTS, decode_facts, encode_facts
from gantline.core.job_json import CODES, KEYS, KnownRows, decode_job, default_options, encode_job, fill_metrics
from gantline.core.json_reader import Reader, check_head, decode_record, encode, json_number
from gantline.core.options import Option, OptionTable, decode_option
from gantline.core.plan_json import decode_plan, decode_reservations, encode_plan, fluid_ways
from gantline.core.queues import Queue
from gantline.core.snapshot import NOBODY, Jobs, Left, Snapshot
from gantline.core.tables import Tables, tables_behind
from gantline.core.windows import decode_window

__all__ = ["VERSION", "decode_plan", "decode_snapshot", "encode_plan", "encode_snapshot"]

VERSION = 1
_HEAD = ("kind", "version", "now", "decision", "seed", "round", "regime", "memory", "learned", "reservations")
_STATE = (
    "cluster",
    "down",
    "cordoned",
    "shared",
    "free",
    "jobs",
    "left",
    "users",
    "queues",
    "apps",
    "models",
    "queue_tree",
    "windows",
    "kept_free",
    "unestimated",
)


def encode_snapshot(snapshot: Snapshot, known: KnownRows | None = None) -> dict[str, Any]:
    """The snapshot as values that JSON can hold; it may be lent by an engine. `known` is what was written of its rows before."""
    tables, rows = tables_behind(snapshot), snapshot.jobs.rows.tolist()
    found: dict[str, Any] = {"kind": "snapshot", "version": VERSION, "now": json_number(snapshot.now)}
    found |= {"decision": int(snapshot.decision), "seed": int(snapshot.seed), "round": json_number(snapshot.round)}
    if snapshot.regime != "default":
        found["regime"] = snapshot.regime
    if snapshot.memory is not None:
        found["memory"] = memories.plain(snapshot.memory)
    if snapshot.learned is not None:
        found["learned"] = memories.plain(snapshot.learned)
    if snapshot.reservations:
        found["reservations"] = encode(snapshot.reservations, full=True)
    found |= encode_facts(snapshot.facts)
    found["cluster"] = encode_cluster(tables.cluster)
    found |= encode_nodes(tables)
    if tables.queue_tree:
        found["queue_tree"] = encode(list(tables.queue_tree.values()), full=True)
    if tables.windows:
        found["windows"] = encode(list(tables.windows.values()))
    if tables.kept_free:
        found["kept_free"] = sorted(tables.kept_free)
    if tables.unestimated and (blind := [tables.ids[row] for row in rows if row in tables.unestimated]):
        found["unestimated"] = blind
    jobs, packed = [], 0
    for place, row in enumerate(rows):
        job = encode_job(tables, row, snapshot.now, packed) if known is None else known.encode(tables, row, snapshot.now, packed)
        packed += int(tables.jobs.option_count[row])
        if tables.listed is not None:
            job["listed"] = int(tables.listed[row])
        jobs.append(job if row == place else {**job, "row": row})
    for column in CODES:
        names = getattr(tables, column.names)
        if names != _names_of(jobs, column.key):
            found[column.names] = list(names)
    found["jobs"] = jobs
    if len((left := snapshot.left).row):
        found["left"] = encode_left(left, tables)
    return found


def decode_snapshot(value: Mapping[str, Any], performance: Any = None) -> Snapshot:
    """The snapshot that a document describes, written by `encode_snapshot` or by hand."""
    reader = Reader(value, "snapshot")
    check_head(reader, "snapshot", VERSION)
    reader.only((*_HEAD, *FACTS, *_STATE))
    now = reader.number("now", 0.0)
    jobs = [Reader(item, path) for item, path in reader.items("jobs")]
    for job in jobs:
        job.only(KEYS)
    places = {id(job): job.whole("listed", place) for place, job in enumerate(jobs)}
    if not any("row" in job for job in jobs):  # by hand, in any order: rows stand in order of arrival
        jobs.sort(key=lambda job: job.number("arrival", 0.0))
    rows = [job.whole("row", place) for place, job in enumerate(jobs)]
    if sorted(set(rows)) != rows:
        raise UsageError("rows do not rise from job to job", where=reader.at("jobs"), fix="give every job a row, or none")
    tables = Tables.empty(decode_cluster(reader), max(rows, default=-1) + 1)
    tables.performance = performance
    listed = [places[id(job)] for job in jobs]
    if listed != sorted(listed):
        tables.listed = np.zeros(tables.F.shape[1], dtype=np.int64)
        tables.listed[rows] = listed
    _fill_names(reader, jobs, tables, rows)
    tables.queue_tree = {queue.name: queue for queue in (_decode_queue(Reader(q, path)) for q, path in reader.items("queue_tree"))}
    if "windows" in reader:
        windows = [decode_window(Reader(item, path)) for item, path in reader.items("windows")]
        tables.windows, tables.kept_free = {window.name: window for window in windows}, set(reader.wholes("kept_free"))
    blind = set(reader.texts("unestimated")) if "unestimated" in reader else set()
    tables.unestimated = {row for row in rows if tables.ids[row] in blind}
    firsts, options = _fill_options(jobs, tables)
    for job, row, first, own in zip(jobs, rows, firsts, options):
        decode_job(job, tables, row, now, own, first)
        fill_metrics(job, tables, row)
    decode_nodes(reader, tables)
    learned, left = memories.restore(reader.raw("learned")), decode_left(reader, tables)
    return Snapshot(
        now=now,
        decision=reader.whole("decision", 1),
        seed=reader.whole("seed", 0, least=-(2**63)),
        jobs=Jobs(tables.lent, np.array(rows, dtype=np.int64), now, learned),
        cluster=ClusterNow(tables.lent, np.array(rows, dtype=np.int64)),
        memory=memories.restore(reader.raw("memory")),
        round=reader.number("round", 0.0),
        reservations=decode_reservations(reader),
        regime=reader.text("regime", "default"),
        learned=learned,
        facts=decode_facts(reader),
        lent=tables.lent,
        find_left=lambda: left,
    )


def _fill_names(reader: Reader, jobs: list[Reader], tables: Tables, rows: list[int]) -> None:
    """Ids, and the codes of users, queues, apps and models."""
    tables.ids = [""] * tables.F.shape[1]
    seen: set[str] = set()
    for job, row in zip(jobs, rows):
        name = tables.ids[row] = job.text("id")
        if name in seen:
            raise UsageError(f"two jobs are called '{name}'", where=job.at("id"), fix="give every job its own id")
        seen.add(name)
    for column in CODES:
        texts = [job.text(column.key, "") for job in jobs]
        known = reader.texts(column.names) if column.names in reader else list(dict.fromkeys(texts)) or [""]
        codes = {name: code for code, name in enumerate(known)}
        setattr(tables, column.names, known)
        for job, row, text in zip(jobs, rows, texts):
            if text not in codes:
                fix = f"add it to '{column.names}', or leave that list out"
                raise UsageError(f"'{text}' is not among the {column.names}", where=job.at(column.key), fix=fix)
            getattr(tables.jobs, column.name)[row] = codes[text]


def _names_of(jobs: list[dict[str, Any]], key: str) -> list[str]:
    """Names in the order in which jobs mention them; the empty one where none does."""
    return list(dict.fromkeys(str(job.get(key, "")) for job in jobs)) or [""]


def _fill_options(jobs: list[Reader], tables: Tables) -> tuple[list[int], list[list[Option]]]:
    """The option table, each job's options where they stood; the first rows and the options come back."""
    firsts: list[int] = []
    options: list[list[Option]] = []
    placed: dict[int, Option] = {}
    packed = 0
    for job in jobs:
        if "options" in job:
            own = [decode_option(Reader(item, path), tables.cluster.types) for item, path in job.items("options")]
        else:
            own = default_options(tables, job.whole("gpus", 1))
        first = job.whole("first_option", packed)
        placed |= {first + number: option for number, option in enumerate(own)}
        packed += len(own)
        firsts.append(first)
        options.append(own)
    for job in jobs:
        if "way" in job:
            way = Reader(job.raw("way"), job.at("way"))
            placed[way.whole("row", max(placed, default=-1) + 1)] = decode_option(way, tables.cluster.types)
        if "grant" in job:
            placed |= fluid_ways(Reader(job.raw("grant"), job.at("grant")), tables.cluster.types)
    blank = Option(0, 0, 0.0)
    tables.options = OptionTable.build([placed.get(row, blank) for row in range(max(placed, default=-1) + 1)])
    return firsts, options


def _decode_queue(reader: Reader) -> Queue:
    yes_or_no = isinstance(reader.raw("borrow", 0.0), bool)
    return decode_record(Queue, reader, borrow=reader.flag("borrow", True) if yes_or_no else reader.number("borrow", 0.0))


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
