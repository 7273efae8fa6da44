"""What the synthesizer remembers from one decision to the next, as a plain value: it is the memory of its plans."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from gantline.core.arrays import Bools
from gantline.core.snapshot import Snapshot

_MOST_SAID = 20
MOST = 200  # jobs of the past that are kept, to draw how others arrive


@dataclass
class Remembered:
    """`let_in` is the last row that admission let in, `seen` the last that was noticed; rows are numbered in order of arrival."""

    chosen: str = ""
    since: float = 0.0
    why: str = ""  # it was chosen
    asked_at: float = -math.inf  # when the last choice was made
    asked_decision: int = 0
    load: float = 0.0  # devices that were asked for then
    let_in: int = -1
    seen: int = -1
    decided: int = 0  # the number of the last decision that was made in time
    said: list[str] = field(default_factory=list)  # notes given to users, once each
    members: dict[str, object] = field(default_factory=dict)
    past: list[list[float]] = field(default_factory=list)  # arrival, devices, estimate

    @staticmethod
    def of(memory: Any) -> Remembered:
        """From the memory of the last plan."""
        return (
            Remembered()
            if memory is None
            else Remembered(**{**memory, "members": dict(memory["members"]), "past": list(memory["past"]), "said": list(memory["said"])})
        )

    def as_memory(self) -> dict[str, object]:
        """As the memory of the next."""
        return asdict(self)

    def lost_a_turn(self, snapshot: Snapshot) -> bool:
        """Whether the last decision was lost, or the first one: most likely rolling futures forward took too long, and would again.

        Then whatever is in charge decides at once, and the next choice is made when the next is due.
        """
        lost = snapshot.decision > self.decided + 1
        if lost and self.decided:
            self.asked_at, self.asked_decision = snapshot.now, snapshot.decision
        self.decided = snapshot.decision
        return lost

    def new_of(self, notes: Iterable[str]) -> list[str]:
        """The notes that are new; only a few are remembered."""
        found = [note for note in dict.fromkeys(notes) if note not in self.said][: _MOST_SAID - len(self.said)]
        self.said += found
        return found

    def notice(self, snapshot: Snapshot, keep: bool) -> None:
        """Jobs that are new belong to the past from which newcomers are drawn."""
        jobs = snapshot.jobs
        fresh = np.flatnonzero(jobs.rows > self.seen)
        if len(fresh):
            self.seen = int(jobs.rows[fresh].max())
            if keep:
                entries = zip(jobs.arrival[fresh].tolist(), jobs.gpus[fresh].tolist(), jobs.estimate[fresh].tolist())
                self.past = [*self.past, *([float(a), int(g), float(e)] for a, g, e in entries)][-MOST:]

    def admit(self, snapshot: Snapshot, limit: float) -> Bools:
        """Which jobs are held back, after as many as the limit (GPUs) allows were let in, in order of arrival, as `engine.advance` does."""
        jobs = snapshot.jobs
        outside = jobs.rows > self.let_in
        demand = float(jobs.gpus[~outside].sum())
        for place in np.flatnonzero(outside).tolist():
            if demand > limit:
                break
            demand += float(jobs.gpus[place])
            self.let_in = int(jobs.rows[place])
        return np.asarray(jobs.rows > self.let_in)
