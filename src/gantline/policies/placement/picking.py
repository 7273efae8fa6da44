"""Our placement rules that pick single devices: packed, PM-First, PAL (SC 2024, section III), and by bandwidth.

By default all gangs are placed anew at every decision, as the authors of PAL do; a name that ends in `-sticky` leaves
gangs that run where they are. A device's *bin* is a factor that stands for devices of about the same speed. The
functions look at the free devices (numbers in rising order), change nothing, and answer with the devices in order of
choice, or None where there are too few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError
from gantline.core.facts import NO_FACTS, Facts
from gantline.policies.placement.device_rule import DeviceRule, FreeDevices, GangRequest
from gantline.policies.placement.rules import PlacementRule, rule_in_python

Devices = list[int]


@dataclass(frozen=True)
class DeviceBins:
    """The devices as one class of jobs sees them: the node and the bin of each."""

    node: Sequence[int]
    bin: Sequence[float]

    @cached_property
    def widest_node(self) -> int:
        """Devices of the node that has most."""
        counts: dict[int, int] = {}
        for node in self.node:
            counts[node] = counts.get(node, 0) + 1
        return max(counts.values(), default=0)

    def walk(self, penalty: float) -> list[tuple[float, bool]]:
        """(bin, across nodes?) by the product of bin and penalty; of equal products bins in order of appearance, within nodes first."""
        steps = [(level, across, level * (penalty if across else 1.0)) for level in dict.fromkeys(self.bin) for across in (False, True)]
        return [(level, across) for level, across, _ in sorted(steps, key=lambda step: step[2])]


def by_node(free: Sequence[int], node: Sequence[int]) -> dict[int, Devices]:
    """The free devices of each node that has any."""
    found: dict[int, Devices] = {}
    for device in free:
        found.setdefault(node[device], []).append(device)
    return found


def pm_first(free: Sequence[int], count: int, device_bins: DeviceBins) -> Devices | None:
    """The fastest bins first, whatever their nodes; inside a bin, nodes with a number of such devices nearest to the gang's size."""
    if len(free) < count:
        return None
    alike: dict[tuple[int, float], int] = {}
    for device in free:
        group = (device_bins.node[device], device_bins.bin[device])
        alike[group] = alike.get(group, 0) + 1
    return sorted(free, key=lambda d: (device_bins.bin[d], abs(alike[device_bins.node[d], device_bins.bin[d]] - count)))[:count]


def pal(free: Sequence[int], count: int, device_bins: DeviceBins, penalty: float, *, tightest: bool = True) -> Devices | None:
    """The first feasible step of the walk over (bin, within or across nodes).

    Of nodes that offer the same, the tightest is taken; the authors' program breaks up the emptiest (`tightest=False`).
    """
    if count == 1 or count > device_bins.widest_node or len(free) < count:
        return pm_first(free, count, device_bins)
    for level, across in device_bins.walk(penalty):
        good = [device for device in free if device_bins.bin[device] <= level]
        if len(good) < count:
            continue
        found = pm_first(good, count, device_bins) if across else _within_a_node(good, count, device_bins, tightest)
        if found is not None:
            return found
    return None


def packed(free: Sequence[int], count: int, device_bins: DeviceBins) -> Devices | None:
    """A node with exactly so many, else the fullest that has enough, else the nodes with most; the lowest devices of each."""
    if len(free) < count:
        return None
    nodes = dict(sorted(by_node(free, device_bins.node).items()))
    enough = [devices for devices in nodes.values() if len(devices) >= count]
    if enough:
        return min(enough, key=len)[:count]
    chosen: Devices = []
    while len(chosen) < count:
        number = max(nodes, key=lambda each: len(nodes[each]))
        chosen += nodes.pop(number)[: count - len(chosen)]
    return chosen


def _within_a_node(good: Sequence[int], count: int, device_bins: DeviceBins, tightest: bool) -> Devices | None:
    """The set on one node with the fastest slowest bin; the first of these by the number of qualifying devices."""
    nodes = [devices for devices in by_node(good, device_bins.node).values() if len(devices) >= count]
    nodes.sort(key=len, reverse=not tightest)
    offers = (list(chosen) for devices in nodes for chosen in combinations(devices, count))
    return min(offers, key=lambda chosen: max(device_bins.bin[device] for device in chosen), default=None)


