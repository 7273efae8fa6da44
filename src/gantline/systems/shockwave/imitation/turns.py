"""Shares of time become turns: Gavel's mechanism with a reset at most every 1,000 s (Gavel, OSDI 2020, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gantline.systems.shockwave.imitation.jobs import ShockwaveJob
from gantline.systems.shockwave.imitation.loop import ShockwaveRounds
from gantline.systems.shockwave.imitation.shares import Memory, Rule

_BETWEEN_RESETS = 1000.0


@dataclass
class Turns:
    """What each job has received since the last reset, and which is next."""

    rule: Rule
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        self.shares: dict[int, float] = {}
        self._time: dict[int, float] = {}  # seconds run since the last reset, from half a round on
        self._deficit: dict[int, float] = {}
        self._total = 0.0
        self._reset_at = 0.0

    def round_ended(self, rounds: ShockwaveRounds, closed: Sequence[ShockwaveJob]) -> None:
        """Credit the round that has just ended."""
        for job in closed:
            self._time[job.index] = self._time.get(job.index, rounds.length / 2) + job.last_turn
            self._total += job.last_turn

    def choose(self, rounds: ShockwaveRounds) -> list[ShockwaveJob]:
        jobs = rounds.active
        for job in jobs:
            self._time.setdefault(job.index, rounds.length / 2)
            self._deficit.setdefault(job.index, 0.0)
        if rounds.changed and (self._reset_at == 0.0 or rounds.clock - self._reset_at >= _BETWEEN_RESETS):
            self._reset(rounds)
        order = sorted(jobs, key=lambda job: (-self._priority(job), -self._deficit[job.index], -self.shares.get(job.index, 0.0)))
        chosen, left = [], rounds.gpus
        for job in order:
            if job.gang <= left:
                left -= job.gang
                if job.index in self.shares:  # a job without a share may take a place, but is not run
                    chosen.append(job)
        return chosen

    def _priority(self, job: ShockwaveJob) -> float:
        share = self.shares.get(job.index, 0.0)
        return share / (self._time[job.index] / self._total) if share else 0.0

    def _reset(self, rounds: ShockwaveRounds) -> None:
        half, passed = rounds.length / 2, rounds.clock - self._reset_at
        for job in rounds.active:
            self._deficit[job.index] += self.shares.get(job.index, 0.0) * passed - (self._time[job.index] - half)
            self._time[job.index] = half
        self._total = half * len(rounds.active)
        self._reset_at = rounds.clock
        self.shares = self.memory.shares = self.rule(rounds.active, rounds.gpus, rounds.clock, self.memory)
        rounds.changed = False
