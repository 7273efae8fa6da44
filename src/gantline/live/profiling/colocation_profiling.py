"""Jobs measured together, on the runner that will run them: whatever it adds to a start or a stop is part of what is measured.

Gangs fill a node one after the other, each is stopped and resumed among the others, all are stopped and resumed at once, and they leave
one after the other. All that run are watched at every step of that, so that each is seen beside few and beside many. (Suspending the
others instead is quicker, but speeds measured so on slices of a GPU were below those of live runs.) They must use `gantline.train`, which
notes its steps.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError
from gantline.core.slices import slices_of_gpu
from gantline.engine.executor import News, Order, Report, Verb
from gantline.live.jobs.launch import Launch
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.runners.runner import Contact, Runner, RunnerEvents, Task
from gantline.live.scheduler.loop_thread import WallClock
from gantline.models.profiles.bundle import Speed
from gantline.models.profiles.colocation_fit import TrialLife, fit_colocation

Found = TypeVar("Found")
_ENDLESS = 10**9  # steps
_LOOK = 0.01  # seconds between checks
_WARM = 0.5  # seconds of first steps, and of steps after a change of what runs, that are not taken for the usual speed


@dataclass
class TrialGang:
    """A gang to be measured; `launch` says how it is run for so many steps: more than it will ever make here."""

    name: str
    devices: tuple[int, ...]
    launch: Callable[[int], Launch]
    part: float = 1.0  # of its GPU that each device is, in the unit in which the gangs' size is counted

    @property
    def held(self) -> float:
        return self.part * len(self.devices)


@contextmanager
def colocated(make: Callable[[Path], Runner], gangs: Sequence[TrialGang], size: float) -> Iterator[ColocatedGangs]:
    """Gangs on a runner of their own, made for a folder that is removed afterwards; nothing outlives it."""
    home = Path(tempfile.mkdtemp(prefix="gantline-colocation-"))
    found = ColocatedGangs(home, make(home), gangs, size)
    try:
        yield found
    finally:
        found.end()
        shutil.rmtree(home, ignore_errors=True)


def measure_colocation(
    command: Sequence[str], cluster: Cluster, size: int, seconds: float, grace: float, note: Callable[[str], None]
) -> dict[str, Speed]:
    """What gangs of one job, as many of that size as fill a node, show of it on each type that has so many devices."""
    found, first = {}, 0

    def launch(steps: int) -> Launch:
        words = tuple(word.replace("{steps}", str(steps)) for word in command)
        return Launch(words, processes=0, grace=grace, resumes=True)

    for node in cluster.nodes:
        held = range(first, first + node.gpus - size + 1, size)
        first += node.gpus
        if held and node.type not in found:
            note(f"{len(held)} gangs of {size} x {node.type} beside each other")
            gangs = [TrialGang(command[0], tuple(range(at, at + size)), launch) for at in held]
            with colocated(lambda home: LocalRunner(home, cluster.spec), gangs, slices_of_gpu(node, cluster.nodes)) as one:
                found[node.type] = fit_colocation(one.measure(seconds))
    return found


@dataclass
class ColocatedGangs:
    """Gangs of one node, or of one GPU whose slices are of several sizes, by row."""

    home: Path
    runner: Runner
    gangs: Sequence[TrialGang]
    size: float  # devices of the node, or of the GPU that they are cut from, each counted by its part
    limit: float = 120.0  # seconds after which something that does not happen is given up
    _launches: list[Launch] = field(default_factory=list)
    _reports: list[tuple[float, Report]] = field(default_factory=list)  # with the time at which each was received
    _orders: list[Order] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._logs = [self.home / f"steps{row}" for row in range(len(self.gangs))]
        self._launches = [self._noting(row, _ENDLESS) for row in range(len(self.gangs))]
        self._orders = [Order(Verb.START, row, 1, gang.devices) for row, gang in enumerate(self.gangs)]
        task, place = lambda row: Task(f"trial{row}", self._launches[row]), lambda job: int(job.removeprefix("trial"))
        self.runner.attach(Contact(task, place, WallClock(time.time()), self._received, lambda: self.runner.cluster))

    def measure(self, seconds: float) -> list[TrialLife]:
        """The whole of it; every window is about so many seconds long."""
        rows = range(len(self.gangs))
        speeds: list[list[tuple[float, float]]] = [[] for _ in rows]
        starts, lives, running = [], [], set[int]()

        def watch() -> None:
            for row, speed in self._watched(running, seconds).items():
                near = sum(self.gangs[other].held for other in running - {row})
                free = self.size - self.gangs[row].held
                speeds[row].append((near / free if free else 0.0, speed))

        self._started(0)  # the first start of all reads everything from disk
        self._stopped(0)
        for row in rows:
            starts.append(self._started(row))
            running.add(row)
            watch()
        for row in rows:
            lives.append((self._stopped(row), self._started(row)))
        watch()
        together = self._delay_of_each_other([resume for _, resume in lives])
        for row in rows[:-1]:
            self._stopped(row)
            running.remove(row)
            watch()
        return [TrialLife(start, *life, tuple(seen), together) for start, life, seen in zip(starts, lives, speeds)]

    def _delay_of_each_other(self, resumes: Sequence[float]) -> float:
        """How much longer a resume takes for each other device on which one begins at the same time, on average over these gangs."""
        sizes = [len(gang.devices) for gang in self.gangs]
        if len(sizes) < 2:
            return 0.0
        for row in range(len(sizes)):
            self._stopped(row)
        begun = [self._ordered(row) for row in range(len(sizes))]
        took = [self._up(row, at) for row, at in enumerate(begun)]
        return statistics.fmean((late - usual) / (sum(sizes) - size) for late, usual, size in zip(took, resumes, sizes))

    def end(self) -> None:
        """End what still runs."""
        for order in self._orders:
            self.runner.send(replace(order, verb=Verb.STOP), 0.0)
        over, limit = (News.STOPPED, News.FINISHED, News.FAILED), time.monotonic() + self.limit
        while not all(any(self._heard(row, news) for news in over) for row in range(len(self.gangs))) and time.monotonic() < limit:
            time.sleep(_LOOK)
        self.runner.leave(drained=True)
        self.runner.close()

    # --- one gang ---------------------------------------------------------------------------------------------------------
    def _noting(self, row: int, steps: int) -> Launch:
        launch = self.gangs[row].launch(steps)
        return replace(launch, env={**launch.env, "GANTLINE_TRIAL_LOG": str(self._logs[row])})

    def _started(self, row: int) -> float:
        return self._up(row, self._ordered(row))

    def _ordered(self, row: int) -> float:
        """When it was ordered to start."""
        self._logs[row].unlink(missing_ok=True)
        began = time.monotonic()
        self.runner.send(self._orders[row], began)
        return began

    def _up(self, row: int, began: float) -> float:
        """Seconds from the order to its first step; slow first steps count as part of it."""
        first = self._until(row, lambda: next(iter(self._notes(row)), None))
        early = self._until(row, lambda: self._after(row, first[0] + _WARM))
        late = self._until(row, lambda: self._after(row, early[0] + _WARM))
        return max(0.0, early[0] - began - early[1] * (late[0] - early[0]) / (late[1] - early[1]))

    def _stopped(self, row: int) -> float:
        """Seconds from the order until it is gone; the next start resumes it."""
        began = time.monotonic()
        self.runner.send(replace(self._orders[row], verb=Verb.STOP), began)
        gone = self._until(row, lambda: self._heard(row, News.STOPPED))
        self._orders[row] = replace(self._orders[row], epoch=self._orders[row].epoch + 1)
        return gone - began

    # --- all of them ------------------------------------------------------------------------------------------------------
    def _watched(self, running: set[int], seconds: float) -> dict[int, float]:
        """Steps per second of each while these run."""
        time.sleep(_WARM)
        begun = {row: self._notes(row)[-1] for row in running}
        found = {}
        for row in running:
            end = self._until(row, partial(self._after, row, begun[row][0] + seconds))
            found[row] = (end[1] - begun[row][1]) / (end[0] - begun[row][0])
        return found

    def _notes(self, row: int) -> list[tuple[float, int]]:
        """When it noted how many steps."""
        try:
            lines = self._logs[row].read_bytes().split(b"\n")[:-1]  # behind the last line's end is nothing
        except FileNotFoundError:
            return []
        return [(float(now), int(made)) for now, made in (line.split() for line in lines)]

    def _after(self, row: int, instant: float) -> tuple[float, int] | None:
        return next((note for note in reversed(self._notes(row)) if note[0] >= instant), None)

    def _received(self, events: RunnerEvents) -> None:
        """From the runner's own thread; one addition to a list is whole."""
        self._reports += [(time.monotonic(), report) for report, _ in events.reports]

    def _heard(self, row: int, news: News) -> float | None:
        """When that was first heard of its present incarnation."""
        epoch = self._orders[row].epoch
        return next((at for at, one in self._reports if (one.news, one.row, one.epoch) == (news, row, epoch)), None)

    def _until(self, row: int, look: Callable[[], Found | None]) -> Found:
        end, name = time.monotonic() + self.limit, self.gangs[row].name
        while (found := look()) is None:
            if self._heard(row, News.FAILED):
                lines = self._output(row)
                raise RefusedError(f"failed: {' / '.join(lines)}", where=name, fix="run it without gantline to see why")
            if time.monotonic() > end:
                raise RefusedError(
                    f"nothing was heard of it for {self.limit:g} s", where=name, fix="jobs are watched through gantline.train"
                )
            time.sleep(_LOOK)
        return found

    def _output(self, row: int) -> list[str]:
        logs = sorted((self.home / "jobs" / f"trial{row}").glob("*/log"))
        return logs[-1].read_text(encoding="utf-8", errors="replace").strip().splitlines()[-5:] if logs else []
