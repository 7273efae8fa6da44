"""Mending a store while no service uses it: what would keep a service from starting is found, set aside and named.

Nothing is thrown away: lines of the journal stay where they are, marked; a checkpoint that cannot be read is kept under a key of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gantline.core.cluster_json import decode_cluster
from gantline.core.json_reader import Reader
from gantline.engine.drivers.live import Live
from gantline.live.archive import Archive
from gantline.live.book import Job
from gantline.live.launches import Launches
from gantline.live.past import Past, one_line
from gantline.live.records import Entry
from gantline.live.setup import Saved, Setup, make_loop
from gantline.live.store import SqlStore, Transaction


@dataclass(frozen=True)
class Mended:
    """Something that is not as it should be, and what is done about it; nothing: that is beyond this command."""

    where: str
    what: str
    done: str = ""


class _Still:
    """A clock that does not move: the journal has the times."""

    def now(self) -> float:
        return 0.0


def repair_store(store: SqlStore, *, archive: Archive | None = None, dry_run: bool = False) -> list[Mended]:
    """Find what would keep a service from starting, and set it aside unless it is a dry run; `archive` has the jobs that left the store."""
    broken = store.check()
    if broken:
        return [Mended("database", broken, "")]
    found: list[Mended] = []
    with store.transaction() as write:
        found += _Repair(store, write, archive, dry_run).run()
    return found


class _Repair:
    def __init__(self, store: SqlStore, write: Transaction, archive: Archive | None, dry_run: bool) -> None:
        self.store, self.write, self.archive, self.dry_run = store, write, archive, dry_run

    def run(self) -> Iterator[Mended]:
        """Jobs, then the newest checkpoint that can be read, then the lines behind it."""
        readable = []
        for record in self.store.jobs():
            try:
                Job.from_record(record)
                readable.append(record)
            except Exception as error:
                yield Mended(f"job {record.get('id', '?')}", f"its record cannot be read: {one_line(error)}")
        ways = Launches(readable, self.archive)
        yield from self._twice()
        loop, after = None, 0
        for number, covers, saved in reversed(self.store.numbered_checkpoints()):
            try:
                loop, after = _loop(saved, ways), covers
                break
            except Exception as error:
                if not self.dry_run:
                    self.write.set_checkpoint_aside(number)
                yield Mended(f"checkpoint {number}", f"cannot be read: {one_line(error)}", "set aside; an older one and the journal do")
        if loop is None:
            if self.store.checkpoint() is not None:
                yield Mended("checkpoints", "none can be read", "")
            return
        past = Past.read(self.store.journal(after))
        past.fold(loop)
        for line, why in past.aside.items():
            yield self._aside(line, why)

    def _twice(self) -> Iterator[Mended]:
        """Decisions that are recorded twice; versions before this one did that when they were killed."""
        seen: set[int] = set()
        for number, line in self.store.journal(kind="decision"):
            decision = line.get("decision")
            if decision in seen:
                yield self._aside(number, f"records decision {decision} once more")
            elif isinstance(decision, int):
                seen.add(decision)

    def _aside(self, number: int, why: str) -> Mended:
        if not self.dry_run:
            self.write.entries([Entry("aside", {"number": number, "why": why})])
        return Mended(f"journal line {number}", why, "set aside")


def _loop(saved: Saved, ways: Launches) -> Live:
    cluster = decode_cluster(Reader(saved["snapshot"], "checkpoint"))
    setup = Setup.from_json(saved["setup"])
    loop = make_loop(setup, saved, cluster, None, _Still())
    t = loop.state.tables
    loop.inbox.able = lambda row: setup.able(ways[t.ids[row]], t.cluster)
    return loop
