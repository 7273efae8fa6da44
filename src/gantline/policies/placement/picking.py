"""Our placement rules that pick single devices: packed, PM-First, PAL, and by bandwidth.

By default all gangs are seated anew at every decision, as the authors of PAL do; a name that ends in `-sticky` leaves gangs that run where
they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError
from gantline.core.facts import NO_FACTS, Facts
from gantline.policies.placement.bandwidth import PairBandwidth, most_bandwidth
from gantline.policies.placement.bins import speed_bins
from gantline.policies.placement.device_rule import DeviceRule, FreeDevices, GangRequest
from gantline.policies.placement.rule import PlacementRule, rule_in_python
from gantline.policies.placement.variability import DeviceBins, packed, pal, pm_first


@dataclass(frozen=True)
class Packed(DeviceRule):
    """A node that fits exactly, else the fullest that does, else the nodes with most free; all gangs anew at every decision"""

    sticky: ClassVar[bool] = False
    together: ClassVar[bool] = True

    def choose(self, gang: GangRequest, free: FreeDevices) -> Sequence[int]:
        return packed(free.devices, gang.gpus, DeviceBins(free.node, ())) or ()


@dataclass(frozen=True)
class Bandwidth(DeviceRule):
    """The devices of a node with the most bandwidth between them (Blox; needs links between devices in the cluster file)"""

    sticky: ClassVar[bool] = False
    between: PairBandwidth | None = field(default=None, repr=False)
    together: ClassVar[bool] = True

    def on(self, cluster: Cluster, facts: Facts = NO_FACTS) -> DeviceRule:
        return replace(self, between=PairBandwidth.of(cluster))

    def choose(self, gang: GangRequest, free: FreeDevices) -> Sequence[int]:
        assert self.between is not None
        return most_bandwidth(free.devices, gang.gpus, self.between) or ()


@dataclass(frozen=True)
class FastestFirst(DeviceRule):
    """The fastest devices for the class of the job, whatever their nodes (needs --device-speeds)"""

    called: ClassVar[str] = "pm-first"
    sticky: ClassVar[bool] = False
    seats: Mapping[str, DeviceBins] = field(default_factory=dict, repr=False)
    penalty: float = 1.0

    def on(self, cluster: Cluster, facts: Facts = NO_FACTS) -> DeviceRule:
        speeds = facts.device_speeds
        if speeds is None:
            what = f"placement '{self.called}' looks at the speeds of devices"
            raise RefusedError(what, where="--placement", fix="give --device-speeds FILE.csv")
        node = [int(each) for each in cluster.device_node]
        seats = {
            kind: DeviceBins(node, (speeds.bins[kind] if kind in speeds.bins else speed_bins(values)).tolist())
            for kind, values in sorted(speeds.slowdown.items())
        }
        return replace(self, seats=seats, penalty=facts.locality)

    def turn(self, gang: GangRequest) -> str:
        """The most sensitive class first."""
        return self._kind(gang)

    def choose(self, gang: GangRequest, free: FreeDevices) -> Sequence[int]:
        return pm_first(free.devices, gang.gpus, self.seats[self._kind(gang)]) or ()

    def _kind(self, gang: GangRequest) -> str:
        return gang.speed_class or next(iter(self.seats))


@dataclass(frozen=True)
class Pal(FastestFirst):
    """Fast devices and few nodes, whichever costs less (PAL; needs --device-speeds)"""

    called: ClassVar[str] = "pal"

    def choose(self, gang: GangRequest, free: FreeDevices) -> Sequence[int]:
        return pal(free.devices, gang.gpus, self.seats[self._kind(gang)], self.penalty) or ()


def _sticky(rule: PlacementRule) -> PlacementRule:
    return replace(rule, name=f"{rule.name}-sticky", what=f"{rule.name}; gangs that run stay where they are", sticky=True)


PACKED, PM_FIRST = rule_in_python(Packed(), "packed"), rule_in_python(FastestFirst(), "pm-first")
PAL, BANDWIDTH = rule_in_python(Pal(), "pal"), rule_in_python(Bandwidth(), "bandwidth")
PACKED_STICKY, PM_FIRST_STICKY, PAL_STICKY, BANDWIDTH_STICKY = map(_sticky, (PACKED, PM_FIRST, PAL, BANDWIDTH))
