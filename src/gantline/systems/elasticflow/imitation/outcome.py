"""The result of a run of ElasticFlow's simulator, for each of its schedules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gantline.core.arrays import Bools, Floats


class Span(NamedTuple):
    """Which job held which ranks from when to when; first = -1: any that are free."""

    job: int
    start: float
    end: float
    first: int
    gpus: int


@dataclass(frozen=True)
class ElasticFlowOutcome:
    """One column per job."""

    deadline: Floats  # infinity: best effort
    start: Floats
    end: Floats  # as it is recorded
    exact: Floats | None  # ElasticFlow only: before it is rounded up to slots
    ended: Floats  # the round that saw it; nan: it never ended
    rejected: Bools
    spans: list[Span]
    rounds: int
