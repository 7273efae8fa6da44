"""Streams changes of the board as events to any number of clients: one task checks for all of them, twice a second, while there are any."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool

from gantline.live.service.board.audience import Audience, frame
from gantline.live.service.board.board import PAUSE, LiveBoard

BEAT = 5.0  # seconds between two heartbeats
_CHECK = 2.0  # seconds between two checks whether a client may still listen
Closing = Callable[[], dict[str, Any] | None]  # why a client may listen no more; None: it may


class Pump:
    """Updates the board for all clients that listen."""

    def __init__(self, board: LiveBoard, leaving: Callable[[], bool]) -> None:
        self.board, self.leaving = board, leaving
        self._listeners = 0
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()

    async def _run(self) -> None:
        while self._listeners and not self.leaving():
            before = self.board.number
            if await run_in_threadpool(self.board.look) != before:
                self._ring()
            await asyncio.sleep(PAUSE)
        self._task = None
        self._ring()

    def _ring(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def listen(self, audience: Audience, after: str, closing: Closing) -> AsyncIterator[bytes]:
        """Events behind a version, until the client goes or may listen no more."""
        self._listeners += 1
        try:
            if self._task is None:
                self._task = asyncio.get_running_loop().create_task(self._run())
            async for event in self._events(audience, after, closing):
                yield event
        finally:
            self._listeners -= 1

    async def _events(self, audience: Audience, after: str, closing: Closing) -> AsyncIterator[bytes]:
        board = self.board
        await run_in_threadpool(board.look)
        number, layout = board.number_of(after), board.layout
        if number is None:
            why = f"version '{after[:40]}' is not known here" if after else "no version was given"
            yield frame("reset", {"why": why})
            return
        beat = check = time.monotonic()
        yield frame("beat", {"now": round(board.clock(), 3), "version": board.version_of(number)})
        while True:
            news = self._news
            changes = board.since(number)
            if board.layout != layout or (changes and changes[0].number != number + 1):
                yield frame("reset", {"why": "there are other nodes" if board.layout != layout else "too far behind"})
                return
            for change in changes:
                yield audience.frame(change)
                number, beat = change.number, time.monotonic()
            if self.leaving():
                yield frame("end", {"why": "the service ends", "fix": "try again in a while", "again": True})
                return
            now = time.monotonic()
            if now - check >= _CHECK:
                check = now
                if (closed := await run_in_threadpool(closing)) is not None:
                    yield frame("end", closed)
                    return
            if now - beat >= BEAT:
                beat = now
                yield frame("beat", {"now": round(board.clock(), 3), "version": board.version_of(number)})
            try:
                async with asyncio.timeout(max(0.05, min(beat + BEAT, check + _CHECK) - time.monotonic())):
                    await news.wait()
            except TimeoutError:
                continue
