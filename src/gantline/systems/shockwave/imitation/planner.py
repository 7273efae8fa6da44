"""Shockwave's planner in its own simulator: nominal time, fair targets, a plan of twenty rounds, a fixed beat of eight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Bools, Floats
from gantline.systems.shockwave.imitation.jobs import ShockwaveJob
from gantline.systems.shockwave.imitation.loop import ShockwaveRounds
from gantline.systems.shockwave.imitation.models import SAMPLES, steps_per_epoch
from gantline.systems.shockwave.policies.learning import Learner
from gantline.systems.shockwave.policies.prediction import Predictor
from gantline.systems.shockwave.policies.window import PlanningWindow, fair_window, plan_with_cut, priorities

_SETTLE = 20  # calls of the calibration before a plan's inputs are read


@dataclass
class Planner:
    """The jobs present, what is believed of them, and the plan in force."""

    makespan: float = 1e-3
    power: float = 12.0
    largest: float = 1.0
    rounds: int = 20
    calibrate: bool = True
    told: bool = True  # whether the planner knows batch sizes that are still to come
    beat: int = 8  # rounds between re-plans although nothing happened
    planned: int = 0
    fair: int = 0  # plans in which every job could keep the fair finish time
    cut: int = 0  # plans whose rounds per job could not be packed and were cut by priority
    number: int = 0  # rounds ended; planner time is nominal
    _predictors: dict[int, Predictor | Learner] = field(default_factory=dict)
    _done: dict[int, int] = field(default_factory=dict)
    _targets: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    _plan: Bools | None = None
    _members: list[int] = field(default_factory=list)
    _row: int = 0
    _beat: int = 0
    _due: bool = True

    def round_ended(self, rounds: ShockwaveRounds, closed: Sequence[ShockwaveJob]) -> None:
        self.number += 1
        self._beat = (self._beat + 1) % self.beat
        self._due |= self._beat == 0
        for job in closed:
            predictor = self._of(job, rounds)
            done = self._done[job.index] = job.done // steps_per_epoch(job.model, job.batch)
            if isinstance(predictor, Learner):
                predictor.observe(job.batch, done)
            elif job.last_turn > 0:
                predictor.observe(*job.measured[-1])

    def choose(self, rounds: ShockwaveRounds) -> list[ShockwaveJob]:
        if rounds.changed or self._due or self._plan is None or self._row >= self.rounds:  # the plan may be shorter than the beat
            self._replan(rounds)
        assert self._plan is not None
        chosen = {self._members[k] for k in np.flatnonzero(self._plan[:, self._row])}
        self._row += 1
        return [job for job in rounds.active if job.index in chosen]

    def _of(self, job: ShockwaveJob, rounds: ShockwaveRounds) -> Predictor | Learner:
        if job.index not in self._predictors:
            self._predictors[job.index] = (
                Predictor(job.planned, job.epoch_seconds, SAMPLES[job.model], rounds.length)
                if self.told
                else Learner(job.epochs, job.seconds_of_epoch, job.batch)
            )
        return self._predictors[job.index]

    def _replan(self, rounds: ShockwaveRounds) -> None:
        jobs, window, more = self.question(rounds)
        share = min(1.0, rounds.gpus / len(jobs))
        fair = fair_window(window, more["target"], share, self.largest, rounds.length * (self.number + self.rounds))
        self.fair += int(fair is not None)
        self._plan, cut = plan_with_cut(window if fair is None else fair)
        self._members, self._row = [job.index for job in jobs], 0
        self.planned += 1
        self.cut += int(cut)

    def question(self, rounds: ShockwaveRounds) -> tuple[list[ShockwaveJob], PlanningWindow, dict[str, Floats]]:
        """The jobs to plan for and what is believed of them; arrivals and departures are taken note of."""
        jobs = list(rounds.active)
        share = min(1.0, rounds.gpus / len(jobs))
        if rounds.changed:
            for job in jobs:
                self._targets.setdefault(job.index, []).append((self.number, self._fair_finish(job, rounds, share)))
        self._due = rounds.changed = False
        done = np.array([float(self._done.get(job.index, 0)) for job in jobs])
        predictors = [self._of(job, rounds) for job in jobs]
        if self.calibrate:
            for predictor in predictors:
                predictor.calibrate(_SETTLE)
        remaining = np.array([one.remaining(int(at)) for one, at in zip(predictors, done)])
        target = np.array([self._target(job) for job in jobs])
        lateness = (rounds.length * self.number + remaining / share) / target
        window = PlanningWindow(
            np.array([job.gang for job in jobs], dtype=np.int64),
            np.array([float(job.epochs) for job in jobs]),
            done,
            np.array([one.mean(int(at)) for one, at in zip(predictors, done)]),
            remaining,
            priorities(lateness, remaining, largest=self.largest, power=self.power, length=rounds.length),
            rounds.gpus,
            self.rounds,
            rounds.length,
            self.makespan,
        )
        return jobs, window, {"target": target, "lateness": lateness}

    def _fair_finish(self, job: ShockwaveJob, rounds: ShockwaveRounds, share: float) -> float:
        """When the job would end with an equal part of the cluster from its beginning to its end."""
        predictor, done = self._of(job, rounds), self._done.get(job.index, 0)
        if self.calibrate:
            predictor.calibrate()
        spent = predictor.spent(done)
        if self.calibrate:
            predictor.calibrate()
        return job.admitted + (spent + predictor.remaining(done)) / share

    def _target(self, job: ShockwaveJob) -> float:
        """The fair finish time so far, by how long each estimate stood, and a little of the last."""
        series = self._targets[job.index]
        ends = [number for number, _ in series[1:]] + [self.number]
        weight = np.array([end - number for (number, _), end in zip(series, ends)], dtype=np.float64)
        value = np.array([value for _, value in series])
        mean = float(weight @ value / weight.sum()) if weight.sum() > 0 else float(value[-1])
        return 0.9 * mean + 0.1 * float(value[-1])
