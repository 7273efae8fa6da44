"""Estimates with their source: what policies may know about work that is not done yet."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Source(IntEnum):
    """Where an estimate comes from, best first."""

    ORACLE = 0  # simulation only: the truth
    MEASURED = 1  # reported by the job while it runs
    PROFILED = 2
    DECLARED = 3  # what the user said
    SIMILAR = 4  # history of the same user, name and size
    LIMIT = 5  # the time limit
    DEFAULT = 6  # mean residual life


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with a range and a source."""

    value: float
    low: float
    high: float
    source: Source

    @staticmethod
    def exact(value: float) -> Estimate:
        return Estimate(value, value, value, Source.ORACLE)


#: metrics that hold the range of an estimate of total work
LOW, HIGH = "estimate.low", "estimate.high"

#: What a policy may declare in `needs`, and what provides it.
NEEDS = {
    "remaining": "estimated remaining work (oracle, noisy, history or a declared duration)",
    "rates": "speed per device type (options with rates, a throughput table)",
    "scaling": "speed per number of devices",
    "pairs": "speed of jobs that share a device",
    "deadlines": "a deadline per job",
    "some-deadline": "a deadline of at least one job",
    "carbon": "the carbon intensity of the grid over time (--carbon FILE.csv)",
    "power": "the watts of devices (--power)",
    "prices": "the prices of devices (--prices)",
}
