"""The contract of runners about gangs: what is reported is held against what the processes themselves say.

Derive a class from `GangContract` and define `bench`. Each test waits for something to happen, for seconds and not for a number of looks,
so that a runner which starts slowly is asked the same. What a bench does not have (a second node, an engine that can be away) is skipped,
as is what the runner denies by its abilities.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar
from unittest import SkipTest

from gantline.core.cluster import Cluster
from gantline.core.inputs import Fault
from gantline.engine.executor import Can, News, Order, Report, Verb
from gantline.live.host import is_locked
from gantline.live.jobs.launch import Launch
from gantline.live.runners.runner import Runner
from gantline.live.runners.runner_context import Contact, Task
from gantline.live.runners.runner_events import Ending, NodeNews, NodeState, Present, RunnerEvents
from gantline.live.scheduler.loop_thread import WallClock

Found = TypeVar("Found")
_ENDS = (News.STOPPED, News.FINISHED, News.FAILED)


class GangContract(ABC):
    """What a service relies on, one test each."""

    seconds = 60.0  # after which something that is expected counts as missing
    again = 5.0  # between two orders of the same, as the engine repeats them

    @abstractmethod
    def bench(self) -> GangBench:
        """A fresh runner on its bench."""

    def until(self, look: Callable[[], Found | None], what: str, order: Order | None = None) -> Found:
        """Wait for something; `order` is repeated meanwhile."""
        begun = last = time.monotonic()
        while time.monotonic() < begun + self.seconds:
            if found := look():
                return found
            if order is not None and time.monotonic() > last + self.again:
                last = time.monotonic()
                self.made.send(order)
            time.sleep(0.02)
        seen = [(one.report.news.value, one.report.row, one.report.epoch, one.report.devices) for one in self.made.reports]
        raise AssertionError(f"{what}; reported {seen}")

    made: GangBench

    def begin(self, *needed: Can) -> GangBench:
        """A fresh bench; a test that needs an ability which the runner denies is reported as skipped."""
        self.made = self.bench()
        if denied := [ability.value for ability in needed if ability not in self.made.runner.abilities]:
            raise SkipTest(f"the runner denies this ability: {denied[0]}")
        return self.made

    def expect(self, *news: News, row: int = 0, epoch: int = 1, order: Order | None = None) -> GangReport:
        """Wait for a report."""

        def look() -> GangReport | None:
            reports = (one for one in self.made.reports if one.report.news in news and (one.report.row, one.report.epoch) == (row, epoch))
            return next(reports, None)

        return self.until(look, f"no '{' or '.join(one.value for one in news)}' of row {row}, epoch {epoch}", order)

    def start(self, row: int = 0, devices: tuple[int, ...] = (0,), epoch: int = 1, done: float = 0.0) -> GangReport:
        """Start a job and wait until all its ranks are there."""
        order = Order(Verb.START, row, epoch, devices, done=done)
        self.made.send(order)
        found = self.expect(News.STARTED, row=row, epoch=epoch, order=order)
        ranks = len(devices) if row == 1 else 1
        self.until(lambda: all(self.made.environment(row, epoch, rank) for rank in range(ranks)), "not all ranks are there")
        return found

    def stop(self, row: int = 0, epoch: int = 1, done: float = 0.0) -> GangReport:
        order = Order(Verb.STOP, row, epoch, done=done)
        self.made.send(order)
        return self.expect(*_ENDS, row=row, epoch=epoch, order=order)

    # --- where a gang is ------------------------------------------------------------------------------------------------
    def test_a_report_says_where_the_gang_is_and_not_what_was_ordered(self) -> None:
        bench = self.begin()
        self.start(devices=(0,))
        bench.reports.clear()
        order = Order(Verb.START, 0, 1, (1,))
        bench.send(order)
        found = self.expect(News.STARTED, order=order).report
        assert set(found.devices) == {0}, f"it runs on device 0, and {found.devices} is reported"

    def test_a_gang_that_shall_go_on_with_other_devices_is_not_started_again(self) -> None:
        bench = self.begin(Can.DEVICES)
        self.start(devices=(0,))
        order = Order(Verb.START, 0, 2, (0, 1), onto=1)
        bench.send(order)

        def switched() -> bool:
            bench.runner.switched("1", 2)  # as the job reports through the service
            return any((one.report.news, one.report.epoch) == (News.STARTED, 2) for one in bench.reports)

        self.until(switched, "it did not switch", order)
        assert bench.alive(0) == ["rank.1.1.0"], "it was stopped and started instead of going on"
        assert bench.began(0) == [(1, 0)]

    def test_a_gang_over_two_nodes_finds_true_names_in_its_environment(self) -> None:
        bench = self.begin()
        if not bench.across:
            raise SkipTest("the runner has one node")
        found = self.start(row=1, devices=bench.across).report
        assert set(found.devices) == set(bench.across)
        first, second = (bench.environment(1, 1, rank) for rank in (0, 1))
        for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "NNODES"):
            assert first[name] == second[name]
        assert (first["WORLD_SIZE"], first["NNODES"], first["NODE_RANK"], second["NODE_RANK"]) == ("2", "2", "0", "1")
        assert (first["LOCAL_RANK"], second["LOCAL_RANK"], first["LOCAL_WORLD_SIZE"]) == ("0", "0", "1")

    # --- its end --------------------------------------------------------------------------------------------------------
    def test_an_end_is_reported_when_every_rank_has_saved_and_is_gone(self) -> None:
        bench = self.begin()
        self.start(row=1, devices=(0, 1))
        found = self.stop(row=1)
        assert not found.alive, f"the end is reported, and {found.alive} are still on their devices"
        assert bench.has_saved(1, 0)
        assert bench.has_saved(1, 1), "a rank was ended before it could save"

    def test_a_rank_that_fails_takes_the_others_with_it(self) -> None:
        bench = self.begin()
        self.start(row=1, devices=(0, 1))
        bench.end(1, 3, rank=1)
        found = self.expect(*_ENDS, row=1)
        assert found.report.news is News.FAILED
        assert found.ending is not None
        assert found.ending.exit == 3
        assert not found.alive, f"a rank is left behind: {found.alive}"

    def test_what_a_job_has_saved_is_what_it_goes_on_from(self) -> None:
        bench = self.begin()
        self.start()
        assert self.stop(done=7.0).report.done == 7.0
        assert self.start(epoch=2, done=7.0).report.done == 7.0
        bench.end(0, 5)
        failed = self.expect(*_ENDS, epoch=2).report
        assert (failed.news, failed.done) == (News.FAILED, 7.0), "what was done after the last save is lost with a failure"

    def test_what_it_has_printed_is_read_by_offset(self) -> None:
        bench = self.begin()
        self.start()
        self.until(lambda: self._printed(0, 5) == b"hello", "nothing was printed")
        assert self._printed(6, 4) == b"from"
        bench.end(0, 0)
        self.expect(News.FINISHED)
        before = len(b"hello from a rank\n")
        self.until(lambda: self._printed(before, 100) == b"good bye\n", "the last line is missing")
        assert [one.epoch for one in bench.runner.incarnations("1")] == [1]

    def _printed(self, start: int, count: int) -> bytes:
        output = self.made.runner.output("1", 1)
        try:
            return output.read(start, count)
        finally:
            output.close()

    def test_devices_that_are_declared_lost_are_empty_and_can_be_used_again(self) -> None:
        bench = self.begin()
        self.start()
        bench.runner.fail(0, frozenset({0, 1}), time.time())
        found = self.expect(*_ENDS)
        assert not found.alive
        self.start(epoch=2)

    # --- while a service, a node or the engine is away ------------------------------------------------------------------
    def test_a_gang_is_adopted_with_its_devices_and_ends_as_it_would_have(self) -> None:
        bench = self.begin()
        self.start(row=1, devices=(0, 1))
        bench.runner.close()
        (present,) = bench.attach()
        assert (present.job, present.epoch, len(present.devices), present.is_over) == ("2", 1, 2, False)
        assert set(self.expect(News.STARTED, row=1).report.devices) == {0, 1}
        assert not self.stop(row=1).alive
        assert bench.began(1) in ([(1, 0), (1, 1)], [(1, 1), (1, 0)])

    def test_an_end_while_no_service_ran_is_told_to_the_next_one(self) -> None:
        bench = self.begin()
        self.start()
        bench.runner.close()
        bench.end(0, 7)
        self.until(lambda: not bench.alive(0), "it does not end")
        bench.attach()
        order = Order(Verb.START, 0, 1, (0,))
        bench.send(order)
        found = self.expect(*_ENDS, order=order)
        assert found.ending is not None
        assert (found.report.news, found.ending.exit, bench.began(0)) == (News.FAILED, 7, [(1, 0)])

    def test_the_loss_of_a_node_is_told_before_its_gangs_and_is_not_their_fault(self) -> None:
        bench = self.begin()
        if bench.lose is None or not bench.across:
            raise SkipTest("the runner has one node")
        self.start(row=1, devices=bench.across)
        name = bench.environment(1, 1, 1)["GANTLINE_DEVICES"].split(",")[1].rpartition(":")[0]
        bench.lose(name)
        found = self.expect(*_ENDS, row=1)
        assert (found.report.news, found.report.lost) == (News.FAILED, Fault.NODE)
        assert [news.name for news in bench.nodes if news.state is NodeState.LOST] == [name]

    def test_while_the_engine_is_away_jobs_go_on_and_nothing_starts_twice(self) -> None:
        bench = self.begin()
        if bench.away is None:
            raise SkipTest("there is no engine beneath the runner")
        self.start(row=1, devices=(1,))
        order = Order(Verb.START, 0, 1, (0,))
        with bench.away():
            for _ in range(3):
                bench.send(order)
                time.sleep(1.0)
            assert bench.alive(1), "it ended with the engine"
            assert bench.runner.alive, "an engine that does not answer for a while is no reason to give up"
        self.expect(News.STARTED, order=order)
        self.stop()
        self.stop(row=1)
        assert (bench.began(0), bench.began(1)) == ([(1, 0)], [(1, 0)])


# A runner under test with jobs that say on a board, a folder which they and the test see, what has really become of them.

#: A rank holds a lock for as long as it lives, notes its start, then its environment, for which tests wait, prints two lines, and goes on
#: until the board says that it shall end. When it is stopped it notes that it has saved; the second rank takes a while for that.
_RANK = """
exec 9> "$BOARD/rank.$GANTLINE_JOB_ID.$GANTLINE_EPOCH.$RANK"
flock 9
trap '[ "$RANK" = 0 ] || sleep 0.5; touch "$BOARD/saved.$GANTLINE_JOB_ID.$RANK"; exit 15' TERM
echo "$GANTLINE_JOB_ID $GANTLINE_EPOCH $RANK" >> "$BOARD/began"
env > "$BOARD/env.$GANTLINE_JOB_ID.$GANTLINE_EPOCH.$RANK.draft"
mv "$BOARD/env.$GANTLINE_JOB_ID.$GANTLINE_EPOCH.$RANK.draft" "$BOARD/env.$GANTLINE_JOB_ID.$GANTLINE_EPOCH.$RANK"
echo hello from a rank
end="$BOARD/end.$GANTLINE_JOB_ID.$RANK"
while [ ! -e "$end" ]; do sleep 0.05 9>&-; done
echo good bye
exit $(cat "$end")
"""


@dataclass(frozen=True)
class GangReport:
    """A report as it was received, and which ranks of its job were alive at that moment."""

    report: Report
    ending: Ending | None
    alive: tuple[str, ...]


class GangBench(ABC):
    """Row 0 is a job of one process, row 1 one with a rank per device. Devices 0 and 1 are on one node."""

    across: tuple[int, ...] = ()  # two devices on two nodes; none: the runner has one machine
    lose: Callable[[str], None] | None = None  # ends a node by its name; None: the runner has one machine
    away: Callable[[], AbstractContextManager[None]] | None = None  # what is beneath the runner does not answer; None: there is nothing

    def __init__(self, board: Path) -> None:
        self.board = board
        usual = Launch((_RANK,), shell=True, env={"BOARD": str(board)}, resumes=True, grace=20.0)
        self.launches = (replace(usual, changes=("devices",)), replace(usual, processes=0))
        self.attach()

    @abstractmethod
    def open(self) -> Runner:
        """A fresh runner of the same machines."""

    def attach(self) -> list[Present]:
        """Let a fresh runner take over; reports of the earlier one are forgotten."""
        self.reports: list[GangReport] = []
        self.nodes: list[NodeNews] = []
        self.runner = self.open()
        self._cluster = self.runner.cluster
        present = list(self.runner.adopt())
        jobs = {f"{row + 1}": row for row in range(len(self.launches))}
        contact = Contact(self._task, jobs.get, WallClock(time.time()), self._receive, lambda: self._cluster)
        self.runner.attach(contact)
        return present

    def _task(self, row: int) -> Task:
        return Task(f"{row + 1}", self.launches[row])

    def _receive(self, events: RunnerEvents) -> None:
        for news in events.nodes:
            self.nodes.append(news)
            if news.node is not None and news.name not in {node.name for node in self._cluster.nodes}:
                self._cluster = Cluster((*self._cluster.nodes, news.node))
        for report, ending in events.reports:
            self.reports.append(GangReport(report, ending, tuple(self.alive(report.row))))

    def send(self, order: Order) -> None:
        self.runner.send(order, time.time())

    # --- the board ------------------------------------------------------------------------------------------------------
    def alive(self, row: int) -> list[str]:
        """Ranks of a job that are there, of whichever epoch."""
        return [path.name for path in self.board.glob(f"rank.{row + 1}.*") if is_locked(path)]

    def began(self, row: int) -> list[tuple[int, int]]:
        """Epoch and rank of each process of a job that has started, in order."""
        try:
            lines = (self.board / "began").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        return [(int(epoch), int(rank)) for job, epoch, rank in map(str.split, lines) if job == f"{row + 1}"]

    def environment(self, row: int, epoch: int, rank: int) -> dict[str, str]:
        """What a rank has found in its environment; nothing: it has not said so yet."""
        try:
            text = (self.board / f"env.{row + 1}.{epoch}.{rank}").read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)

    def end(self, row: int, code: int, rank: int = 0) -> None:
        """Let a rank end by itself."""
        (self.board / "draft").write_text(str(code), encoding="utf-8")
        (self.board / "draft").rename(self.board / f"end.{row + 1}.{rank}")

    def has_saved(self, row: int, rank: int = 0) -> bool:
        """Whether a rank has saved because it was stopped."""
        return (self.board / f"saved.{row + 1}.{rank}").exists()
