"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table("meta", sa.Column("key", sa.String(64), primary_key=True), sa.Column("value", sa.JSON, nullable=False))
    op.create_table(
        "journal",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("time", sa.Float, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("number", sa.Integer, nullable=False, index=True),
        sa.Column("task", sa.Integer),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("user", sa.Text, nullable=False, index=True),
        sa.Column("queue", sa.Text, nullable=False),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("state", sa.String(16), nullable=False, index=True),
        sa.Column("reason", sa.String(24), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("priority", sa.Float, nullable=False),
        sa.Column("gpus", sa.Integer, nullable=False),
        sa.Column("min_gpus", sa.Integer, nullable=False),
        sa.Column("max_gpus", sa.Integer, nullable=False),
        sa.Column("submitted", sa.Float, nullable=False),
        sa.Column("started", sa.Float),
        sa.Column("ended", sa.Float),
        sa.Column("exit_code", sa.Integer),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("restarts", sa.Integer, nullable=False),
        sa.Column("resizes", sa.Integer, nullable=False),
        sa.Column("devices", sa.JSON, nullable=False),
        sa.Column("progress", sa.JSON, nullable=False),
    )
    op.create_table(
        "history",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("job", sa.String(64), nullable=False, index=True),
        sa.Column("time", sa.Float, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(24), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("time", sa.Float, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("job", sa.String(64), nullable=False, index=True),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
    )
    op.create_table(
        "decisions",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("time", sa.Float, nullable=False),
        sa.Column("entry", sa.Integer, nullable=False),
        sa.Column("policy", sa.Text, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
    )
    op.create_index("decisions_by_time", "decisions", ["time"])
    op.create_table(
        "checkpoints",
        sa.Column("entry", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("time", sa.Float, nullable=False),
        sa.Column("head", sa.JSON, nullable=False),
        sa.Column("arrays", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "requests",
        sa.Column("key", sa.String(200), primary_key=True),
        sa.Column("user", sa.Text, primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("answer", sa.JSON, nullable=False),
        sa.Column("time", sa.Float, nullable=False),
    )
    op.create_table(
        "queues",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("weight", sa.Float, nullable=False),
        sa.Column("quota", sa.Float),
        sa.Column("borrow", sa.Boolean, nullable=False),
        sa.Column("paused", sa.Boolean, nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("hash", sa.String(64), nullable=False, unique=True),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("expires", sa.Float),
        sa.Column("revoked", sa.Float),
    )
