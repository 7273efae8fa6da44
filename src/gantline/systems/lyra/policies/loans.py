"""How many servers the inference cluster can spare: a schedule that was given, or the load of a day and a night.

The number is the inference cluster's own decision (Lyra, EuroSys 2023, section 2); the scheduler receives it, and has to keep to it. The
generated load is a cosine between `low` and `high` over a day, with its peak at `peak` and noise that is new every few minutes; what is
needed is rounded up to whole servers.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

from gantline.core.errors import UsageError
from gantline.core.rng import stream
from gantline.core.units import seconds

_DAY = 86_400.0


@dataclass(frozen=True)
class DayAndNight:
    """Parts of the inference cluster that its own load needs."""

    low: float = 0.35
    high: float = 0.95
    peak: float = 0.5 * _DAY
    noise: float = 0.05
    step: float = 300.0
    seed: int = 0

    def load(self, now: float) -> float:
        """The part that is needed in the few minutes around now."""
        number = math.floor(now / self.step + 1e-9)
        wave = 0.5 + 0.5 * math.cos(2.0 * math.pi * (number * self.step - self.peak) / _DAY)
        drawn = self.noise * float(stream(self.seed, number, "inference load").standard_normal()) if self.noise > 0.0 else 0.0
        return min(max(self.low + (self.high - self.low) * wave + drawn, 0.0), 1.0)

    def spare(self, now: float, servers: int) -> int:
        """Servers that can be lent now."""
        return servers - math.ceil(self.load(now) * servers - 1e-9)

    def next_change(self, now: float, servers: int) -> float:
        """When the number changes next, within a day."""
        have, number = self.spare(now, servers), math.floor(now / self.step + 1e-9)
        for ahead in range(1, math.ceil(_DAY / self.step) + 1):
            then = (number + ahead) * self.step
            if self.spare(then, servers) != have:
                return then
        return now + _DAY


@dataclass(frozen=True)
class Schedule:
    """So many servers from each time on."""

    times: tuple[float, ...]
    servers: tuple[int, ...]

    @staticmethod
    def parse(text: str) -> Schedule:
        """From ``0:4,2h:0,20h:8``."""
        pairs = []
        for part in text.split(","):
            time, _, count = part.rpartition(":")
            if not count.strip().isdigit() or not time:
                raise UsageError(f"'{part}' is no loan", where="policy 'lyra': loans", fix="TIME:SERVERS joined by commas, as in 0:4,2h:0")
            pairs.append((seconds(time, "policy 'lyra': loans"), int(count)))
        if pairs != sorted(pairs) or len({time for time, _ in pairs}) < len(pairs):
            raise UsageError(f"'{text}' is not in order of time", where="policy 'lyra': loans", fix="later times behind earlier ones")
        return Schedule(tuple(time for time, _ in pairs), tuple(count for _, count in pairs))

    def spare(self, now: float, servers: int) -> int:
        """Servers that can be lent now; none before the first time."""
        at = bisect.bisect_right(self.times, now)
        return min(self.servers[at - 1], servers) if at else 0

    def next_change(self, now: float, servers: int) -> float:
        """When another number begins."""
        at = bisect.bisect_right(self.times, now)
        return self.times[at] if at < len(self.times) else math.inf
