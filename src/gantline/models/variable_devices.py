"""Devices of one type that differ: a gang goes at the pace of its slowest device, and slower again where it spans nodes (PAL, SC 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gantline.core.arrays import Floats
from gantline.core.device_speeds import DeviceSpeeds
from gantline.models.model import Gangs, PerformanceModel


@dataclass(frozen=True)
class VariableDevices(PerformanceModel):
    """Speeds as the jobs' options say, divided by what their devices and their spread over nodes cost them.

    `classes` says which column of the table a job reads; jobs that it does not name read the first one.
    """

    speeds: DeviceSpeeds
    penalty: float = 1.0
    classes: Mapping[str, str] = field(default_factory=dict)

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        rate, until = super().rates(gangs)
        names, first = gangs.jobs, self.speeds.classes[0]
        for at in range(len(gangs)):
            devices = gangs.devices(at)
            if devices:
                rate[at] /= self.speeds.of_gang(self.classes.get(names[at], first), list(devices), int(gangs.nodes[at]), self.penalty)
        return rate, until
