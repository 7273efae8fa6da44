"""The journal behind a checkpoint, read for folding: inputs with the time at which they were received, and the decisions that followed.

A line that cannot be read is not a reason to give up: it is named, and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from gantline.core.cluster import Cluster
from gantline.core.cluster_spec import decode_cluster
from gantline.core.errors import RefusedError
from gantline.core.inputs import Input, News, Report, Submit, decode_input
from gantline.core.json_reader import Reader
from gantline.core.plan import Plan
from gantline.engine.drivers.journal import Check, PartedError, PlanDifference, Replayed
from gantline.engine.executor import Can, Order, Verb
from gantline.engine.policy_failures import OverBudgetError
from gantline.live.scheduler.archive import Archive, Launches
from gantline.live.scheduler.setup import Setup, make_loop
from gantline.live.store.records import UNREADABLE
from gantline.live.wall_time import Live, Script
from gantline.models.profiles.colocation_fit import WholeLife
from gantline.policies.recorded import GivenOrder
from gantline.traces.files.python_file import GivenCode, only_given


@dataclass
class Past:
    """A stretch of the journal."""

    script: list[tuple[float, Input]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)  # of the line of each input
    decisions: list[dict[str, Any]] = field(default_factory=list)
    overruns: dict[int, float] = field(default_factory=dict)  # decisions that came too late, and when they were asked for
    aside: dict[int, str] = field(default_factory=dict)  # number of each line that cannot be used -> why
    lines: int = 0

    @staticmethod
    def read(numbered: Iterable[tuple[int, Mapping[str, Any]]]) -> Past:
        """Read the lines."""
        found = Past()
        for number, line in numbered:
            found.lines += 1
            try:
                found._take(number, line)
            except Exception as error:
                found.aside[number] = f"cannot be read: {one_line(error)}"
        return found

    def _take(self, number: int, line: Mapping[str, Any]) -> None:
        if UNREADABLE in line:
            raise ValueError("it is not JSON")
        if "overrun" in line:
            self.overruns[int(line["overrun"])] = float(line["now"])
        elif "input" in line:
            received = float(line["heard"])
            self.script.append((received, decode_input({key: line[key] for key in line if key not in ("heard", "after")})))
            self.numbers.append(number)
        else:
            self.decisions.append({**line, "decision": int(line["decision"]), "now": float(line["now"]), "hash": str(line["hash"])})

    @property
    def until(self) -> float:
        """The instant of the last decision, whether or not something was received since."""
        return max((*(line["now"] for line in self.decisions), *self.overruns.values()), default=float("-inf"))

    def fold(self, loop: Live) -> None:
        """Fold it into a loop; inputs that cannot be applied are set aside, and leave the script."""
        guard, loop.engine.guard = loop.engine.guard, lambda call: self._again(loop, call)
        try:
            refused = {place: one_line(error) for place, error in loop.fold(self.script, self.until)}
        finally:
            loop.engine.guard = guard
        self.aside |= {self.numbers[place]: f"cannot be applied: {why}" for place, why in refused.items()}
        for place in sorted(refused, reverse=True):
            del self.script[place], self.numbers[place]

    def _again(self, loop: Live, call: Callable[[], Plan]) -> Plan:
        """The policy's answer; a decision that was too late then is too late again, however quick it would be now."""
        if loop.state.decision in self.overruns:
            raise OverBudgetError("the decision took too long", where="journal")
        return call()


def one_line(error: Exception) -> str:
    """An error in one line."""
    what = " ".join(str(error).split())
    return what if what and not isinstance(error, KeyError) else f"{type(error).__name__} {what}".strip()


# A live run as its store holds it: the jobs as they were submitted, the orders about them, and when each one succeeded.
#
# Orders are not written down: they follow from what was received. So the past is folded again, as a replay does, and
# what it orders is noted.


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
            variants = [
                variant for variant in job.get("options", ()) if variant["gpus"] == size and variant["type"] == self._type(start.devices[0])
            ]
            rate = variants[0].get("rate", 1.0) if variants else 1.0
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


# The past of a live scheduler folded again: from each checkpoint, what was received must give the plans that were made.


class KeptPast(Protocol):
    """What is read of a store."""

    def checkpoints(self) -> Iterator[tuple[int, dict[str, Any]]]: ...

    def journal(self, after: int = 0) -> Iterator[tuple[int, dict[str, Any]]]: ...

    def jobs(self) -> Iterator[dict[str, Any]]: ...


@dataclass
class _Stopped:
    """A clock that is never read: each input has the time at which it was received."""

    at: float

    def now(self) -> float:
        return self.at


def replay_store(
    store: KeptPast, archive: Archive | None = None, run: RecordedRun | None = None, code: GivenCode | None = None
) -> Replayed:
    """Fold every stretch from one kept checkpoint to the next, up to the first plan that is not the recorded one.

    A service that is stopped or killed has received its last inputs and not decided yet: what the newest stretch gives beyond the last
    decision of the record is no difference. The next service makes these decisions first, and records them. Of a store that was compacted
    the record begins with its oldest checkpoint; jobs that have left it are found in the archive. A `run` is filled with what was ordered.
    Of Python code that the record names, `code` alone is loaded.
    """
    with only_given(code):
        return _replayed(store, archive, run)


def _replayed(store: KeptPast, archive: Archive | None, run: RecordedRun | None) -> Replayed:
    kept = list(store.checkpoints())
    launches, found = Launches(store.jobs(), archive), Replayed(0, before=int(kept[0][1]["snapshot"]["decision"]) if kept else 0)
    for place, (covers, saved) in enumerate(kept):
        end = kept[place + 1][0] if place + 1 < len(kept) else None
        past = Past.read((number, line) for number, line in store.journal(covers) if end is None or number <= end)
        stretch = _stretch(saved, past, launches, is_last=end is None, run=run)
        left_out = found.left_out + len(past.aside)
        found = Replayed(found.decisions + stretch.decisions, stretch.difference, stretch.open, left_out, found.before)
        if found.difference is not None:
            break
    return found


def _stretch(saved: Mapping[str, Any], past: Past, launches: Launches, *, is_last: bool, run: RecordedRun | None) -> Replayed:
    snapshot = saved["snapshot"]
    cluster = decode_cluster(Reader(snapshot, "checkpoint"))
    setup = Setup.from_json(saved["setup"])
    loop = make_loop(setup, saved, cluster, None, _Stopped(float(snapshot["now"])))
    t = loop.state.tables
    loop.inbox.able = lambda row: setup.able(launches[t.ids[row]], t.cluster)
    check = Check(past.decisions, is_open=is_last)
    loop.engine.recorder = check.decided
    if run is not None:
        run.cluster, run.profiles = run.cluster or cluster, run.profiles or setup.profiles
        run.watch(loop)
    try:
        past.fold(loop)
    except PartedError as parted:
        return Replayed(check.decisions - 1, parted.difference)
    if run is not None:
        run.enter(past.script)
    recorded = len(past.decisions)
    if check.decisions < recorded:
        left = past.decisions[check.decisions]
        return Replayed(check.decisions, PlanDifference(left["decision"], left["now"], "decision", "made", "not made"))
    return Replayed(recorded, open=check.decisions - recorded)
