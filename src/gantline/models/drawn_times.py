"""Times drawn from what was measured, so that a prediction has a spread.

A bootstrap in two steps. A profile is the mean of a few measurements: each draw takes the mean of as many that are picked anew, with
replacement, once per kind of job. Then every start, stop, resume and run of a job is picked by itself. A kind was measured once or twice
only, so measurements are pooled: of starts, stops and resumes over the mean of all kinds on the same seat, which counts differences
between kinds as chance and errs on the wide side. Speeds are pooled over the mean of their kind, where whole jobs have shown them
(`Bundle.lives`); else over the fitted speed, which differs less: it was watched for seconds, beside the same neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from statistics import fmean

from gantline.models.bundle import SAMPLED, Bundle


@dataclass(frozen=True)
class DrawnTimes:
    """Factors by which times and speeds differ from their profile, in the draw of that number."""

    pooled: Mapping[str, tuple[float, ...]]  # by what of `SAMPLED`: measurements over their mean
    draw: int
    _means: dict[tuple[str, str, int], float] = field(default_factory=dict, compare=False, repr=False)  # of kinds, once picked

    @classmethod
    def of(cls, bundle: Bundle, draw: int) -> DrawnTimes:
        """From all that a bundle has of each."""
        pooled: dict[str, list[float]] = {what: [] for what in SAMPLED}
        for seat in bundle.seats:
            for what in SAMPLED:
                seen = [one for job in bundle.jobs.values() if seat in job.alone for one in job.alone[seat].samples.get(what, ())]
                mean = 1.0 if what == "speed" or not seen else fmean(seen)
                pooled[what] += [one / mean for one in seen if mean > 0.0]
        if bundle.lives:
            pooled["speed"] = [*bundle.lives]
        return cls({what: tuple(ratios) for what, ratios in pooled.items()}, draw)

    def factor(self, what: str, kind: str, measured: int, *occasion: object) -> float:
        """That of one occasion of a kind of job which was measured so many times; 1 where nothing was."""
        pool = self.pooled.get(what, ())
        if not pool:
            return 1.0
        known = what, kind, max(measured, 1)
        if known not in self._means:
            self._means[known] = fmean(self._pick(pool, what, kind, place) for place in range(known[2]))
        return self._means[known] * self._pick(pool, what, kind, *occasion)

    def _pick(self, pool: tuple[float, ...], *key: object) -> float:
        digest = blake2b(repr((self.draw, *key)).encode(), digest_size=8).digest()
        return pool[int.from_bytes(digest, "little") % len(pool)]
