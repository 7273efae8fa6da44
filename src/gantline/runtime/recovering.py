"""How a scheduler begins: from nothing, or from the newest checkpoint and the journal behind it; on the devices that there are now."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gantline.core.inputs import Input, Use, decode_input
from gantline.drivers.live import Letter
from gantline.runtime.after_step import Observer
from gantline.runtime.book import Book
from gantline.runtime.clock import WallClock
from gantline.runtime.endings import Endings
from gantline.runtime.launch import slots_only
from gantline.runtime.local.devices import changes
from gantline.runtime.progress import Progress
from gantline.runtime.records import Entry
from gantline.runtime.setup import Setup, checkpoint_of, make_loop

if TYPE_CHECKING:
    from gantline.runtime.scheduler import Scheduler


def recover(scheduler: Scheduler) -> None:
    """Go on where the store says that we were, or begin."""
    saved = scheduler.store.checkpoint()
    if saved is None:
        scheduler.setup = replace(scheduler.setup, **scheduler.anew)
        scheduler.born = time.time()
        scheduler.clock = WallClock(scheduler.born)
        scheduler.loop = make_loop(scheduler.setup, None, scheduler.runner.cluster, scheduler.runner, scheduler.clock)
        scheduler.store.append([Entry("checkpoint", checkpoint_of(scheduler.loop, scheduler.setup, scheduler.born))])
        script: list[tuple[float, Input]] = []
    else:
        after, value = saved
        scheduler.setup, scheduler.born = Setup.from_json(value["setup"]), float(value["born"])
        lines = [line for _, line in scheduler.store.journal(after)]
        script = [(float(line["heard"]), decoded(line)) for line in lines if "input" in line]
        scheduler.lines = len(lines)
        least = max((at for at, _ in script), default=float(value["snapshot"]["now"]))
        scheduler.clock = WallClock(scheduler.born, least)
        scheduler.loop = make_loop(scheduler.setup, value, scheduler.runner.cluster, scheduler.runner, scheduler.clock)
    scheduler.book = Book(scheduler.store.jobs())
    scheduler.endings, scheduler.observer, scheduler.progress = Endings(scheduler), Observer(scheduler), Progress(scheduler)
    _tell_abilities(scheduler)
    scheduler.loop.fold(script)
    for _, told in script:
        if isinstance(told, Use):
            scheduler.setup = replace(scheduler.setup, policy=told.policy, settings=dict(told.settings))
    if replace(scheduler.setup, **scheduler.anew) != scheduler.setup:
        _set_up_anew(scheduler)


def _tell_abilities(scheduler: Scheduler) -> None:
    t = scheduler.loop.state.tables
    scheduler.loop.postbox.able = lambda row: scheduler.book[t.ids[row]].launch.can(slots_only(t.cluster))


def _set_up_anew(scheduler: Scheduler) -> None:
    """Go on under other rules: what was is in a checkpoint of its own, so that either side of it can be replayed."""
    scheduler.setup = replace(scheduler.setup, **scheduler.anew)
    saved = checkpoint_of(scheduler.loop, scheduler.setup, scheduler.born)
    scheduler.loop = make_loop(scheduler.setup, saved, scheduler.runner.cluster, scheduler.runner, scheduler.clock)
    _tell_abilities(scheduler)
    scheduler.loop.fold(())
    scheduler.store.append([Entry("checkpoint", saved)])
    scheduler.lines = 0


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

    scheduler.loop.post(Letter(events, done, alone=True, must=True))


def decoded(line: Mapping[str, Any]) -> Input:
    """The input of a journal line."""
    return decode_input({key: line[key] for key in line if key not in ("heard", "after")})
