"""One transaction: whatever is written in it is there together, and durable when it ends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from gantline.runtime.store import schema as s
from gantline.runtime.store.records import JobRecord, QueueRecord, Request, TokenRecord

KEPT_CHECKPOINTS = 3


class Transaction:
    """What may be written; `Store.transaction` gives one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def journal(self, time: float, body: Mapping[str, Any]) -> int:
        """Append an input; its number comes back."""
        return self._insert(s.journal, {"time": time, "body": dict(body)})

    def next_number(self) -> int:
        """A number that no submission had before, nor will have again."""
        row = self._connection.execute(select(s.meta.c.value).where(s.meta.c.key == "submissions")).scalar()
        number = int(row or 0) + 1
        self.remember("submissions", number)
        return number

    def job(self, record: JobRecord) -> None:
        """A new job, and the first line of its history."""
        self._connection.execute(insert(s.jobs).values(**_plain(record)))
        self._line(record.id, record.submitted, record.state, record.reason, record.detail)

    def change(self, id: str, time: float, **fields: Any) -> None:
        """Change columns of a job; a new state, reason or detail is a line of its history."""
        told = {key: fields[key] for key in ("state", "reason", "detail") if key in fields}
        if told:
            found = self._connection.execute(select(s.jobs.c.state, s.jobs.c.reason, s.jobs.c.detail).where(s.jobs.c.id == id)).one()
            was: dict[str, Any] = found._asdict()
            if {**was, **told} != was:
                self._line(id, time, **{**was, **told})
        self._connection.execute(update(s.jobs).where(s.jobs.c.id == id).values(**fields))

    def _line(self, job: str, time: float, state: str, reason: str, detail: str) -> None:
        self._connection.execute(insert(s.history).values(job=job, time=time, state=state, reason=reason, detail=detail))

    def event(self, time: float, kind: str, *, job: str = "", node: str = "", user: str = "", **body: Any) -> int:
        """Something that people may want to know."""
        return self._insert(s.events, {"time": time, "kind": kind, "job": job, "node": node, "user": user, "body": body})

    def decision(self, time: float, entry: int, policy: str, seconds: float, hash: str, **body: Any) -> int:
        """What a policy decided."""
        return self._insert(s.decisions, {"time": time, "entry": entry, "policy": policy, "seconds": seconds, "hash": hash, "body": body})

    def checkpoint(self, entry: int, time: float, head: Mapping[str, Any], arrays: bytes) -> None:
        """All of the engine after an entry of the journal; the newest few are kept."""
        self._connection.execute(delete(s.checkpoints).where(s.checkpoints.c.entry == entry))
        self._connection.execute(insert(s.checkpoints).values(entry=entry, time=time, head=dict(head), arrays=arrays))
        newest = select(s.checkpoints.c.entry).order_by(s.checkpoints.c.entry.desc()).limit(KEPT_CHECKPOINTS)
        least = min(self._connection.execute(newest).scalars())
        self._connection.execute(delete(s.checkpoints).where(s.checkpoints.c.entry < least))

    def request(self, request: Request) -> None:
        """Remember how a request was answered."""
        self._connection.execute(insert(s.requests).values(**_plain(request)))

    def forget_requests(self, before: float) -> None:
        """Requests that nobody will repeat any more."""
        self._connection.execute(delete(s.requests).where(s.requests.c.time < before))

    def queue(self, queue: QueueRecord) -> None:
        """Set a queue."""
        self.drop_queue(queue.name)
        self._connection.execute(insert(s.queues).values(**_plain(queue) | {"quota": queue.quota if math.isfinite(queue.quota) else None}))

    def drop_queue(self, name: str) -> None:
        self._connection.execute(delete(s.queues).where(s.queues.c.name == name))

    def token(self, token: TokenRecord) -> None:
        """A new token, by its hash."""
        self._connection.execute(insert(s.tokens).values(**_plain(token)))

    def revoke(self, id: str, wall: float) -> bool:
        """Whether there was such a token to revoke."""
        changed = update(s.tokens).where(s.tokens.c.id == id, s.tokens.c.revoked.is_(None)).values(revoked=wall)
        return self._connection.execute(changed).rowcount > 0

    def remember(self, key: str, value: Any) -> None:
        """A value of the store itself."""
        if not self._connection.execute(update(s.meta).where(s.meta.c.key == key).values(value=value)).rowcount:
            self._connection.execute(insert(s.meta).values(key=key, value=value))

    def newest_entry(self) -> int:
        """The number of the journal's last line; 0: it is empty."""
        return int(self._connection.execute(select(func.max(s.journal.c.number))).scalar() or 0)

    def _insert(self, table: Any, values: Mapping[str, Any]) -> int:
        key = self._connection.execute(insert(table).values(**values)).inserted_primary_key
        assert key is not None
        return int(key[0])


def _plain(record: Any) -> dict[str, Any]:
    return asdict(record)
