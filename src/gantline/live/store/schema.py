"""The tables. Times are seconds since the store was made (`meta.created` says when that was); JSON holds plain values only."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sqlalchemy import JSON, Boolean, Column, Float, Integer, MetaData, String, Table, Text

metadata = MetaData()
HEAD = "0002"
"""The newest migration; a store that says another is migrated, or refused if it is newer."""

ASIDE = "set-aside"
"""The kind of a journal line that could not be applied."""

meta = Table("meta", metadata, Column("key", String(64), primary_key=True), Column("value", JSON, nullable=False))

journal = Table(
    "journal",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("kind", String(32), nullable=False, index=True),  # which input it is, or a decision
    Column("body", JSON, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),  # the order of submission
    Column("id", String(64), nullable=False, unique=True),
    Column("user", Text, nullable=False, index=True),
    Column("state", String(32), nullable=False, index=True),
    Column("body", JSON, nullable=False),  # all that is known of it
)

events = Table(
    "events",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("time", Float, nullable=False),
    Column("job", String(64), nullable=False, index=True),
    Column("body", JSON, nullable=False),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("covers", Integer, nullable=False),  # the newest line of the journal that is in it
    Column("body", JSON, nullable=False),
)

queues = Table(
    "queues",
    metadata,
    Column("name", Text, primary_key=True),
    Column("weight", Float, nullable=False),
    Column("quota", Float),  # none: no bound
    Column("borrow", Boolean, nullable=False),
    Column("borrow_limit", Float),  # none: no limit
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("user", Text, nullable=False),
    Column("role", String(16), nullable=False),
    Column("created", Float, nullable=False),
    Column("expires", Float),
    Column("revoked", Float),
)


# Queues and tokens as values; what the scheduler writes are `runtime.records`.


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue as an operator set it: how many devices it is promised, how many more it may borrow, and its weight among others."""

    name: str
    weight: float = 1.0
    quota: float = math.inf
    borrow: float = 0.0


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token at rest: its hash, never itself. Times are seconds since 1970."""

    id: str
    hash: str
    user: str
    role: str
    created: float
    expires: float | None = None
    revoked: float | None = None
