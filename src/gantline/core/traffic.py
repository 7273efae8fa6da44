"""What a trace says of how jobs use links: how long an iteration takes alone, how long it communicates, and at which bandwidth.

Metrics: `iteration_time` and `stage_network` in seconds, `link_bandwidth` in GB/s (unknown: as much as the link has). A job communicates
at the end of its iteration. One of which the first two are unknown, or that never communicates, uses no link.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints

ITERATION, NETWORK, BANDWIDTH = "iteration_time", "stage_network", "link_bandwidth"


class Traffic(NamedTuple):
    """Per job: seconds of an iteration, seconds of it on the network, GB/s meanwhile (infinite: as much as there is)."""

    iteration: Floats
    network: Floats
    bandwidth: Floats

    @staticmethod
    def read(metric: Callable[[str, Ints], Floats], rows: Ints) -> Traffic:
        """The columns of some rows; zeros where a job uses no link."""
        iteration, network, bandwidth = (np.asarray(metric(name, rows), dtype=np.float64) for name in (ITERATION, NETWORK, BANDWIDTH))
        known: Bools = (iteration > 0.0) & (network > 0.0) & (network <= iteration)
        asked = np.where(bandwidth > 0.0, bandwidth, np.inf)
        return Traffic(np.where(known, iteration, 0.0), np.where(known, network, 0.0), np.where(known, asked, 0.0))

    @property
    def known(self) -> Bools:
        """Which jobs use links."""
        return np.asarray(self.iteration > 0.0)

    def mean(self, job: int, most: float) -> float:
        """GB/s on average over an iteration, with `most` at any time."""
        if not self.iteration[job] > 0.0:
            return 0.0
        return float(min(self.bandwidth[job], most) * self.network[job] / self.iteration[job])


class TrafficFault(NamedTuple):
    """Traffic that cannot be: of which job (its place), in which metric, what is wrong, and what would be right."""

    job: int
    metric: str
    what: str
    fix: str


def traffic_fault(iteration: Floats, network: Floats, bandwidth: Floats) -> TrafficFault | None:
    """The first fault in what jobs say of their traffic; unknown values are none."""
    part = "seconds from 0 to those of iteration_time, or leave both empty: the job uses no link"
    for metric, bad, what, fix in (
        (NETWORK, network < 0.0, "communicates for {1:g} s of an iteration", part),
        (NETWORK, network > iteration, "communicates for {1:g} s of an iteration of {0:g} s", part),
        (BANDWIDTH, bandwidth <= 0.0, "sends at {2:g} GB/s", "GB/s above 0, or leave it empty: as much as its narrowest link has"),
    ):
        if bad.any():
            job = int(np.flatnonzero(bad)[0])
            return TrafficFault(job, metric, what.format(iteration[job], network[job], bandwidth[job]), fix)
    return None