# Bins of devices of about the same speed: one-dimensional clusters, each outlier in one of its own (PAL, SC 2024,
# section III-B).
#
# The exact optimum of k-means in one dimension, by dynamic programming over the sorted values, so that nothing
# depends on a seed.

MOST = 10


def speed_bins(values: Floats, *, clusters: int | None = None) -> Floats:
    """Per device the centre of its bin over the median of all centres.

    `clusters` is the number of bins without outliers; None: the number from 2 to 10 with the best silhouette.
    """
    usual = values[values <= values.mean() + 3.0 * values.std(ddof=1)] if len(values) > 1 else values
    wanted = (clusters or best_count(usual)) + len(values) - len(usual)
    label = cluster_values(values, min(wanted, len(np.unique(values))))
    centres = np.array([values[label == each].mean() for each in range(int(label.max()) + 1)])
    bins: Floats = (centres / np.median(centres))[label]
    return bins


def best_count(values: Floats) -> int:
    """How many bins separate these values best: the greatest mean silhouette; fewer on ties."""
    most = min(MOST, len(np.unique(values)) - 1)
    if most < 2:
        return 1
    return max(range(2, most + 1), key=lambda count: (_silhouette(values, cluster_values(values, count)), -count))


def cluster_values(values: Floats, count: int) -> Ints:
    """The cluster of each value, numbered from the smallest values on: least sum of squares within clusters."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    n = len(ordered)
    sums, squares = np.concatenate(([0.0], np.cumsum(ordered))), np.concatenate(([0.0], np.cumsum(ordered**2)))

    def spread(first: Ints, end: int) -> Floats:
        total = sums[end] - sums[first]
        within: Floats = squares[end] - squares[first] - total * total / (end - first)
        return within

    best = np.full((count + 1, n + 1), np.inf)
    best[0, 0] = 0.0
    cut = np.zeros((count + 1, n + 1), dtype=np.int64)
    for clusters in range(1, count + 1):
        for end in range(clusters, n + 1):
            first = np.arange(clusters - 1, end)
            loss = best[clusters - 1, first] + spread(first, end)
            at = int(np.argmin(loss))
            best[clusters, end], cut[clusters, end] = loss[at], first[at]
    label, end = np.empty(n, dtype=np.int64), n
    for clusters in range(count, 0, -1):
        first_place = int(cut[clusters, end])
        label[order[first_place:end]] = clusters - 1
        end = first_place
    return label


def _silhouette(values: Floats, label: Ints) -> float:
    distance = np.abs(values[:, None] - values[None, :])
    count = int(label.max()) + 1
    sizes = np.bincount(label, minlength=count)
    to_each = np.stack([distance[:, label == each].sum(axis=1) for each in range(count)], axis=1)
    rows = np.arange(len(values))
    own = to_each[rows, label] / np.maximum(sizes[label] - 1, 1)
    means = to_each / sizes
    means[rows, label] = np.inf
    other = means.min(axis=1)
    score = np.where(sizes[label] > 1, (other - own) / np.maximum(own, other), 0.0)
    return float(score.mean())


# Which devices of a node, by the measured bandwidth between them (Blox, EuroSys 2024, table 4).
#
# Devices of one machine are not all connected alike: some pairs share NVLink, others only the PCIe bus. A gang takes
# the set of free devices of one node with the most bandwidth between its members; larger gangs, and those that no
# node has room for, take the nodes with most free.


@dataclass(frozen=True)
class PairBandwidth:
    """GB/s between devices of one node; unmeasured pairs have the least that was measured."""

    node: Sequence[int]
    measured: Mapping[tuple[int, int], float]
    other: float

    @staticmethod
    def of(cluster: Cluster) -> PairBandwidth:
        """From a cluster's links between devices, written NODE:NUMBER."""
        node = [int(each) for each in cluster.device_node]
        first = zip(cluster.nodes, cluster.first_device.tolist())
        number = {f"{each.name}:{k}": device + k for each, device in first for k in range(each.gpus)}
        measured: dict[tuple[int, int], float] = {}
        for link in cluster.links:
            if link.a in number and link.b in number:
                a, b = number[link.a], number[link.b]
                measured[min(a, b), max(a, b)] = link.bandwidth
        if not measured:
            fix = "list pairs of devices under 'links' in the cluster file: {a: node0:0, b: node0:1, bandwidth: 50}"
            raise RefusedError("the cluster says nothing of the bandwidth between its devices", where="--placement bandwidth", fix=fix)
        return PairBandwidth(node, measured, min(measured.values()))

    def mean(self, devices: Sequence[int]) -> float:
        """GB/s of a pair, mean over all pairs of a gang."""
        pairs = list(combinations(sorted(devices), 2))
        return sum(self.measured.get(pair, self.other) for pair in pairs) / len(pairs)


