"""A live run as its store holds it: the jobs as they were submitted, the orders about them, and when each one succeeded.

Orders are not written down: they follow from what was received. So the past is folded again, as a replay does, and what it orders is noted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError
from gantline.core.inputs import News, Report, Submit
from gantline.engine.drivers.live import Live, Script
from gantline.engine.executor import Can, Order, Verb
from gantline.models.profiles.colocation_fit import WholeLife
from gantline.policies.recorded import GivenOrder


@dataclass
class RecordedRun:
    """It is filled while the past is folded: the loop takes it for the executor, and sends it the orders."""

    cluster: Cluster | None = None
    profiles: str = ""  # the file that the service had
    jobs: dict[str, Submit] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)  # of jobs that succeeded
    _orders: dict[tuple[Verb, int, int], GivenOrder] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)  # of rows that were given orders
    _ids: list[str] = field(default_factory=list)  # of all rows, as the loop has them

    @property
    def orders(self) -> list[GivenOrder]:
        """Each once, however often it was repeated."""
        return list(self._orders.values())

    @property
    def lives(self) -> list[WholeLife]:
        """The jobs that ran from one start to their end, with the work that they were said to have."""
        given: dict[str, list[GivenOrder]] = {}
        for order in self.orders:
            given.setdefault(order.job, []).append(order)
        found = []
        for name, orders in given.items():
            job = self.jobs[name].job if name in self.jobs else {}
            if len(orders) > 1 or name not in self.ends or not job.get("estimate"):
                continue
            start, size = orders[0], len(orders[0].devices)
            ways = [way for way in job.get("options", ()) if way["gpus"] == size and way["type"] == self._type(start.devices[0])]
            rate = ways[0].get("rate", 1.0) if ways else 1.0
            found.append(WholeLife(str(job.get("model", "")), size, job["estimate"] / rate, self.ends[name] - start.time))
        return found

    def _type(self, device: int) -> str:
        assert self.cluster is not None
        return self.cluster.nodes[int(self.cluster.device_node[device])].type

    def watch(self, loop: Live) -> None:
        """Note what this loop orders while it folds a stretch of the past."""
        self._ids, loop.inbox.executor = loop.state.tables.ids, self

    def enter(self, script: Script) -> None:
        """Take in what was received in a stretch that is folded."""
        for at, value in script:
            if isinstance(value, Submit):
                self.jobs |= {name: replace(value, time=at, job={**value.job, "id": name}, ids=()) for name in value.names}
            elif isinstance(value, Report) and value.news is News.FINISHED and value.row in self._names:
                self.ends.setdefault(self._names[value.row], value.time)

    # --- as an executor ---------------------------------------------------------------------------------------------------
    def send(self, order: Order, now: float) -> None:
        job = self._names.setdefault(order.row, self._ids[order.row])
        if order.mates:
            what = f"'{job}' shared devices with others, which recorded orders do not say again"
            raise RefusedError(what, where="--times", fix="ask about a run in which each gang has its devices to itself")
        devices = order.devices if order.verb is Verb.START else ()
        self._orders.setdefault((order.verb, order.row, order.epoch), GivenOrder(now, job, devices))

    def fail(self, node: int, devices: frozenset[int], now: float) -> None:
        """What was on the machine is ordered anew."""

    def can(self, row: int) -> frozenset[Can]:
        return frozenset()  # the loop asks its inbox

    def next_time(self) -> float:
        return float("inf")

    def receive(self, now: float) -> list[Report]:
        return []
