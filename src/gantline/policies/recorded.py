"""Policies that follow what another run has decided: a table, or the orders of a live run at their times."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from gantline.core.errors import RefusedError
from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot

_REGIMES = ("sia", "shockwave")  # whose loops read the table


@dataclass(frozen=True)
class Recorded(Policy):
    """Gives each job what a table says, from the time on that it says."""

    name: ClassVar[str] = "recorded"

    table: str = field(default="", metadata={"help": "CSV file with t_s, name, gpu_type, nodes, gpus; regime shockwave: round, jobs"})
    fit: str = field(default="artifact", metadata={"help": "regime sia: how models are fitted, 'artifact' or 'compiled'"})

    def for_regime(self, regime: str) -> Recorded:
        if regime not in _REGIMES:
            raise RefusedError(
                f"regime '{regime}' does not follow recorded decisions",
                where="policy 'recorded'",
                fix="use --regime " + " or ".join(_REGIMES),
            )
        return self


# Gives the orders of another run again, at the times at which they were given: what then differs are times alone.
#
# A gang starts when its order was given, or as soon as the gangs that had its devices before are gone; it stops when
# that was ordered, unless it has ended by then. The last gang of a job runs until the job has ended.


class Turn(NamedTuple):
    """What a job was given: from when on, which devices, and until when; infinity: until its end."""

    start: float
    stop: float
    job: str
    devices: tuple[int, ...]


class GivenOrder(NamedTuple):
    """An order of a recorded run: a start on devices, or, without any, a stop."""

    time: float
    job: str
    devices: tuple[int, ...] = ()


@dataclass(frozen=True)
class GivenOrders(Policy):
    """Follows a list of turns, in the order of their starts."""

    name: ClassVar[str] = "given-orders"

    turns: tuple[Turn, ...] = ()

    @classmethod
    def of(cls, orders: Iterable[GivenOrder]) -> GivenOrders:
        """From orders, each given once."""
        turns: list[Turn] = []
        newest: dict[str, int] = {}
        for order in sorted(orders, key=lambda one: one.time):
            if order.devices:
                newest[order.job] = len(turns)
                turns.append(Turn(order.time, math.inf, order.job, order.devices))
            elif order.job in newest:
                place = newest[order.job]
                turns[place] = turns[place]._replace(stop=min(order.time, turns[place].stop))
        for place in newest.values():  # a job that ended while it was asked to stop has no later turn to end in
            turns[place] = turns[place]._replace(stop=math.inf)
        return cls(turns=tuple(turns))

    @property
    def last_turns(self) -> dict[str, Turn]:
        """Of jobs that had more than one.

        Such a job was not done before its last turn, though a simulated one may be, by a step that the recorded one was short of.
        """
        found: dict[str, Turn] = {}
        several = set[str]()
        for turn in self.turns:
            several |= {turn.job} & found.keys()
            found[turn.job] = turn
        return {job: found[job] for job in several}

    def decide(self, snapshot: Snapshot) -> Plan:
        place, now = {name: at for at, name in enumerate(snapshot.jobs.ids)}, snapshot.now
        due = [turn for turn in self.turns if turn.job in place and turn.start <= now < turn.stop]
        taken: set[int] = set()
        given = []
        for turn in sorted(due, key=lambda turn: (not snapshot.jobs.running[place[turn.job]], turn.start)):
            if taken.isdisjoint(turn.devices):
                taken.update(turn.devices)
                kind = int(snapshot.cluster.node_type[snapshot.cluster.device_node[turn.devices[0]]])
                given.append(Assignment(place[turn.job], type=kind, gpus=len(turn.devices), devices=turn.devices))
        later = [instant for turn in self.turns for instant in (turn.start, turn.stop) if now < instant < math.inf]
        return Plan.assign(given, valid_until=min(later, default=math.inf))
