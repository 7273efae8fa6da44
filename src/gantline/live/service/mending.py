"""Repairs a home in which no service can start: checks its store and its folder of jobs, and sets aside what prevents a start."""

from __future__ import annotations

from pathlib import Path

from gantline.core.errors import NotFoundError
from gantline.live.archive import Archive
from gantline.live.repairing import Mended, repair_store
from gantline.live.service.home import Home
from gantline.live.service.jobs_folder import JobsFolder
from gantline.live.store import Lock, SqlStore


def mend(home: Home, store: str = "", *, dry_run: bool = False) -> list[Mended]:
    """What was found, and what was done about it. Refused while a service uses the home."""
    if not home.path.is_dir():
        raise NotFoundError("no such folder", where=str(home.path), fix="name the folder of a service: --home")
    lock = Lock(home.lock, "this home")
    try:
        where: str | Path = store or home.store
        if isinstance(where, Path) and not where.is_file():
            return [Mended("database", f"{where} is not there")]
        opened = SqlStore.open(where)
        try:
            found = repair_store(opened, archive=Archive(home.archive), dry_run=dry_run)
            if not all(one.done for one in found):
                return found  # what is in the database is not known: whose the folder is neither
            has_past = opened.checkpoint() is not None
            return [*found, *_folder(home, opened.identity, dry_run, adopt=has_past)]
        finally:
            opened.close()
    finally:
        lock.release()


def _folder(home: Home, identity: str, dry_run: bool, *, adopt: bool = False) -> list[Mended]:
    folder = JobsFolder(home.jobs)
    if folder.belongs_to(identity, adopt=adopt):
        return []
    what = f"belongs to another store ({folder.owner or 'of an earlier version'})"
    running = folder.running()
    if running:
        return [Mended(str(folder.path), f"{what}, and its jobs still run: {', '.join(running[:5])}")]
    target = folder.aside()
    if not dry_run:
        folder.path.rename(target)
    return [Mended(str(folder.path), what, f"set aside as {target.name}")]
