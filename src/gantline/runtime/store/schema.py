"""The tables. Times are seconds since the store was made (`meta.created` says when that was); JSON holds plain values only."""

from __future__ import annotations

from sqlalchemy import JSON, Boolean, Column, Float, Index, Integer, LargeBinary, MetaData, String, Table, Text

metadata = MetaData()
HEAD = "0001"
"""The newest migration; a store that says another is migrated, or refused if it is newer."""

meta = Table("meta", metadata, Column("key", String(64), primary_key=True), Column("value", JSON, nullable=False))

journal = Table(
    "journal",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("time", Float, nullable=False),
    Column("body", JSON, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("number", Integer, nullable=False, index=True),  # of its submission; tasks of an array share it
    Column("task", Integer),  # its index in the array
    Column("name", Text, nullable=False),
    Column("user", Text, nullable=False, index=True),
    Column("queue", Text, nullable=False),
    Column("spec", JSON, nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("reason", String(24), nullable=False),
    Column("detail", Text, nullable=False),
    Column("priority", Float, nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("min_gpus", Integer, nullable=False),
    Column("max_gpus", Integer, nullable=False),
    Column("submitted", Float, nullable=False),
    Column("started", Float),  # the first time
    Column("ended", Float),
    Column("exit_code", Integer),
    Column("epoch", Integer, nullable=False),
    Column("restarts", Integer, nullable=False),
    Column("resizes", Integer, nullable=False),
    Column("devices", JSON, nullable=False),
    Column("progress", JSON, nullable=False),  # the newest report: done, total, saved, throughput, batch, loss, ...
)

history = Table(
    "history",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("job", String(64), nullable=False, index=True),
    Column("time", Float, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", String(24), nullable=False),
    Column("detail", Text, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("time", Float, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("job", String(64), nullable=False, index=True),
    Column("node", Text, nullable=False),
    Column("user", Text, nullable=False),
    Column("body", JSON, nullable=False),
)

decisions = Table(
    "decisions",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("time", Float, nullable=False),
    Column("entry", Integer, nullable=False),  # the newest entry of the journal that it saw
    Column("policy", Text, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("body", JSON, nullable=False),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("entry", Integer, primary_key=True, autoincrement=False),  # the newest entry of the journal that is in it
    Column("time", Float, nullable=False),
    Column("head", JSON, nullable=False),
    Column("arrays", LargeBinary, nullable=False),
)

requests = Table(
    "requests",
    metadata,
    Column("key", String(200), primary_key=True),
    Column("user", Text, primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("answer", JSON, nullable=False),
    Column("time", Float, nullable=False),
)

queues = Table(
    "queues",
    metadata,
    Column("name", Text, primary_key=True),
    Column("weight", Float, nullable=False),
    Column("quota", Float),  # none: no bound
    Column("borrow", Boolean, nullable=False),
    Column("paused", Boolean, nullable=False),
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

Index("decisions_by_time", decisions.c.time)
