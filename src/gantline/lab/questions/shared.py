"""One answer for all equal questions: made in the background, kept until the state changes.

A question never waits: its answer is ready, or is being made. `since` is the state that the asker has seen: an answer about
it or a later one will do, so that one that was begun a moment ago serves all.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

MOST = 64  # answers that are kept


@dataclass(frozen=True)
class Shared:
    """An answer, or why there is none, about the state of that version."""

    version: int
    answer: dict[str, Any] | None = None
    error: BaseException | None = None


class SharedAnswers:
    """Answers by question; one thread makes them, one after the other."""

    def __init__(self, version: Callable[[], int]) -> None:
        self._version = version
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Shared] = OrderedDict()
        self._wanted: OrderedDict[Hashable, Callable[[], dict[str, object]]] = OrderedDict()
        self._making: tuple[Hashable, int] | None = None
        self.made = 0  # how many were

    def get(self, what: Hashable, make: Callable[[], dict[str, Any]], since: int) -> dict[str, Any] | None:
        """The answer; None: it is being made. An error is raised once; the next question tries again."""
        with self._lock:
            found = self._kept.get(what)
            if found is not None and found.version >= since:
                if found.error is not None:
                    del self._kept[what]
                    raise found.error
                return found.answer
            under_way = self._making is not None and self._making[0] == what and self._making[1] >= since
            if not under_way and what not in self._wanted:
                self._wanted[what] = make
                if self._making is None:
                    self._making = (None, -1)
                    threading.Thread(target=self._work, name="gantline-questions", daemon=True).start()
        return None

    def newest(self, what: Hashable) -> Shared | None:
        """The answer that was made last, whatever has changed since; None: there is none."""
        with self._lock:
            found = self._kept.get(what)
        return found if found is not None and found.error is None else None

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._wanted:
                    self._making = None
                    return
                what, make = self._wanted.popitem(last=False)
                version = self._version()
                self._making = (what, version)
            try:
                found = Shared(version, make())
            except BaseException as error:  # it is raised to the asker
                found = Shared(version, error=error)
            with self._lock:
                self.made += 1
                self._kept[what] = found
                self._kept.move_to_end(what)
                while len(self._kept) > MOST:
                    self._kept.popitem(last=False)
