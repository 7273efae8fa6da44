"""One transaction: whatever is written in it is there together, and durable when it ends."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Insert, Update, bindparam, delete, func, insert, select, update

from gantline.live.store import records
from gantline.live.store.records import Entry, QueueRow, TokenRow

KEPT_CHECKPOINTS = 3
BREAKS = "breaks"  # of the past, by the numbers of their checkpoints
"""The newest ones; the first is kept as well, so that all of the past can be replayed, until the store is compacted."""
ARCHIVED = "archived"
"""The key of what the jobs that have left add up to."""
GENERATION = "generation"
"""The key of what tells a life of the store from its other ones."""
RESTORED = "restored"
"""The key of when a backup was put in its place; none: it is no backup, or a service has begun another life with it."""
COMMITS = "commits"
"""The key of how many transactions there have been."""

# Statements that run many times a second are built once: building one takes longer than executing it.
_ADD_LINE, _ADD_EVENT, _ADD_JOB = insert(records.journal), insert(records.events), insert(records.jobs)
_KNOWN_JOBS = select(records.jobs.c.id, records.jobs.c.body).where(records.jobs.c.id.in_(bindparam("jobs", expanding=True)))
_AT_ONCE = 500  # ids in one question
_CHANGE_JOB = update(records.jobs).where(records.jobs.c.id == bindparam("job"))


class Transaction:
    """What may be written; `SqlStore.transaction` gives one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.newest = 0  # the highest number of a job that is new in it

    def entries(self, entries: Sequence[Entry]) -> None:
        """The scheduler's entries, in order; each kind has a table of its own, so that all of a kind are written at once."""
        lines, events, jobs = list[dict[str, Any]](), list[dict[str, Any]](), dict[str, dict[str, Any]]()
        gone, totals = list[str](), dict[str, Any]()
        for entry in entries:
            value = entry.value
            if entry.kind == "journal":
                lines.append({"kind": _kind(value), "body": dict(value)})
            elif entry.kind == "job":
                jobs[value["id"]] = {**jobs.get(value["id"], {}), **value}
            elif entry.kind == "event":
                events.append({"time": float(value.get("time", 0.0)), "job": str(value.get("job", "")), "body": dict(value)})
            elif entry.kind == "aside":
                self._set_aside(int(value["number"]), str(value["why"]))
            elif entry.kind == "queue":
                self.queue(QueueRow(str(value["name"])))
            elif entry.kind == "archived":
                gone, totals = [*gone, *value["jobs"]], value["totals"]
            elif entry.kind == "life":
                self._begin_life(str(value["generation"]), int(value["newest"]))
            else:  # it covers the lines before it, not those behind it
                self._many(_ADD_LINE, lines)
                lines = []
                self._checkpoint(value)
        self._many(_ADD_LINE, lines)
        self._add(_ADD_EVENT, events)
        self._jobs(jobs)
        if gone:
            self._drop(gone, totals)

    def _many(self, order: Insert | Update, rows: list[dict[str, Any]]) -> None:
        if rows:
            self._connection.execute(order, rows)

    def _add(self, order: Insert, rows: list[dict[str, Any]]) -> None:
        """Add rows with a body; thousands go to the driver directly, because SQLAlchemy takes longer for each than the database."""
        if len(rows) < _AT_ONCE:
            self._many(order, rows)
            return
        compiled = order.compile(dialect=self._connection.dialect, column_keys=list(rows[0]))
        plain = [{**row, "body": json.dumps(row["body"])} for row in rows]
        entries = [tuple(row[name] for name in compiled.positiontup) for row in plain] if compiled.positiontup is not None else plain
        self._connection.exec_driver_sql(str(compiled), entries)

    def _jobs(self, news: Mapping[str, Mapping[str, Any]]) -> None:
        """What is new of jobs; the rest stays."""
        known: dict[str, Any] = {}
        ids = list(news)
        for first in range(0, len(ids), _AT_ONCE):
            rows = self._connection.execute(_KNOWN_JOBS, {"jobs": ids[first : first + _AT_ONCE]})
            known |= {row.id: row.body for row in rows}
        fresh, changed = list[dict[str, Any]](), list[dict[str, Any]]()
        for id, fields in news.items():
            body = {**known.get(id, {}), **fields}
            columns = {"user": str(body.get("user", "")), "state": str(body.get("state", "")), "body": body}
            changed.append({"job": id, **columns}) if id in known else fresh.append({"id": id, **columns})
        self._add(_ADD_JOB, fresh)
        self.newest = max([self.newest, *(number_of(row["id"]) for row in fresh)])
        self._many(_CHANGE_JOB, changed)

    def _drop(self, ids: Sequence[str], totals: Mapping[str, Any]) -> None:
        """Jobs that are in the archive leave, with their events."""
        for first in range(0, len(ids), _AT_ONCE):
            some = ids[first : first + _AT_ONCE]
            self._connection.execute(delete(records.jobs).where(records.jobs.c.id.in_(some)))
            self._connection.execute(delete(records.events).where(records.events.c.job.in_(some)))
        self.remember(ARCHIVED, dict(totals))

    def _begin_life(self, generation: str, newest: int) -> None:
        """From here on it is another life; numbers of jobs go on behind `newest`."""
        known = self._connection.execute(select(records.meta.c.value).where(records.meta.c.key == ARCHIVED)).scalar() or {}
        self.remember(ARCHIVED, {**known, "newest": max(newest, int(known.get("newest", 0)))})
        self.remember(GENERATION, generation)
        self.remember(RESTORED, None)

    def trim(self) -> None:
        """Checkpoints but the newest, and the lines of the journal that these cover, leave; what was set aside stays."""
        found = select(records.checkpoints).order_by(records.checkpoints.c.number.desc()).limit(KEPT_CHECKPOINTS)
        kept = self._connection.execute(found).all()
        if kept:
            self._connection.execute(delete(records.checkpoints).where(records.checkpoints.c.number < kept[-1].number))
            newest = self._connection.execute(select(func.max(records.journal.c.number))).scalar() or 0
            least = min(kept[-1].covers, newest - 1)  # the newest line stays, or SQLite would give its number again
            covered = (records.journal.c.number <= least) & (records.journal.c.kind != records.ASIDE)
            self._connection.execute(delete(records.journal).where(covered))

    def _set_aside(self, number: int, why: str) -> None:
        """Set a line aside: it stays where it is, with the reason, and does not count."""
        here = records.journal.c.number == number
        line = self._connection.execute(select(records.journal.c.body).where(here)).scalar()
        self._connection.execute(update(records.journal).where(here).values(kind=records.ASIDE, body={"why": why, "line": line}))

    def set_checkpoint_aside(self, number: int) -> None:
        """Set aside a checkpoint that cannot be read; its text is kept."""
        here = records.checkpoints.c.number == number
        self.remember(f"checkpoint {number}, set aside", self._connection.execute(select(records.checkpoints.c.body).where(here)).scalar())
        self._connection.execute(delete(records.checkpoints).where(here))

    def _checkpoint(self, value: Mapping[str, Any]) -> None:
        covers = int(self._connection.execute(select(func.max(records.journal.c.number))).scalar() or 0)
        self._connection.execute(insert(records.checkpoints).values(covers=covers, body=dict(value)))
        breaks = self._breaks(value.get("breaks", False))
        newest = select(records.checkpoints.c.number).order_by(records.checkpoints.c.number.desc()).limit(KEPT_CHECKPOINTS)
        least = min(self._connection.execute(newest).scalars())
        first = self._connection.execute(select(func.min(records.checkpoints.c.number))).scalar()
        gone = (records.checkpoints.c.number < least) & records.checkpoints.c.number.not_in([first, *breaks])
        self._connection.execute(delete(records.checkpoints).where(gone))

    def _breaks(self, also_the_newest: bool) -> list[int]:
        """Checkpoints from which the past goes on under other rules: nothing can be folded across them, so they stay."""
        known = self._connection.execute(select(records.meta.c.value).where(records.meta.c.key == BREAKS)).scalar() or []
        if also_the_newest:
            known = [*known, int(self._connection.execute(select(func.max(records.checkpoints.c.number))).scalar() or 0)]
            self.remember(BREAKS, known)
        return list(known)

    def queue(self, queue: QueueRow) -> None:
        """Set a queue."""
        self.drop_queue(queue.name)
        limit = queue.borrow if math.isfinite(queue.borrow) else None
        columns = {"name": queue.name, "weight": queue.weight, "borrow": queue.borrow > 0, "borrow_limit": limit}
        columns |= {"quota": queue.quota if math.isfinite(queue.quota) else None}
        self._connection.execute(insert(records.queues).values(**columns))

    def drop_queue(self, name: str) -> None:
        self._connection.execute(delete(records.queues).where(records.queues.c.name == name))

    def token(self, token: TokenRow) -> None:
        """A new token, by its hash."""
        self._connection.execute(insert(records.tokens).values(**asdict(token)))

    def revoke(self, id: str, wall: float) -> bool:
        """Whether there was such a token to revoke."""
        changed = update(records.tokens).where(records.tokens.c.id == id, records.tokens.c.revoked.is_(None)).values(revoked=wall)
        return self._connection.execute(changed).rowcount > 0

    def change_role(self, id: str, role: str) -> bool:
        """Whether there was such a token, not revoked, to be good for something else from now on."""
        changed = update(records.tokens).where(records.tokens.c.id == id, records.tokens.c.revoked.is_(None)).values(role=role)
        return self._connection.execute(changed).rowcount > 0

    def remember(self, key: str, value: Any) -> None:
        """A value of the store itself."""
        if not self._connection.execute(update(records.meta).where(records.meta.c.key == key).values(value=value)).rowcount:
            self._connection.execute(insert(records.meta).values(key=key, value=value))


def number_of(job: str) -> int:
    """The number in the id of a job; 0: it has none."""
    number = job.partition("_")[0]
    return int(number) if number.isdecimal() else 0


def _kind(value: Mapping[str, Any]) -> str:
    """Which input a line is, or a decision, or one that came too late."""
    return str(value.get("input", "overrun" if "overrun" in value else "decision"))[:32]
