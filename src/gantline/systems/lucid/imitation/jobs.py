"""Jobs, nodes and outcomes of Lucid's simulator, and where it puts a gang."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl

from gantline.core.errors import TraceError
from gantline.traces.trace import Trace

# The nodes of a virtual cluster, and where the original puts a gang: on as few nodes as it can, in the tightest gap.


GPUS = 8
"""Of every node."""


class LucidNode:
    """A node by the name that the original prints, and which of its devices no gang holds."""

    def __init__(self, name: int, devices: Sequence[int]) -> None:
        self.name, self.devices, self._idle = name, tuple(devices), list(devices)
        self.free = len(self._idle)

    def take(self, count: int) -> tuple[int, ...]:
        """The first so many of its idle devices."""
        taken, self._idle = self._idle[:count], self._idle[count:]
        self.free -= count
        return tuple(taken)

    def give_back(self, devices: Sequence[int]) -> None:
        self._idle += devices
        self.free += len(devices)


Held = tuple[tuple[LucidNode, tuple[int, ...]], ...]
"""What a gang holds: nodes, and which devices of each."""
Chosen = tuple[tuple[LucidNode, int], ...]
"""Nodes, and how many GPUs of each."""


class LucidNodes:
    """The nodes of one virtual cluster in the order of its list."""

    def __init__(self, devices: Sequence[Sequence[int]]) -> None:
        self.nodes = [LucidNode(name, each) for name, each in enumerate(devices)]

    @property
    def gpus(self) -> int:
        return GPUS * len(self.nodes)

    def take(self, gpus: int) -> Held | None:
        """Place a gang; None: it cannot be placed now."""
        chosen = self._tightest(gpus) if gpus <= GPUS else self._whole_nodes(gpus)
        return None if chosen is None else tuple((node, node.take(count)) for node, count in chosen)

    def widest(self) -> int:
        """The largest gang that one node has room for."""
        return max((node.free for node in self.nodes), default=0)

    def _tightest(self, gpus: int) -> Chosen | None:
        best = None
        for node in self.nodes:
            if gpus <= node.free and (best is None or node.free < best.free):
                best = node
        return None if best is None else ((best, gpus),)

    def _whole_nodes(self, gpus: int) -> Chosen | None:
        """Idle nodes, and the rest on the node that follows them by free GPUs: on the emptiest, not on the one with the tightest gap."""
        whole, rest = divmod(gpus, GPUS)
        ordered = sorted((node for node in self.nodes if node.free), key=lambda node: -node.free)
        chosen, after = ordered[:whole], ordered[whole : whole + 1]
        if len(chosen) < whole or any(node.free < GPUS for node in chosen):
            return None
        held = tuple((node, GPUS) for node in chosen)
        if not rest:
            return held
        return (*held, (after[0], rest)) if after and after[0].free >= rest else None


def give_back(held: Held) -> None:
    """Free what a gang held."""
    for node, devices in held:
        node.give_back(devices)


def nodes_text(held: Held) -> str:
    """What a gang held as the original writes it: ``0x8 2x8``."""
    return " ".join(f"{node.name}x{len(devices)}" for node, devices in held)


# The jobs of a trace as Lucid's simulator reads them, and what becomes of each.


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
            what = f"has {values[row]:g}, and Lucid's simulator counts whole {unit}"
            raise trace.fault(row, name, what, "round it, or use another --regime")
        columns.append(values.astype(np.int64).tolist())
    rows = zip(range(frame.height), frame["job"].to_list(), frame["queue"].to_list(), *columns)
    return [LucidJob(*row) for row in rows]
