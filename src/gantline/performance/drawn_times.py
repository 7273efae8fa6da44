"""Times drawn from what was measured, so that a prediction has a spread.

A bootstrap in two steps. A profile is the mean of a few measurements: each draw takes the mean of as many that are picked anew, with
replacement, once per kind of job. Then every start, stop, resume and run of a job is picked by itself. A kind was measured a few times
only, and times scatter alike around their means, so measurements over their mean are pooled across all kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

from gantline.performance.bundle import SAMPLED, Bundle


@dataclass(frozen=True)
class DrawnTimes:
    """Factors by which times and speeds differ from their profile, in the draw of that number."""

    pooled: Mapping[str, tuple[float, ...]]  # by what of `SAMPLED`: measurements over the mean of their kind
    draw: int

    @classmethod
    def of(cls, bundle: Bundle, draw: int) -> DrawnTimes:
        """From all that a bundle has of each."""
        speeds = [speed for job in bundle.jobs.values() for speed in job.alone.values()]
        return cls({what: tuple(one for speed in speeds for one in speed.samples.get(what, ())) for what in SAMPLED}, draw)

    def factor(self, what: str, kind: str, measured: int, *occasion: object) -> float:
        """That of one occasion of a kind of job which was measured so many times; 1 where nothing was."""
        pool = self.pooled.get(what, ())
        if not pool:
            return 1.0
        count = max(measured, 1)
        mean = sum(self._pick(pool, what, kind, place) for place in range(count)) / count
        return mean * self._pick(pool, what, kind, *occasion)

    def _pick(self, pool: tuple[float, ...], *key: object) -> float:
        digest = blake2b(repr((self.draw, *key)).encode(), digest_size=8).digest()
        return pool[int.from_bytes(digest, "little") % len(pool)]
