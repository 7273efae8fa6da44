"""One transaction: whatever is written in it is there together, and durable when it ends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from gantline.runtime.records import Entry
from gantline.runtime.store import schema as s
from gantline.runtime.store.rows import QueueRow, TokenRow

KEPT_CHECKPOINTS = 3
"""The newest ones; the first is kept as well, so that all of the past can be replayed."""

# What is said many times a second, and built once: to build it took longer than to carry it out.
_ADD_LINE, _ADD_EVENT, _ADD_JOB = insert(s.journal), insert(s.events), insert(s.jobs)
_KNOWN_JOB = select(s.jobs.c.body).where(s.jobs.c.id == bindparam("job"))
_CHANGE_JOB = update(s.jobs).where(s.jobs.c.id == bindparam("job"))


class Transaction:
    """What may be written; `SqlStore.transaction` gives one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def entry(self, entry: Entry) -> None:
        """One of the scheduler's entries."""
        value = dict(entry.value)
        if entry.kind == "journal":
            self._connection.execute(_ADD_LINE, {"kind": _kind(value), "body": value})
        elif entry.kind == "job":
            self._job(value)
        elif entry.kind == "event":
            told = {"time": float(value.get("time", 0.0)), "job": str(value.get("job", "")), "body": value}
            self._connection.execute(_ADD_EVENT, told)
        else:
            self._checkpoint(value)

    def _job(self, news: Mapping[str, Any]) -> None:
        """What is new of a job; the rest stays."""
        id = news["id"]
        known = self._connection.execute(_KNOWN_JOB, {"job": id}).scalar()
        body = {**(known or {}), **news}
        columns = {"user": str(body.get("user", "")), "state": str(body.get("state", "")), "body": body}
        if known is None:
            self._connection.execute(_ADD_JOB, {"id": id, **columns})
        else:
            self._connection.execute(_CHANGE_JOB, {"job": id, **columns})

    def _checkpoint(self, value: Mapping[str, Any]) -> None:
        covers = int(self._connection.execute(select(func.max(s.journal.c.number))).scalar() or 0)
        self._connection.execute(insert(s.checkpoints).values(covers=covers, body=dict(value)))
        newest = select(s.checkpoints.c.number).order_by(s.checkpoints.c.number.desc()).limit(KEPT_CHECKPOINTS)
        least = min(self._connection.execute(newest).scalars())
        first = self._connection.execute(select(func.min(s.checkpoints.c.number))).scalar()
        gone = (s.checkpoints.c.number < least) & (s.checkpoints.c.number != first)
        self._connection.execute(delete(s.checkpoints).where(gone))

    def queue(self, queue: QueueRow) -> None:
        """Set a queue."""
        self.drop_queue(queue.name)
        columns = asdict(queue) | {"quota": queue.quota if math.isfinite(queue.quota) else None}
        self._connection.execute(insert(s.queues).values(**columns))

    def drop_queue(self, name: str) -> None:
        self._connection.execute(delete(s.queues).where(s.queues.c.name == name))

    def token(self, token: TokenRow) -> None:
        """A new token, by its hash."""
        self._connection.execute(insert(s.tokens).values(**asdict(token)))

    def revoke(self, id: str, wall: float) -> bool:
        """Whether there was such a token to revoke."""
        changed = update(s.tokens).where(s.tokens.c.id == id, s.tokens.c.revoked.is_(None)).values(revoked=wall)
        return self._connection.execute(changed).rowcount > 0

    def remember(self, key: str, value: Any) -> None:
        """A value of the store itself."""
        if not self._connection.execute(update(s.meta).where(s.meta.c.key == key).values(value=value)).rowcount:
            self._connection.execute(insert(s.meta).values(key=key, value=value))


def _kind(value: Mapping[str, Any]) -> str:
    """Which input a line is; a decision has a plan instead."""
    return str(value.get("input", "decision"))[:32]
