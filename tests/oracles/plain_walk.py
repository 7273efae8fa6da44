"""A ranking walked plainly: several types, options with rates, CPUs and memory, costs, a minimum run, nodes that fail, drain and return.

Lists and dictionaries only, no short cut and nothing undone: a trial is made on a copy and thrown away if it fails. It is the oracle
for the compiled walk, which keeps one set of books and must restore them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Way:
    """Devices of a type at a speed, with CPUs and memory per device (in all, if it needs no devices)."""

    type: int
    gpus: int
    rate: float
    cpus: float
    memory: float = 0.0


@dataclass(frozen=True)
class Place:
    """A node: its type, its devices, its CPUs, its memory."""

    type: int
    devices: tuple[int, ...]
    cpus: float
    memory: float


@dataclass
class Gang:
    """One job, and what it holds."""

    ways: list[Way]
    way: int = -1
    devices: tuple[int, ...] = ()
    node: int = -1  # of a way without devices
    since: float = 0.0
    done: float = 0.0
    first_start: float = math.nan
    last_start: float = math.nan
    restarts: int = 0
    preemptions: int = 0

    @property
    def runs(self) -> bool:
        return self.way >= 0


@dataclass
class PlainWalk:
    """The whole state; `rank` is one decision."""

    nodes: list[Place]
    gangs: list[Gang]
    start: float = 0.0
    resume: float = 0.0
    move: float = 0.0
    min_run: float = 0.0
    now: float = 0.0
    consolidated: bool = False  # else first-free
    down: set[int] = field(default_factory=set)  # nodes that nothing new may use
    closed: set[int] = field(default_factory=set)  # devices that nobody new may have
    _home: dict[int, tuple[int, tuple[int, ...], int]] = field(default_factory=dict)  # what victims of this decision had

    def __post_init__(self) -> None:
        self.node_of = {device: number for number, node in enumerate(self.nodes) for device in node.devices}

    def left(self, amount: str) -> list[float]:
        """CPUs or memory that nobody has, per node."""
        free = [float(getattr(node, amount)) for node in self.nodes]
        for gang in self.gangs:
            if gang.runs:
                for node in self._nodes(gang):
                    free[node] -= getattr(gang.ways[gang.way], amount)
        return free

    # --- nodes ----------------------------------------------------------------------------------------------------------
    def lose(self, node: int, now: float) -> None:
        """Whoever has a stake in the node stops; all that was done is saved here, and nobody was preempted."""
        self.now = now
        self.down.add(node)
        for gang in self.gangs:
            if gang.runs and node in self._nodes(gang):
                self.settle(gang, gang.way, now)
                gang.way, gang.devices, gang.node = -1, (), -1

    def drain(self, node: int) -> None:
        self.down.add(node)

    def bring_back(self, node: int) -> None:
        self.down.discard(node)

    # --- places ---------------------------------------------------------------------------------------------------------

    def _nodes(self, gang: Gang) -> list[int]:
        """A node for each device; for a way without devices its one node; none for a gang that has given up all it had."""
        return [self.node_of[device] for device in gang.devices] or [gang.node] * (gang.node >= 0)

    def room(self, way: Way) -> list[list[int]]:
        """Per node: the devices that it could give to a gang with this way to run, lowest first."""
        cpus, memory, taken = self.left("cpus"), self.left("memory"), {device for gang in self.gangs for device in gang.devices}
        found = []
        for number, node in enumerate(self.nodes):
            usable = node.type == way.type and number not in self.down
            free = [device for device in node.devices if device not in taken | self.closed] if usable else []
            free = free[: int((cpus[number] + 1e-9) / way.cpus)] if way.cpus else free
            found.append(free[: int((memory[number] + 1e-9) / way.memory)] if way.memory else free)
        return found

    def _fit(self, way: Way) -> tuple[tuple[int, ...], int] | None:
        """Where a gang would go now: its devices, or the node of a way without any."""
        if way.gpus == 0:
            cpus, memory = self.left("cpus"), self.left("memory")
            fits = [k for k, node in enumerate(self.nodes) if node.type == way.type and k not in self.down]
            fits = [k for k in fits if cpus[k] + 1e-9 >= way.cpus and memory[k] + 1e-9 >= way.memory]
            return ((), fits[0]) if fits else None
        found = self.pick(way, self.room(way), way.gpus)
        return None if found is None else (tuple(found), -1)

    def pick(self, way: Way, room: list[list[int]], need: int) -> list[int] | None:
        """So many devices out of this room, by the rule."""
        if not self.consolidated:
            found = [device for free in room for device in free][:need]
            return found if len(found) == need else None
        fitting = [free for free in room if len(free) >= need]
        if fitting:
            return min(fitting, key=len)[:need]  # the tightest, of several the first
        if need <= self._largest(way.type):
            return None
        up = [(free, node) for k, (free, node) in enumerate(zip(room, self.nodes)) if k not in self.down]
        idle = [free for free, node in up if node.type == way.type and node.devices and len(free) == len(node.devices)]
        found = [device for free in idle for device in free][:need]
        return found if len(found) == need else None

    def _largest(self, type: int) -> int:
        return max((len(node.devices) for k, node in enumerate(self.nodes) if node.type == type and k not in self.down), default=0)

    def rank(self, order: list[int], now: float, preempt: bool, strict: bool = False) -> None:
        """Everybody in order: who runs stays, who waits takes what is free or what those behind it hold; `strict`: nobody passes."""
        self.now, self._home = now, {}
        ran = [row for row in order if self.gangs[row].runs]
        for place, row in enumerate(order):
            gang = self.gangs[row]
            if gang.runs:
                continue
            if row in self._home and self._go_home(row):
                continue
            behind = [other for other in ran if order.index(other) > place]
            for number, way in enumerate(gang.ways):
                found = self._fit(way) or (self._make_room(way, behind) if preempt else None)
                if found is not None:
                    self._begin(row, number, *found)
                    break
                rest = gang.ways[number + 1 :]
                if rest and rest[0].type == way.type and rest[0].gpus < way.gpus:
                    break  # smaller options are for the shrink rule only
            if strict and not gang.runs:
                break
        for row in self._home:
            if not self.gangs[row].runs:
                self.gangs[row].preemptions += 1
                self._settle_home(row)

    def _make_room(self, way: Way, behind: list[int]) -> tuple[tuple[int, ...], int] | None:
        """Stop those behind, last first, until it fits; if it never does, nobody was stopped."""
        before, homes = [(gang.way, gang.devices, gang.node) for gang in self.gangs], dict(self._home)
        behind = [row for row in behind if self.gangs[row].runs and self.now >= self.gangs[row].last_start + self.min_run]
        behind = [row for row in behind if self.gangs[row].ways[self.gangs[row].way].type == way.type]
        if self.consolidated and not way.cpus and not way.memory and 0 < way.gpus <= self._largest(way.type):
            target = self._first_cleared(way, behind)
            behind = [row for row in behind if target in self._nodes(self.gangs[row])]
        for row in reversed(behind):
            gang = self.gangs[row]
            self._home[row] = (gang.way, gang.devices, gang.node)
            gang.way, gang.devices, gang.node = -1, (), -1
            found = self._fit(way)
            if found is not None:
                return found
        for gang, had in zip(self.gangs, before):
            gang.way, gang.devices, gang.node = had
        self._home = homes
        return None

    def _first_cleared(self, way: Way, behind: list[int]) -> int:
        """The node that would have room first if gangs were stopped one after the other, last first; -1: none ever has."""
        room = [len(free) for free in self.room(way)]
        for row in reversed(behind):
            for device, node in zip(self.gangs[row].devices, self._nodes(self.gangs[row])):
                room[node] += device not in self.closed
                if room[node] >= way.gpus and self.nodes[node].type == way.type and node not in self.down:
                    return node
        return -1

    def _go_home(self, row: int) -> bool:
        """A victim whose turn comes gets back what it had, if that is still there."""
        way, devices, node = self._home[row]
        gang = self.gangs[row]
        taken = {device for other in self.gangs for device in other.devices}
        if taken & set(devices):
            return False
        gang.way, gang.devices, gang.node = way, devices, node
        if min(self.left("cpus") + self.left("memory")) < -1e-9:
            gang.way, gang.devices, gang.node = -1, (), -1
            return False
        return True

    def _settle_home(self, row: int) -> None:
        """What a gang had done when it was stopped."""
        self.settle(self.gangs[row], self._home[row][0], self.now)

    def settle(self, gang: Gang, way: int, at: float) -> None:
        """Count what was done in this way until then."""
        gang.done += gang.ways[way].rate * max(0.0, at - gang.since)
        gang.since = at

    def _begin(self, row: int, way: int, devices: tuple[int, ...], node: int) -> None:
        gang = self.gangs[row]
        cost = self.start if math.isnan(gang.first_start) else self.resume
        if row in self._home:  # it was moved
            self._settle_home(row)
            del self._home[row]
            gang.preemptions += 1
            cost = self.move
        if math.isnan(gang.first_start):
            gang.first_start = self.now
        else:
            gang.restarts += 1
        gang.way, gang.devices, gang.node, gang.last_start, gang.since = way, devices, node, self.now, self.now + cost
