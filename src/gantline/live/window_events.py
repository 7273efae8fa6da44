"""Events for windows that begin and end: each is recorded once, also across restarts of the service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gantline.core.windows import AdvanceWindow
from gantline.live.records import Entry


class WindowEvents:
    """Compares the windows that there are with those that were last seen."""

    def __init__(self, windows: Mapping[str, AdvanceWindow], earlier_events: Callable[[], list[Mapping[str, Any]]]) -> None:
        self._known = dict(windows)
        self._earlier_events = earlier_events
        self._recorded: set[tuple[float, str]] | None = None  # what has been written down, also by earlier services; None: not read yet

    def look(self, windows: Mapping[str, AdvanceWindow], now: float) -> list[Entry]:
        """The events that are due and not recorded yet."""
        if not windows and not self._known:
            return []
        begun = [(window.start, f"{window.name} begins: {', '.join(window.places)}") for window in windows.values() if window.start <= now]
        gone = [window for name, window in self._known.items() if windows.get(name) != window and window.end <= now]
        self._known = dict(windows)
        if self._recorded is None:
            earlier = [event for event in self._earlier_events() if event["event"] == "window"]
            self._recorded = {(float(event["time"]), str(event["why"])) for event in earlier}
        fresh = [one for one in (*begun, *((window.end, f"{window.name} ends") for window in gone)) if one not in self._recorded]
        self._recorded.update(fresh)
        return [Entry("event", {"time": at, "event": "window", "why": why}) for at, why in fresh]
