"""Windows of a live service: their devices are chosen before anything is stored, and are the answer to the request."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace

from gantline.core.inputs import Input, Reserve, Unreserve
from gantline.core.windows import AdvanceWindow
from gantline.engine.drivers.live import Message
from gantline.live.answers import settle
from gantline.live.loop_thread import LoopThread
from gantline.live.records import Entry


def take_in(thread: LoopThread, value: Reserve | Unreserve) -> AdvanceWindow:
    """Let the input enter; the window that it is about, with its name and the places that it has."""
    future: Future[AdvanceWindow] = Future()
    found: list[AdvanceWindow] = []

    def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
        found.append(thread.loop.engine.windows.check(replace(value, time=at)))
        return [Reserve(at, found[0]) if isinstance(value, Reserve) else value], []

    thread.post(Message((), lambda error: settle(future, error, found[0] if found else None), open_, alone=True))
    return thread.wait(future)
