"""Alembic runs this: the connection comes from `migrate`."""

from alembic import context

from gantline.live.store.records import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
