"""Jobs as Muri's simulator sees them: so many iterations, each a cycle of three stages, and what an event costs them."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from gantline.core.errors import TraceError
from gantline.models.sharing.stage_cycles import ALONE, ITERATION, STAGES, Stages, usable
from gantline.systems.muri.profiles import RestartOverheads
from gantline.traces.trace import Trace


@dataclass(slots=True, eq=False)
class MuriJob:
    """A job of the trace, and where it stands."""

    row: int
    number: int  # what the trace calls it, where that is a number
    submit: float
    gpus: int
    iterations: float
    duration: float
    step: float  # seconds of an iteration alone
    stages: Stages
    overhead: float
    guest: bool  # an opportunistic job of AntMan
    kind: int  # jobs of one kind have the same stages
    left: float = field(init=False)  # iterations
    ran: float = 0.0  # seconds on its devices, those that an event cost included
    running: bool = False
    period: float = 0.0  # seconds of an iteration as it runs now
    charge: float = 0.0  # what the next event costs it
    due: float = 0.0
    changes: int = 0  # of its pace while it ran

    def __post_init__(self) -> None:
        self.left = self.iterations

    @property
    def alone(self) -> float:
        """Seconds that it needs to its end by itself."""
        return self.left * self.step

    def run(self, now: float, period: float, charge: float) -> None:
        """It runs from now on; its end is foreseen as if nothing else happened."""
        if period != self.period:
            self.changes += self.period > 0.0 and self.ran > 0.0
            self.period = period
        self.running, self.charge = True, charge
        self.due = now + self.left * period

    def advance(self, seconds: float) -> None:
        """An event that is not its end: what it costs is paid, whether or not anything restarts."""
        self.ran += seconds
        if seconds > self.charge:
            self.left -= (seconds - self.charge) / self.period


def read_jobs(trace: Trace, overheads: RestartOverheads) -> list[MuriJob]:
    """The jobs of a trace, in its order."""
    frame = trace.frame
    names = ("arrival", "gpus", "duration", "iterations", ITERATION, *STAGES, "model")
    for name in names:
        if name not in frame.columns:
            raise TraceError(f"column '{name}' is missing", file=trace.source, fix="write the trace with gantline trace import muri")
    guests = frame["opportunistic"].to_list() if "opportunistic" in frame.columns else [0] * len(frame)
    named = frame["job"].cast(pl.Int64, strict=False)
    numbers = range(len(frame)) if named.null_count() else named.to_list()
    kinds: dict[Stages, int] = {}
    jobs = []
    for row, (arrival, gpus, duration, iterations, step, *times, model) in enumerate(zip(*(frame[name].to_list() for name in names))):
        stages = Stages(*times)
        if not all(each is not None and each > 0.0 for each in (iterations, step)) or not usable(stages):
            what = f"job '{frame['job'][row]}' has {iterations} iterations of {step} s with stages of {times} s"
            raise TraceError(what, file=trace.source, line=row + 2, fix="give iterations and times above 0, stages of 0 or more")
        kind, overhead, guest = kinds.setdefault(stages, len(kinds)), overheads.of(gpus, model), bool(guests[row])
        jobs.append(MuriJob(row, numbers[row], arrival, gpus, iterations, duration, step * ALONE, stages, overhead, guest, kind))
    return jobs
