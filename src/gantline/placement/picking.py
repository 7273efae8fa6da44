"""Placement rules that pick single devices: packed, PM-First, PAL, and at random.

Such a rule takes any free devices of a type if there are enough, so it changes where gangs run and never whether they do. By default
all gangs are seated anew at every decision, as the authors of PAL do; a name that ends in `-sticky` leaves gangs that run where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gantline.core.cluster import Cluster
from gantline.core.device_speeds import DeviceSpeeds
from gantline.core.errors import RefusedError
from gantline.placement.bandwidth import PairBandwidth, most_bandwidth
from gantline.placement.bins import speed_bins
from gantline.placement.variability import DeviceBins, Devices, packed, pal, pm_first


@dataclass(frozen=True)
class DevicePicker:
    """A rule on a cluster whose devices may differ; `classes` are the classes of jobs by row, the first one for others."""

    rule: str
    sticky: bool
    seats: Mapping[str, DeviceBins]
    penalty: float = 1.0
    classes: Sequence[str] = field(default=())
    between: PairBandwidth | None = None

    @staticmethod
    def of(name: str, cluster: Cluster, speeds: DeviceSpeeds | None, penalty: float, classes: Sequence[str]) -> DevicePicker:
        rule = name.removesuffix("-sticky")
        if rule in ("pm-first", "pal") and speeds is None:
            raise RefusedError(
                f"placement '{name}' looks at the speeds of devices", where="--placement", fix="give --device-speeds FILE.csv"
            )
        node = [int(each) for each in cluster.device_node]
        known = speeds.slowdown if speeds is not None else {"": np.ones(len(node))}
        bins = speeds.bins if speeds is not None else {}
        seats = {
            kind: DeviceBins(node, (bins[kind] if kind in bins else speed_bins(values)).tolist()) for kind, values in sorted(known.items())
        }
        between = PairBandwidth.of(cluster) if rule == "bandwidth" else None
        return DevicePicker(rule, name.endswith("-sticky"), seats, penalty, classes, between)

    def in_turn(self, rows: Sequence[int]) -> list[int]:
        """In which order gangs are seated: the most sensitive class first, where classes matter; else as given."""
        return sorted(rows, key=self.kind_of) if self.rule in ("pm-first", "pal") else list(rows)

    def pick(self, free: Sequence[int], count: int, row: int, seed: tuple[int, ...]) -> Devices | None:
        seats = self.seats[self.kind_of(row)]
        if self.rule == "pal":
            return pal(free, count, seats, self.penalty)
        if self.between is not None:
            return most_bandwidth(free, count, self.between)
        if self.rule == "pm-first":
            return pm_first(free, count, seats)
        return packed(free, count, seats)

    def kind_of(self, row: int) -> str:
        return self.classes[row] if row < len(self.classes) else next(iter(self.seats))
