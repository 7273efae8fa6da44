"""The folder of jobs carries the identity of its store.

Ids begin at 1 in every store: without it, job 1 of a new store would find the exit of an old job 1, and end before it ran.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gantline.core.errors import RefusedError
from gantline.runtime.file_locks import is_locked

_MARK = "store"


@dataclass(frozen=True)
class JobsFolder:
    """``jobs`` in a home."""

    path: Path

    @property
    def owner(self) -> str:
        """The identity of the store that it belongs to; empty: it has no mark."""
        try:
            return (self.path / _MARK).read_text(encoding="ascii").strip()
        except OSError:
            return ""

    def belongs_to(self, identity: str, *, adopt: bool) -> bool:
        """Whether it is this store's.

        One without a mark is, where it is empty; or where the store has a past (`adopt`), for an older version of Gantline made both.
        """
        owner = self.owner
        return owner == identity if owner else adopt or not self._jobs()

    def claim(self, identity: str, *, has_past: bool) -> None:
        """Mark it as this store's, or refuse."""
        if not self.belongs_to(identity, adopt=has_past):
            raise RefusedError(
                "holds the jobs of another store" + (f" ({self.owner})" if self.owner else ""),
                where=str(self.path),
                fix=f"start the service with that store, or set the folder aside: gantline repair --home {self.path.parent}",
            )
        if self.owner != identity:
            self.path.mkdir(mode=0o700, exist_ok=True)
            draft = self.path / f".{_MARK}"
            draft.touch(mode=0o600)
            draft.write_text(identity + "\n", encoding="ascii")
            draft.replace(self.path / _MARK)

    def running(self) -> list[str]:
        """Jobs with a keeper that still runs."""
        return [job.name for job in self._jobs() if any(is_locked(lock) for lock in job.glob("*/lock"))]

    def aside(self) -> Path:
        """A name beside it that is free."""
        number = 1
        while (found := self.path.with_name(f"{self.path.name}-set-aside-{number}")).exists():
            number += 1
        return found

    def _jobs(self) -> list[Path]:
        return sorted(one for one in self.path.glob("*") if one.is_dir())
