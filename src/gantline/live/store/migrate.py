"""Brings a store up to the present tables, in the transaction of the connection given."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from gantline.core.errors import RefusedError
from gantline.live.store.schema import HEAD


def version_of(connection: Connection) -> str | None:
    """The migration that a store has reached; None: it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("select version_num from alembic_version")).scalar()


def migrate(connection: Connection) -> None:
    """Run the migrations that are missing."""
    found = version_of(connection)
    if found == HEAD:
        return
    if found is not None and found > HEAD:
        raise RefusedError(f"was written by a newer Gantline (version {found} of its tables)", where="store", fix="upgrade gantline")
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "_migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
