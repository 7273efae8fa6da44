"""The calendar of ElasticFlow's artifact: at most one event per time, with the jobs that arrive and those that end then."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Event:
    """The jobs that arrive and those that end; an event without jobs causes a round."""

    arrivals: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


class Calendar:
    """Events by time."""

    def __init__(self) -> None:
        self.events: dict[float, Event] = {}

    def add(self, time: float) -> Event:
        """The event at that time, made if absent."""
        return self.events.setdefault(time, Event())

    def move(self, job: int, old: float, new: float) -> None:
        """Move a job's end; an event without jobs is removed."""
        if old == new:
            return
        there = self.events.get(old)
        if there is not None and job in there.ends:
            there.ends.remove(job)
            if not (there.arrivals or there.ends):
                del self.events[old]
        self.add(new).ends.append(job)

    def pop(self, time: float) -> Event:
        return self.events.pop(time, Event())

    def first(self) -> float:
        """The time of the earliest event."""
        return min(self.events)

    def merge(self, now: float, slot: float) -> None:
        """All events within a slot become one at its end, unless a single event is left."""
        if len(self.events) < 2 or self.first() - now > slot:
            return
        near = sorted(time for time in self.events if time - now <= slot)
        together = Event()
        for time in near:
            event = self.events.pop(time)
            together.arrivals += event.arrivals
            together.ends += event.ends
        self.events[now + slot] = together
