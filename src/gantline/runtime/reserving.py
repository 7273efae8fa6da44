"""Windows of a live service: which devices they get is known before anything is written down, and told to whoever asked."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING

from gantline.core.inputs import Input, Reserve, Unreserve
from gantline.core.windows import AdvanceWindow
from gantline.drivers.message_queue import Message
from gantline.runtime.answers import settle, wait
from gantline.runtime.records import Entry

if TYPE_CHECKING:
    from gantline.runtime.scheduler import Scheduler


def take_in(scheduler: Scheduler, value: Reserve | Unreserve) -> AdvanceWindow:
    """Let the input enter; the window that it is about, with its name and the places that it has."""
    future: Future[AdvanceWindow] = Future()
    found: list[AdvanceWindow] = []

    def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
        found.append(scheduler.loop.engine.windows.check(replace(value, time=at)))
        return [Reserve(at, found[0]) if isinstance(value, Reserve) else value], []

    scheduler.post(Message((), lambda error: settle(future, error, found[0] if found else None), open_, alone=True))
    window = wait(future)
    scheduler.ask(scheduler.republish)
    return window
