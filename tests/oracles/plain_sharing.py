"""Gangs that share devices, plainly: every gang has devices for life, and whenever one comes or goes, all speeds are found anew.

A gang has its fraction of each device; where gangs ask for more of a device than there is, all of them have less in proportion. A gang
goes at the speed of the device on which it has least. With groups, only gangs of one group may be on a device together: a gang that finds
another group on one of its devices waits until that has left; those that come first, in order of arrival, go first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class SharingGang:
    name: str
    arrival: float
    work: float
    devices: frozenset[int]
    fraction: float
    group: int = -1  # -1: shares with every gang that is there
    start: float = math.nan
    finish: float = math.nan
    done: float = 0.0

    @property
    def runs(self) -> bool:
        return self.start == self.start and self.finish != self.finish


def share_plainly(gangs: list[SharingGang]) -> None:
    """Run all of them to the end."""
    now = 0.0
    while any(gang.finish != gang.finish for gang in gangs):
        for gang in sorted(gangs, key=lambda gang: gang.arrival):
            waits = gang.start != gang.start and gang.arrival <= now + 1e-9
            if waits and not any(other.runs and other.devices & gang.devices and other.group != gang.group for other in gangs):
                gang.start = now
        speed = {gang.name: _speed(gang, gangs) for gang in gangs if gang.runs}
        ends = [now + (gang.work - gang.done) / speed[gang.name] for gang in gangs if gang.runs]
        then = min([*ends, *(gang.arrival for gang in gangs if gang.arrival > now + 1e-9)])
        for gang in gangs:
            if gang.runs:
                gang.done += speed[gang.name] * (then - now)
                if gang.done >= gang.work - 1e-7:
                    gang.finish = then
        now = then


def _speed(gang: SharingGang, gangs: list[SharingGang]) -> float:
    asked = (sum(other.fraction for other in gangs if other.runs and device in other.devices) for device in gang.devices)
    return min(gang.fraction / max(1.0, each) for each in asked)
