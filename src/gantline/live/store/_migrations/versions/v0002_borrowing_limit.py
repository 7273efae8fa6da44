"""Queues may borrow up to a limit."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("queues", sa.Column("borrow_limit", sa.Float))
