"""Plans of AllReduce message by message: who sends which pieces to whom in each round, and what that counts up to.

The readable form of the closed forms in `allreduce.py`: pieces of data are followed from server to server, so that a plan that leaves a
server without a part of a sum is seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from gantline.models.links.allreduce import AllReducePlan


class PieceMessage(NamedTuple):
    """Pieces that a server sends to another: to be added to what is there, or in place of it."""

    sender: int
    receiver: int
    pieces: tuple[int, ...]
    adds: bool


Round = list[PieceMessage]


def messages(plan: AllReducePlan, servers: int) -> list[Round]:
    """All rounds; data are cut into as many pieces as there are servers."""
    if plan.kind == "one-server":
        every = tuple(range(servers))
        down = [PieceMessage(server, 0, every, True) for server in range(1, servers)]
        return [down, [message._replace(sender=0, receiver=message.sender, adds=False) for message in down]]
    if plan.kind == "ring":
        return [*_around(servers, 0, True), *_around(servers, 1, False)]
    halves = (2,) * (servers.bit_length() - 1)
    factors = {"direct": (servers,), "halving-doubling": halves}.get(plan.kind, plan.factors)
    down_rounds = list(_collect(factors, servers))
    up = [[message._replace(sender=message.receiver, receiver=message.sender, adds=False) for message in one] for one in down_rounds]
    return [*down_rounds, *reversed(up)]


def _around(servers: int, ahead: int, adds: bool) -> Iterator[Round]:
    for step in range(servers - 1):
        yield [PieceMessage(at, (at + 1) % servers, ((at + ahead - step) % servers,), adds) for at in range(servers)]


def _collect(factors: tuple[int, ...], servers: int) -> Iterator[Round]:
    """At each level servers that differ in one digit of their number collect from each other the pieces with their own digit."""
    stride = 1
    for factor in factors:
        one = []
        for receiver in range(servers):
            digit = receiver // stride % factor
            own = tuple(piece for piece in range(servers) if piece % (stride * factor) == receiver % (stride * factor))
            for other in range(factor):
                if other != digit:
                    one.append(PieceMessage(receiver + (other - digit) * stride, receiver, own, True))
        yield one
        stride *= factor


class Counts(NamedTuple):
    """What GenModel counts, for data of one unit on each server."""

    rounds: int
    data: Fraction
    additions: Fraction
    accesses: Fraction
    fan_in: int


@dataclass
class ReducingServers:
    """For each server and piece the servers whose data are in it."""

    count: int
    holds: list[list[frozenset[int]]] = field(init=False)

    def __post_init__(self) -> None:
        self.holds = [[frozenset({server}) for _ in range(self.count)] for server in range(self.count)]

    def run(self, rounds: Iterable[Round]) -> Counts:
        """Deliver all messages, and count for the busiest server of each round."""
        number, data, additions, accesses, fan_in = 0, Fraction(0), Fraction(0), Fraction(0), 0
        for one in rounds:
            number += 1
            before = [list(pieces) for pieces in self.holds]
            sent, received = [0] * self.count, [0] * self.count
            met: dict[tuple[int, int], int] = {}
            senders: dict[int, set[int]] = {}
            for message in one:
                sent[message.sender] += len(message.pieces)
                received[message.receiver] += len(message.pieces)
                for piece in message.pieces:
                    self._deliver(message, piece, before[message.sender][piece])
                    if message.adds:
                        met[message.receiver, piece] = met.get((message.receiver, piece), 1) + 1
                        senders.setdefault(message.receiver, set()).add(message.sender)
            data += Fraction(max(*sent, *received), self.count)
            busiest = [[count for (server, _), count in met.items() if server == at] for at in range(self.count)]
            additions += Fraction(max(sum(count - 1 for count in counts) for counts in busiest), self.count)
            accesses += Fraction(max(sum(count + 1 for count in counts) for counts in busiest), self.count)
            fan_in = max([fan_in, *(len(each) + 1 for each in senders.values())])
        return Counts(number, data, additions, accesses, fan_in)

    def _deliver(self, message: PieceMessage, piece: int, content: frozenset[int]) -> None:
        here = self.holds[message.receiver]
        if message.adds and here[piece] & content:
            raise ValueError(f"piece {piece} would count server {min(here[piece] & content)} twice")
        here[piece] = here[piece] | content if message.adds else content

    @property
    def done(self) -> bool:
        """Whether every server holds every sum."""
        return all(piece == frozenset(range(self.count)) for pieces in self.holds for piece in pieces)
