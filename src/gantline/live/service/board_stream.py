"""What one kind of client sees of the board: operators see everything, users their own jobs and that other jobs exist.

Clients that see the same share one audience, so each version is encoded once, as JSON and compressed, for any number of clients.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool

from gantline.live.service.access import Caller, Role
from gantline.live.service.live_board import COLUMNS, ENDED, KEY, PAUSE, USER, BoardChange, LiveBoard, Row, hidden

_FRAMES = 8  # changes that are kept encoded: clients that keep up ask for the newest one
_FAST = 1  # compression: five times smaller already, at a tenth of the time of the default


def frame(event: str, body: dict[str, Any]) -> bytes:
    """One event in the format of server-sent events."""
    return f"event: {event}\ndata: {_json(body)}\n\n".encode()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Audience:
    """`user`: whose jobs it sees; None: all users'."""

    def __init__(self, board: LiveBoard, user: str | None) -> None:
        self.board, self.user = board, user
        self._lock = threading.Lock()
        self._whole: tuple[str, bytes] | None = None  # version, and the board compressed
        self._frames: OrderedDict[int, bytes] = OrderedDict()

    def seen(self, row: Row) -> Row | None:
        """A row as this audience sees it; None: not at all, because it ended and is of another user."""
        if self.user is None or row[USER] == self.user:
            return row
        return hidden(row) if row[ENDED] is None else None

    def whole(self) -> tuple[str, bytes]:
        """The version and the whole board, compressed."""
        with self._lock:
            self.board.look()
            with self.board.lock:
                if self._whole is None or self._whole[0] != self.board.version:
                    body = self._body()
                    self._whole = body["version"], gzip.compress(_json(body).encode(), _FAST, mtime=0)
            return self._whole

    def _body(self) -> dict[str, Any]:
        board = self.board
        rows = [row for one in board.rows.values() if (row := self.seen(one)) is not None]
        columns = list(zip(*rows)) or [()] * len(COLUMNS)
        nodes = list(zip(*board.nodes)) or [()] * 4
        return {
            "version": board.version, "now": board.now, "head": board.head, "columns": COLUMNS,
            "jobs": dict(zip(COLUMNS, columns)), "queue": board.queue.tolist(),
            "nodes": dict(zip(("name", "type", "first", "count"), nodes)),
            "devices": {"state": "".join(one[1] for one in board.devices), "jobs": [one[2] for one in board.devices]},
        }  # fmt: skip

    def frame(self, change: BoardChange) -> bytes:
        """A change as an event; it is encoded for the first client that needs it."""
        found = self._frames.get(change.number)
        if found is None:
            found = self._frames[change.number] = frame("changes", self._step(change))
            while len(self._frames) > _FRAMES:
                self._frames.popitem(last=False)
        return found

    def _step(self, change: BoardChange) -> dict[str, Any]:
        jobs = [row for one in change.jobs if (row := self.seen(one)) is not None]
        gone = change.gone
        if len(jobs) < len(change.jobs):
            shown = {row[KEY] for row in jobs}
            gone = [*gone, *(row[KEY] for row in change.jobs if row[KEY] not in shown)]
        parts = {"jobs": jobs, "gone": gone, "queue": change.queue, "devices": change.devices}
        head = {"version": self.board.version_of(change.number), "from": self.board.version_of(change.number - 1)}
        return {**head, "now": change.now, "head": change.head, **{name: part for name, part in parts.items() if part}}


class Audiences:
    """The audiences of a board, by what they see; those of users who have been away for long are dropped."""

    MOST = 64

    def __init__(self, board: LiveBoard) -> None:
        self.board = board
        self._lock = threading.Lock()
        self._known: OrderedDict[str | None, Audience] = OrderedDict()

    def of(self, caller: Caller) -> Audience:
        user = None if caller.may(Role.OPERATOR) else caller.user
        with self._lock:
            found = self._known.setdefault(user, Audience(self.board, user))
            self._known.move_to_end(user)
            while len(self._known) > self.MOST:
                self._known.popitem(last=False)
            return found


# Streams changes of the board as events to any number of clients: one task checks for all of them, twice a second,
# while there are any.

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