def most_bandwidth(free: Sequence[int], count: int, between: PairBandwidth) -> Devices | None:
    """The set on one node with the most bandwidth; of equal ones that of the tightest node, then the lowest devices."""
    if len(free) < count:
        return None
    nodes = sorted(by_node(free, between.node).values(), key=len)
    enough = [devices for devices in nodes if len(devices) >= count]
    if count == 1 and enough:
        return enough[0][:1]
    offers = (list(chosen) for devices in enough for chosen in combinations(devices, count))
    found = max(offers, key=between.mean, default=None)
    if found is not None:
        return found
    chosen: Devices = []
    for devices in reversed(nodes):
        chosen += devices[: count - len(chosen)]
    return chosen


# Our placement rules that pick single devices: packed, PM-First, PAL, and by bandwidth.
#
# By default all gangs are placed anew at every decision, as the authors of PAL do; a name that ends in `-sticky`
# leaves gangs that run where they are.


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
    device_bins: Mapping[str, DeviceBins] = field(default_factory=dict, repr=False)
    penalty: float = 1.0

    def on(self, cluster: Cluster, facts: Facts = NO_FACTS) -> DeviceRule:
        speeds = facts.device_speeds
        if speeds is None:
            what = f"placement '{self.called}' looks at the speeds of devices"
            raise RefusedError(what, where="--placement", fix="give --device-speeds FILE.csv")
        node = [int(each) for each in cluster.device_node]
        device_bins = {
            kind: DeviceBins(node, (speeds.bins[kind] if kind in speeds.bins else speed_bins(values)).tolist())
            for kind, values in sorted(speeds.slowdown.items())
        }
        return replace(self, device_bins=device_bins, penalty=facts.locality)

    def turn(self, gang: GangRequest) -> str:
        """The most sensitive class first."""
        return self._kind(gang)

    def choose(self, gang: GangRequest, free: FreeDevices) -> Sequence[int]:
        return pm_first(free.devices, gang.gpus, self.device_bins[self._kind(gang)]) or ()

    def _kind(self, gang: GangRequest) -> str:
        return gang.speed_class or next(iter(self.device_bins))


@dataclass(frozen=True)
class Pal(FastestFirst):
    """Fast devices and few nodes, whichever costs less (PAL; needs --device-speeds)"""

    called: ClassVar[str] = "pal"

    def choose(self, gang: GangRequest, free: FreeDevices) -> Sequence[int]:
        return pal(free.devices, gang.gpus, self.device_bins[self._kind(gang)], self.penalty) or ()


def _sticky(rule: PlacementRule) -> PlacementRule:
    return replace(rule, name=f"{rule.name}-sticky", what=f"{rule.name}; gangs that run stay where they are", sticky=True)


PACKED, PM_FIRST = rule_in_python(Packed(), "packed"), rule_in_python(FastestFirst(), "pm-first")
PAL, BANDWIDTH = rule_in_python(Pal(), "pal"), rule_in_python(Bandwidth(), "bandwidth")
PACKED_STICKY, PM_FIRST_STICKY, PAL_STICKY, BANDWIDTH_STICKY = map(_sticky, (PACKED, PM_FIRST, PAL, BANDWIDTH))
