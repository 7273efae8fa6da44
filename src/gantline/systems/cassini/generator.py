"""Jobs that compute and communicate in turn, of a few kinds, for clusters whose links are shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from gantline.core.errors import near
from gantline.traces.generators.drawing import Streams, as_trace
from gantline.traces.generators.given import check_above_zero, fault, settings_of
from gantline.traces.trace import Trace

#: seconds of an iteration, the part of it on the network, the part of a node's link that it uses meanwhile
KINDS = {
    "mixed": ((0.10, 0.5, 1.0), (0.12, 0.4, 1.0), (0.20, 0.5, 1.0), (0.20, 0.3, 0.8), (0.24, 0.45, 1.0), (0.30, 0.3, 1.0)),
    "related": ((0.10, 0.5, 1.0), (0.20, 0.5, 1.0), (0.20, 0.4, 1.0), (0.20, 0.3, 0.8), (0.40, 0.4, 1.0), (0.40, 0.5, 1.0)),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PeriodicSettings:
    """``least`` and ``most`` are GPUs of a job, ``seconds`` its mean duration alone, ``gap`` the mean time between arrivals,
    ``bandwidth`` that of a node's link in GB/s, ``periods`` whether iterations are multiples of one another (related) or not (mixed)."""

    jobs: int = 15
    least: int = 2
    most: int = 8
    seconds: float = 1200.0
    gap: float = 60.0
    bandwidth: float = 6.25
    periods: str = "mixed"

    def __post_init__(self) -> None:
        check_above_zero(self, "jobs", "least", "most", "seconds", "gap", "bandwidth")
        if self.periods not in KINDS:
            raise fault("periods", f"there are no '{self.periods}' periods", near(self.periods, KINDS))
        if self.most < self.least:
            raise fault("most", f"{self.most} is below least, {self.least}")


def periodic(seed: int, given: Mapping[str, object]) -> Trace:
    """The generator called ``periodic``."""
    wanted = settings_of(PeriodicSettings, given)
    streams, count = Streams(seed), wanted.jobs
    kinds = np.array(KINDS[wanted.periods])
    kind = kinds[(streams.uniforms("kind", count) * len(kinds)).astype(np.int64)]
    gaps = -np.log1p(-streams.uniforms("arrival", count)) * wanted.gap
    sizes = wanted.least + np.floor(streams.uniforms("size", count) * (wanted.most - wanted.least + 1)).astype(np.int64)
    columns = {
        "arrival": pl.Series(np.round(np.cumsum(gaps) - gaps[0], 1)),
        "gpus": pl.Series(sizes),
        "duration": pl.Series(np.round(wanted.seconds * (0.5 + streams.uniforms("duration", count)), 1)),
        "iteration_time": pl.Series(kind[:, 0]),
        "stage_network": pl.Series(np.round(kind[:, 0] * kind[:, 1], 6)),
        "link_bandwidth": pl.Series(np.round(kind[:, 2] * wanted.bandwidth, 6)),
    }
    return as_trace(columns, f"generated: periodic, seed {seed}")
