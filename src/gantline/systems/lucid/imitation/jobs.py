"""The jobs of a trace as Lucid's simulator reads them, and what becomes of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl

from gantline.core.errors import TraceError
from gantline.systems.lucid.imitation.nodes import Held, LucidNodes, nodes_text
from gantline.traces.trace import Trace


class LucidJob(NamedTuple):
    """A job; times are whole seconds."""

    row: int
    name: str
    vc: str
    submit: int
    gpus: int
    duration: int


class DeviceSpell(NamedTuple):
    """A time in which a job held devices."""

    begin: int
    end: int
    devices: tuple[int, ...]


class RateChange(NamedTuple):
    """From when on a job does how much work per second, and beside which job (empty: alone again)."""

    time: int
    rate: float
    partner: str


@dataclass
class LucidOutcome:
    """What became of a job; times are -1 as long as there is none."""

    start: int = -1
    end: int = -1
    waited: int = 0
    preemptions: int = 0
    profiled: bool = False
    profiling_wait: int = 0
    profile_end: int = -1
    done_in_profiling: bool = False
    nodes: str = ""
    changes: list[RateChange] = field(default_factory=list)
    spells: list[DeviceSpell] = field(default_factory=list)

    def ran(self, begin: int, end: int, held: Held) -> None:
        """Note that it held these devices."""
        self.spells.append(DeviceSpell(begin, end, tuple(device for _, devices in held for device in devices)))
        self.nodes = nodes_text(held)


@dataclass(frozen=True)
class VirtualCluster:
    """A virtual cluster with its jobs in the order of submission."""

    name: str
    nodes: LucidNodes
    jobs: Sequence[LucidJob]


def jobs_of(trace: Trace) -> list[LucidJob]:
    """The jobs of a trace, which counts in whole seconds and names a virtual cluster for each."""
    frame = trace.frame
    if "queue" not in frame.columns:
        fix = "import a log: gantline trace import lucid LOG.csv OUT"
        raise TraceError("has no column 'queue', which names the virtual cluster of each job", file=trace.source, fix=fix)
    columns = []
    for name in ("arrival", "gpus", "duration"):
        values = frame[name].cast(pl.Float64).to_numpy()
        odd = np.flatnonzero((values % 1 != 0) | (values < (name != "arrival")))
        if len(odd):
            row = int(odd[0])
            unit = "GPUs" if name == "gpus" else "seconds"
            what = f"job '{frame['job'][row]}' has {values[row]:g}, and Lucid's simulator counts whole {unit}"
            raise TraceError(what, file=trace.source, line=row + 2, field=name, fix="round it, or use another --regime")
        columns.append(values.astype(np.int64).tolist())
    rows = zip(range(frame.height), frame["job"].to_list(), frame["queue"].to_list(), *columns)
    return [LucidJob(*row) for row in rows]
