"""Small random clusters and traces for tests, drawn by hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl
from hypothesis import strategies as st

from gantline.traces.trace import Trace


@dataclass(frozen=True)
class Workload:
    """Nodes (devices each) and jobs (arrival, GPUs, duration); prints as what it takes to try again."""

    nodes: tuple[int, ...]
    jobs: tuple[tuple[float, int, float], ...]

    @property
    def spec(self) -> str:
        return ",".join(f"1x{size}" for size in self.nodes)

    @property
    def records(self) -> list[dict[str, Any]]:
        return [
            {"job": f"j{row}", "arrival": float(arrival), "gpus": gpus, "duration": float(duration)}
            for row, (arrival, gpus, duration) in enumerate(self.jobs)
        ]

    @cached_property
    def trace(self) -> Trace:
        frame = pl.DataFrame(self.records, schema={"job": pl.String, "arrival": pl.Float64, "gpus": pl.Int64, "duration": pl.Float64})
        return Trace(frame, "drawn")


@st.composite
def workloads(draw: st.DrawFn, whole: bool = True, uneven: bool = True, most: int = 12) -> Workload:
    """A cluster of up to five nodes and jobs that all fit on it; `whole`: times are whole seconds."""
    count = draw(st.integers(1, 5))
    if uneven and draw(st.booleans()):
        nodes = tuple(draw(st.integers(1, 5)) for _ in range(count))
    else:
        nodes = (draw(st.integers(1, 4)),) * count
    gaps = st.sampled_from([0, 0, 1, 7, 60, 100]) if whole else st.floats(0.0, 100.0)
    lengths = st.integers(1, 900) if whole else st.floats(1.0, 900.0)
    largest = min(sum(nodes), 10)  # larger than a node: it takes several
    arrival, jobs = 0.0, []
    for _ in range(draw(st.integers(1, most))):
        arrival += float(draw(gaps))
        jobs.append((arrival, draw(st.integers(1, largest)), float(draw(lengths))))
    return Workload(nodes, tuple(jobs))
