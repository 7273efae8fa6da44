"""A plan of assignments committed plainly: gangs of their own, placed by the rule or as the plan names devices.

The order is that of the engine's README: who keeps what it has is left alone; whom the plan does not name stops; everybody else gives
up what the plan takes away; turns, as the plan lists them. A gang that is refused gets back what it had, if nobody has taken it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tests.oracles.plain_walk import Gang, PlainWalk, Way


class Held(NamedTuple):
    """What a gang had before this commit."""

    way: int
    devices: tuple[int, ...]
    node: int


@dataclass
class PlainCommit(PlainWalk):
    """Rankings and assignments on the same gangs."""

    resize: float = 0.0

    def assign(self, plan: list[tuple[int, int, tuple[int, ...]]], now: float) -> None:
        """(row, its way to run, its devices if the plan names them), in the order of turns."""
        self.now = now
        named = {row for row, _, _ in plan}
        for row, gang in enumerate(self.gangs):
            if gang.runs and row not in named and self._may_leave(gang):
                self._stop(gang)
        turns = []
        for row, way, devices in plan:
            gang = self.gangs[row]
            exact = devices if devices != gang.devices else ()  # who is where it is named may stay like any other
            if gang.way != way or exact:
                turns.append((gang, way, exact))
        before = [Held(gang.way, gang.devices, gang.node) for gang, _, _ in turns]
        for gang, way, exact in turns:
            if exact:
                self._part_with(gang, exact)
            else:
                self._give_up(gang, way)
        for (gang, way, exact), held in zip(turns, before):
            if exact:
                self._take_exactly(gang, held, way, exact)
            elif held.way < 0:
                self._start(gang, way)
            elif self._alike(gang, held, way) and gang.ways[way].gpus == len(held.devices):
                self._restyle(gang, way)
            elif self._alike(gang, held, way):
                self._go_on(gang, held, way)
            elif self._may_leave(gang):
                self._start_elsewhere(gang, held, way)

    # --- what the plan means for a gang ---------------------------------------------------------------------------------
    def _may_leave(self, gang: Gang) -> bool:
        return self.now >= gang.last_start + self.min_run

    def _alike(self, gang: Gang, held: Held, way: int) -> bool:
        """Whether it may stay where it is: the same type, and devices or none as before."""
        old, new = gang.ways[held.way], gang.ways[way]
        return old.type == new.type and (old.gpus == 0) == (new.gpus == 0)

    def _give_up(self, gang: Gang, way: int) -> None:
        """What the new way does not need is free before anybody's turn comes."""
        if not gang.runs:
            return
        held = Held(gang.way, gang.devices, gang.node)
        if not self._alike(gang, held, way):
            if self._may_leave(gang):
                self._settle(gang)
                gang.devices, gang.node = (), -1
        elif gang.ways[way].gpus < len(gang.devices):
            self._settle(gang)
            gang.devices = gang.devices[: gang.ways[way].gpus]
        elif gang.ways[way].gpus == len(gang.devices) and not self._more_beside(gang, gang.way, way):
            self._settle(gang)
            gang.way = way

    def _part_with(self, gang: Gang, devices: tuple[int, ...]) -> None:
        """Other devices are named: what is not among them is free before anybody's turn comes."""
        common = tuple(device for device in gang.devices if device in devices)
        if gang.runs and (common or self._may_leave(gang)):
            self._settle(gang)
            gang.devices, gang.node = common, -1

    # --- turns ----------------------------------------------------------------------------------------------------------
    def _take_exactly(self, gang: Gang, held: Held, way: int, devices: tuple[int, ...]) -> None:
        """The devices that the plan names, all or none; a node that drains only lets those stay who are there."""
        keeps = bool(set(held.devices) & set(devices))
        if held.way >= 0 and not keeps and not self._may_leave(gang):
            return
        gang.way, gang.devices, gang.node = -1, (), -1
        taken = {device for other in self.gangs for device in other.devices}
        there = all((self.node_of[device] not in self.down and device not in self.closed) or device in held.devices for device in devices)
        gang.way, gang.devices = way, devices
        if taken & set(devices) or not there or not self._sound(gang):
            self._back_or_out(gang, held)
            return
        if held.way < 0:
            gang.since = self.now + (self.start if gang.first_start != gang.first_start else self.resume)
            gang.restarts += int(gang.first_start == gang.first_start)
            gang.first_start = self.now if gang.first_start != gang.first_start else gang.first_start
        else:
            resized = len(held.devices) != len(devices) and gang.ways[held.way].type == gang.ways[way].type
            gang.since = self.now + (self.resize if resized else self.move)
            gang.restarts += int(not keeps)
        gang.last_start = gang.last_start if keeps else self.now

    def _start(self, gang: Gang, way: int) -> None:
        found = self._fit(gang.ways[way])
        if found is not None:
            first = gang.first_start != gang.first_start
            if first:
                gang.first_start = self.now
            else:
                gang.restarts += 1
            gang.way, (gang.devices, gang.node), gang.last_start = way, found, self.now
            gang.since = self.now + (self.start if first else self.resume)

    def _restyle(self, gang: Gang, way: int) -> None:
        """Other CPUs and another speed on the same devices, if the nodes have them."""
        old = gang.way
        self._settle(gang)
        gang.way = way
        if self._more_beside(gang, old, way) and not self._sound(gang):
            gang.way = old

    def _go_on(self, gang: Gang, held: Held, way: int) -> None:
        """More or fewer devices of the same type: in place, or as a whole elsewhere if there is no other way, or fewer nodes there."""
        self._settle(gang)
        new, kept = gang.ways[way], gang.devices
        grown = self._grown(gang, new)
        gang.way, gang.devices = way, grown or kept
        fits = grown is not None and self._sound(gang)
        span = len(set(self._nodes(gang))) if fits else 1 << 30
        gang.way, gang.devices = held.way, kept
        if new.gpus > len(kept) and self._may_leave(gang) and (not fits or self.consolidated) and span > 1:
            gang.devices = ()
            elsewhere = self._fit(new)
            gang.devices = kept
            if elsewhere is not None and len({self.node_of[device] for device in elsewhere[0]}) < span:
                gang.way, gang.devices = way, elsewhere[0]
                gang.restarts += 1
                gang.last_start, gang.since = self.now, self.now + self.resize
                return
        if fits and grown is not None:
            gang.way, gang.devices, gang.since = way, grown, self.now + self.resize
            return
        self._back_or_out(gang, held)

    def _grown(self, gang: Gang, way: Way) -> tuple[int, ...] | None:
        """The devices it keeps, more on its own nodes first, the rest by the rule."""
        found, room = list(gang.devices), self.room(way)
        for node in dict.fromkeys(self.node_of[device] for device in gang.devices):
            more = room[node][: way.gpus - len(found)]
            found += more
            room[node] = [] if more else room[node]
        if len(found) < way.gpus:
            rest = self.pick(way, room, way.gpus - len(found))
            if rest is None:
                return None
            found += rest
        return tuple(found)

    def _start_elsewhere(self, gang: Gang, held: Held, way: int) -> None:
        found = self._fit(gang.ways[way])
        if found is None:
            self._back_or_out(gang, held)
            return
        resized = len(held.devices) != gang.ways[way].gpus and gang.ways[held.way].type == gang.ways[way].type
        gang.way, (gang.devices, gang.node) = way, found
        gang.restarts += 1
        gang.last_start, gang.since = self.now, self.now + (self.resize if resized else self.move)

    def _back_or_out(self, gang: Gang, held: Held) -> None:
        """What it had is still there, or it stops; whoever had nothing waits."""
        gang.way, gang.devices, gang.node = -1, (), -1
        if held.way < 0:
            return
        taken = {device for other in self.gangs for device in other.devices}
        gang.way, gang.devices, gang.node = held
        if taken & set(held.devices) or not self._sound(gang):
            self._stop(gang)

    # --- small things ---------------------------------------------------------------------------------------------------
    def _sound(self, gang: Gang) -> bool:
        """Whether the nodes of a gang have the CPUs and the memory that all gangs on them need."""
        way, cpus, memory = gang.ways[gang.way], self.left("cpus"), self.left("memory")
        enough = all(cpus[node] >= -1e-9 for node in self._nodes(gang)) or not way.cpus
        return enough and (all(memory[node] >= -1e-9 for node in self._nodes(gang)) or not way.memory)

    @staticmethod
    def _more_beside(gang: Gang, old: int, new: int) -> bool:
        return gang.ways[new].cpus > gang.ways[old].cpus or gang.ways[new].memory > gang.ways[old].memory

    def _settle(self, gang: Gang) -> None:
        """Work done until now, at the speed until now."""
        if gang.runs and self.now > gang.since:
            self.settle(gang, gang.way, self.now)

    def _stop(self, gang: Gang) -> None:
        self._settle(gang)
        gang.way, gang.devices, gang.node = -1, (), -1
        gang.since = self.now
        gang.preemptions += 1
