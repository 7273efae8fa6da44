"""A runner under test with jobs that say on a board, a folder which they and the test see, what has really become of them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from gantline.core.cluster import Cluster
from gantline.engine.executor import Order, Report
from gantline.live.host import is_locked
from gantline.live.jobs.launch import Launch
from gantline.live.runners.runner import Runner
from gantline.live.runners.runner_context import Contact, Task
from gantline.live.runners.runner_events import Ending, NodeNews, Present, RunnerEvents
from gantline.live.scheduler.loop_thread import WallClock

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
        self.told: list[GangReport] = []
        self.nodes: list[NodeNews] = []
        self.runner = self.open()
        self._cluster = self.runner.cluster
        present = list(self.runner.roll_call())
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
            self.told.append(GangReport(report, ending, tuple(self.alive(report.row))))

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
