"""The links of a cluster at one instant: which jobs cross each of them, and how much of it they use."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster import Link
from gantline.core.lending import Lent
from gantline.core.traffic import Traffic


class LinksNow:
    """The links, and columns with an entry for each."""

    def __init__(self, lent: Lent, rows: Ints) -> None:
        self._lent, self._rows = lent, rows
        self._links = lent.cluster().links

    def __len__(self) -> int:
        return len(self._links)

    def __getitem__(self, at: int) -> Link:
        return self._links[at]

    def __iter__(self) -> Iterator[Link]:
        return iter(self._links)

    def __eq__(self, other: object) -> bool:
        return self._links == (other._links if isinstance(other, LinksNow) else other)

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def bandwidth(self) -> Floats:
        """GB/s of each."""
        return np.array([link.bandwidth for link in self._links])

    @cached_property
    def _crossed(self) -> list[tuple[int, ...]]:
        routes = self._lent.cluster().routes
        return [routes.crossed(self._lent.devices(row)) if self._links else () for row in self._rows.tolist()]

    def of(self, job: int) -> tuple[int, ...]:
        """The links that a job crosses, by its position in the snapshot."""
        return self._crossed[job]

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """The positions of the jobs that cross each link."""
        found: list[list[int]] = [[] for _ in self._links]
        for job, crossed in enumerate(self._crossed):
            for link in crossed:
                found[link].append(job)
        return tuple(map(tuple, found))

    @cached_property
    def load(self) -> Floats:
        """The part of each link that its jobs would use on average if they ran at their full speed; above one: it is overloaded."""
        traffic = Traffic.read(self._lent.metric, self._rows)
        found = np.zeros(len(self._links))
        for link, jobs in enumerate(self.users):
            found[link] = sum(traffic.mean(job, self._links[link].bandwidth) for job in jobs) / self._links[link].bandwidth
        return found
