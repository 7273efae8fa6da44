"""An executor on virtual time with machines that never fail but take time to stop, as real programs do.

A gang that trains saves its work and needs a while to leave. One that is ordered to stop while it is still starting receives the order
when it has started: a program looks for signals between its steps. Until it is gone no other gang gets its devices, which a cost charged
to the resumed job cannot express.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gantline.core import columns as c
from gantline.core.arrays import Floats
from gantline.drivers.faults import Faults
from gantline.drivers.faulty import FaultyExecutor
from gantline.drivers.gang_life import GangLife
from gantline.engine.state import State

Leave = Callable[[int, tuple[int, ...], float], float]  # of a row on these devices, from that instant on


@dataclass
class MeasuredExecutor(FaultyExecutor):
    """Starts take what the cost model says (orders carry it), stops what `leave` says."""

    faults: Faults = field(default_factory=Faults)
    leave: Leave = lambda row, devices, now: 0.0

    @classmethod
    def of(cls, state: State) -> MeasuredExecutor:
        """For a run with a performance model that gives the time jobs need to leave."""
        t = state.tables
        truth: Floats = t.F[c.WORK].copy()

        def leave(row: int, devices: tuple[int, ...], now: float) -> float:
            if t.performance is None or not devices:
                return 0.0
            kind = t.cluster.nodes[int(t.cluster.device_node[devices[0]])].type
            return float(t.performance.leave(t.ids[row], t.models[t.I[c.MODEL, row]], kind, len(devices), now))

        return cls(truth, leave=leave)

    def _saving(self, inc: GangLife) -> float:
        return max(0.0, inc.up + inc.pause - self._now)

    def _leaving(self, inc: GangLife) -> float:
        return self.leave(inc.row, inc.devices, self._now)
