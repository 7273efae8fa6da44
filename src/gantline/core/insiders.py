"""The tables behind a snapshot, for code that stores, replays or checks one."""

from __future__ import annotations

from typing import cast

from gantline.core.snapshot import Snapshot
from gantline.core.tables import Tables


def tables_behind(snapshot: Snapshot) -> Tables:
    """All of it, the truth included. Not for policies (tests/project sees to it)."""
    return cast(Tables, snapshot.lent._tables)
