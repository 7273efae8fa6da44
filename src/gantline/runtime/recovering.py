"""How a scheduler begins: from nothing, or from the newest checkpoint and the journal behind it; on the devices that there are now."""

from __future__ import annotations

import logging
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from gantline.core.inputs import Use
from gantline.drivers.journal import Journal
from gantline.drivers.message_queue import Message
from gantline.engine.lost_turns import Incident
from gantline.runtime.after_step import Observer
from gantline.runtime.book import Book
from gantline.runtime.clock import WallClock
from gantline.runtime.endings import Endings
from gantline.runtime.launch import slots_only
from gantline.runtime.local.devices import changes
from gantline.runtime.past import Past
from gantline.runtime.progress import Progress
from gantline.runtime.records import Entry
from gantline.runtime.setup import Setup, checkpoint_of, make_loop

if TYPE_CHECKING:
    from gantline.runtime.scheduler import Scheduler

_LOG = logging.getLogger("gantline.runtime")


def recover(scheduler: Scheduler) -> None:
    """Go on where the store says that we were, or begin."""
    saved = scheduler.store.checkpoint()
    if saved is None:
        scheduler.setup = replace(scheduler.setup, **scheduler.anew)
        scheduler.born = scheduler.wall()
        scheduler.clock = WallClock(scheduler.born, wall=scheduler.wall)
        scheduler.loop = make_loop(scheduler.setup, None, scheduler.runner.cluster, scheduler.runner, scheduler.clock)
        scheduler.store.append([Entry("checkpoint", checkpoint_of(scheduler.loop, scheduler.setup, scheduler.born))])
        past = Past()
    else:
        after, value = saved
        scheduler.setup, scheduler.born = Setup.from_json(value["setup"]), float(value["born"])
        past = Past.read(scheduler.store.journal(after))
        scheduler.lines = past.lines
        least = max([float(value["snapshot"]["now"]), past.until, *(at for at, _ in past.script)])
        scheduler.clock = WallClock(scheduler.born, least, wall=scheduler.wall)
        scheduler.loop = make_loop(scheduler.setup, value, scheduler.runner.cluster, scheduler.runner, scheduler.clock)
    scheduler.archived = scheduler.store.archived()
    scheduler.book = Book(scheduler.store.jobs(), int(scheduler.archived.get("newest", 0)))
    scheduler.endings, scheduler.observer, scheduler.progress = Endings(scheduler), Observer(scheduler), Progress(scheduler)
    _tell_abilities(scheduler)
    _live_through(scheduler, past)
    for _, told in past.script:
        if isinstance(told, Use):
            scheduler.setup = replace(scheduler.setup, policy=told.policy, settings=dict(told.settings))
    if replace(scheduler.setup, **scheduler.anew) != scheduler.setup:
        _set_up_anew(scheduler)


def _live_through(scheduler: Scheduler, past: Past) -> None:
    """Fold the past, and complete its record: a decision that was made, or was to be made, when the last life ended is written down now."""
    made = Journal(whole=False)
    scheduler.loop.engine.recorder = made.decided
    past.fold(scheduler.loop)
    scheduler.loop.engine.recorder = None
    known = [(line["decision"], line["now"], line["hash"]) for line in past.decisions]
    again = [(line["decision"], line["now"], line["hash"]) for line in made.lines]
    entries = [Entry("aside", {"number": number, "why": why}) for number, why in past.aside.items()]
    if again[: len(known)] == known:
        entries += [Entry("journal", line) for line in made.lines[len(known) :]]
    else:  # the policy was changed since, or a line was set aside: what follows has a checkpoint of its own to be replayed from
        place = next((k for k, (one, other) in enumerate(zip(known, again)) if one != other), min(len(known), len(again)))
        number = known[place][0] if place < len(known) else again[place][0]
        what = f"the past gives another decision {number} than was recorded (was the policy changed?): it goes on from here"
        scheduler.loop.engine.incidents.append(Incident(scheduler.loop.state.now, scheduler.loop.state.decision, what))
        scheduler.loop.state.decision = max(scheduler.loop.state.decision, *(line[0] for line in known))
        entries.append(Entry("checkpoint", {**checkpoint_of(scheduler.loop, scheduler.setup, scheduler.born), "breaks": True}))
    if entries:
        scheduler.store.append(entries)
    for number, why in past.aside.items():
        scheduler.set_aside.append(f"line {number} of the journal is set aside: it {why}")
        _LOG.warning(scheduler.set_aside[-1])


def _tell_abilities(scheduler: Scheduler) -> None:
    t = scheduler.loop.state.tables
    scheduler.loop.inbox.able = lambda row: scheduler.book[t.ids[row]].launch.can(slots_only(t.cluster))


def _set_up_anew(scheduler: Scheduler) -> None:
    """Go on under other rules: what was is in a checkpoint of its own, so that either side of it can be replayed."""
    scheduler.setup = replace(scheduler.setup, **scheduler.anew)
    saved = checkpoint_of(scheduler.loop, scheduler.setup, scheduler.born)
    scheduler.loop = make_loop(scheduler.setup, saved, scheduler.runner.cluster, scheduler.runner, scheduler.clock)
    scheduler.store.append([Entry("checkpoint", {**saved, "breaks": True})])
    scheduler.lines = 0
    _tell_abilities(scheduler)
    _live_through(scheduler, Past())


def is_long_over(scheduler: Scheduler, job: str) -> bool:
    """Whether nothing of a job can still run: it has ended and is not on its way out, or is in the archive."""
    if job not in scheduler.book:
        number = job.partition("_")[0]
        return number.isdigit() and int(number) <= scheduler.book.newest
    row = scheduler.loop.engine.inputs.rows.of(job)
    return scheduler.book[job].ended and (row is None or row not in scheduler.loop.reconciler.live)


def meet_machine(scheduler: Scheduler) -> None:
    """Devices may have come and gone while nobody was here."""
    known = scheduler.loop.state.tables.cluster
    scheduler.runner.machine, events = changes(scheduler.runner.machine, known, frozenset(scheduler.setup.absent))
    if not events:
        return
    down = {event.name for event in events if event.kind == "down"}
    up = {event.name for event in events if event.kind == "up"}
    absent = tuple(sorted((set(scheduler.setup.absent) | down) - up))

    def done(error: BaseException | None) -> None:
        if error is None:
            scheduler.setup, scheduler.lines = replace(scheduler.setup, absent=absent), sys.maxsize  # to be remembered soon

    scheduler.loop.messages.post(Message(events, done, alone=True, must=True))
