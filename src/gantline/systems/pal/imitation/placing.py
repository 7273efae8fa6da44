"""One round of PAL's placements: from the order of the jobs to which are suspended and which are launched where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from gantline.policies.placement.picking import DeviceBins, Devices, packed, pal, pm_first

_TABLE_ROWS = (1404, 1096, 1096, 880)
"""Rows of the measurement files of classes A to D: the authors draw each GPU's values from these before anything else."""


class PalEntry(NamedTuple):
    """A job in the order of a round."""

    job: int
    gpus: int
    kind: str


class PalRound(NamedTuple):
    """Which jobs lose their devices, and which get others."""

    suspend: list[int]
    launch: list[tuple[int, Devices]]


Choose = Callable[[Sequence[int], int, DeviceBins], Devices | None]


@dataclass(frozen=True)
class Placing:
    """A rule on a cluster: how one job's devices are chosen, and whether running jobs stay where they are."""

    seats: Mapping[str, DeviceBins]
    choose: Choose
    sticky: bool = False
    by_class: bool = False

    @staticmethod
    def named(rule: str, seats: Mapping[str, DeviceBins], penalty: float) -> Placing:
        if rule == "pal":
            return Placing(seats, lambda free, count, own: pal(free, count, own, penalty, tightest=False), by_class=True)
        if rule == "pm-first":
            return Placing(seats, pm_first, by_class=True)
        if rule == "random":
            return Placing(seats, _drawn(len(next(iter(seats.values())).node)), sticky=True)
        return Placing(seats, packed, sticky=rule == "packed-sticky")

    def place(self, order: Sequence[PalEntry], held: Mapping[int, Devices]) -> PalRound:
        return self._around_those_that_run(order, held) if self.sticky else self._afresh(order, held)

    def _afresh(self, order: Sequence[PalEntry], held: Mapping[int, Devices]) -> PalRound:
        """Free all, place in order, stop at the first job that does not fit.

        With classes, the prefix that fits by count goes by class; a job that keeps its set of devices is launched without being
        suspended. Otherwise whatever ran is suspended, even if it returns to its devices.
        """
        free = list(range(len(self._any.node)))
        launch = []
        for entry in self._in_classes(order) if self.by_class else order:
            devices = self.choose(free, entry.gpus, self.seats[entry.kind])
            if devices is None:
                break
            launch.append((entry.job, devices))
            free = _without(free, devices)
        same = {job for job, devices in launch if self.by_class and set(devices) == set(held.get(job, ()))}
        return PalRound([entry.job for entry in order if entry.job in held and entry.job not in same], launch)

    def _around_those_that_run(self, order: Sequence[PalEntry], held: Mapping[int, Devices]) -> PalRound:
        """Running jobs stay. One that waits takes free devices, or those of jobs from the end of the order.

        Where that does not suffice the round ends, and the victims stay suspended.
        """
        running = set(held)
        free = _without(range(len(self._any.node)), [device for devices in held.values() for device in devices])
        suspend: list[int] = []
        launch: list[tuple[int, Devices]] = []
        for place, entry in enumerate(order):
            if entry.job in running:
                continue
            seats = self.seats[entry.kind]
            devices = self.choose(free, entry.gpus, seats)
            for victim in reversed(order[place + 1 :]):
                if devices is not None:
                    break
                if victim.job in running:
                    running.remove(victim.job)
                    suspend.append(victim.job)
                    free = sorted([*free, *held[victim.job]])
                    devices = self.choose(free, entry.gpus, seats)
            if devices is None:
                break
            launch.append((entry.job, devices))
            free = _without(free, devices)
        return PalRound(suspend, launch)

    def _in_classes(self, order: Sequence[PalEntry]) -> list[PalEntry]:
        """The prefix whose demand fits the cluster, most sensitive class first; then the rest."""
        room, fits = len(self._any.node), 0
        for entry in order:
            room -= entry.gpus
            if room < 0:
                break
            fits += 1
        return [*sorted(order[:fits], key=lambda entry: entry.kind), *order[fits:]]

    @property
    def _any(self) -> DeviceBins:
        return next(iter(self.seats.values()))


def _without(free: Sequence[int], taken: Devices) -> Devices:
    gone = set(taken)
    return [device for device in free if device not in gone]


def _drawn(devices: int) -> Choose:
    """Devices at random, by a generator that goes on after the draws of the tables."""
    draw = Random(42)
    for _ in range(devices):
        for rows in _TABLE_ROWS:
            draw.randrange(rows)

    def choose(free: Sequence[int], count: int, seats: DeviceBins) -> Devices | None:
        return draw.sample(list(free), count) if len(free) >= count else None

    return choose
