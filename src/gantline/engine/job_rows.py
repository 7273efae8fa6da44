"""Which row a job has, by its id."""

from __future__ import annotations

from gantline.core.columns import Job
from gantline.core.errors import NotFoundError, near
from gantline.core.phases import Phase
from gantline.engine.state import State


class JobRows:
    """Rows by id. Tables grow while it is in use; the newest row of an id counts, because a job that had ended may come back under it."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._rows: dict[str, int] = {}
        self._counted = 0  # rows that are in it

    def of(self, name: str) -> int | None:
        """The row of the job of that id."""
        ids = self.state.tables.ids
        for row in range(self._counted, len(ids)):
            if ids[row]:  # else it ended before the checkpoint we began with
                self._rows[ids[row]] = row
        self._counted = len(ids)
        return self._rows.get(name)

    def known(self, name: str, where: str) -> tuple[int, Phase]:
        """The same, with its phase; refused where there is no such job."""
        row = self.of(name)
        if row is None:
            raise NotFoundError(f"no job '{name}'", where=where, fix=near(name, self._rows))
        return row, Phase(int(self.state.tables.I[Job.PHASE, row]))

    def is_open(self, name: str) -> bool:
        """Whether there is a job of that id which has not ended."""
        row = self.of(name)
        return row is not None and not Phase(int(self.state.tables.I[Job.PHASE, row])).terminal
