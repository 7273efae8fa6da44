"""Shockwave's planner in its own simulator: how long jobs will run, fair targets, a plan of twenty rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Bools, Floats
from gantline.systems.shockwave.imitation.jobs import SAMPLES, ShockwaveJob, steps_per_epoch
from gantline.systems.shockwave.imitation.loop import Chooser, ShockwaveRounds
from gantline.systems.shockwave.policies import PlanningWindow, fair_window, plan_with_cut, priorities

# How long a job whose batch size changes will still run (Zheng et al.: Shockwave, NSDI 2023, section 5).
#
# The regimes of a job, one per batch size, are as likely as a Dirichlet prior that knows nothing, updated by the epochs seen so far.
# Durations of epochs come from a profile of whole seconds, scaled by one factor where what was measured is far from it.


_TOLERATED = 0.4  # by how much samples measured and profiled may differ before durations are corrected


@dataclass
class Predictor:
    """One job's profile, what has been measured of it, and what follows."""

    batches: Sequence[int]  # per epoch
    seconds: Sequence[float]  # per epoch
    samples: float  # per epoch
    round_length: float = 120.0
    factor: float = 1.0  # by which durations are corrected
    measured: float = 0.0  # samples, as the original counts them
    last: int = 0  # round of the last measurement
    _modes: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.epochs = len(self.batches)
        self._duration = np.maximum(1.0, np.round(np.asarray(self.seconds, dtype=np.float64)))
        self._ends = np.cumsum(self._duration)
        size = np.asarray(self.batches)
        self._modes = list(dict.fromkeys(self.batches))
        self._mean = {mode: float(self._duration[size == mode].mean()) for mode in self._modes}
        self._seen = {mode: np.cumsum(size == mode) for mode in self._modes}

    def observe(self, number: int, speed: float, batch: int) -> None:
        """A task ended in this round at so many steps per second. Rounds of waiting are counted as run: a slip of the original."""
        self.measured += batch * speed * self.round_length * (number - self.last)
        self.last = number

    def calibrate(self, times: int = 1) -> None:
        """Correct durations where samples measured and profiled disagree; another call may change the answer again."""
        for _ in range(times if self.last else 0):
            passed = self.round_length * self.last
            whole = int(np.searchsorted(self._ends, passed, side="right"))
            rest = passed - (float(self._ends[whole - 1]) if whole else 0.0)
            current = self.factor * float(self._duration[min(whole, self.epochs - 1)])
            profiled = self.samples * whole + self.samples * rest / current
            if abs(self.measured - profiled) <= _TOLERATED * profiled:
                return
            before, self.factor = self.factor, profiled / self.measured
            if self.factor == before:
                return

    def spent(self, done: int) -> float:
        """Seconds of the epochs done."""
        return self.factor * float(self._ends[min(done, self.epochs) - 1]) if done > 0 else 0.0

    def mean(self, done: int) -> float:
        """Mean seconds of the epochs done and the one under way."""
        last = min(done, self.epochs - 1)
        return self.factor * float(self._ends[last]) / (last + 1)

    def remaining(self, done: int) -> float:
        """Expected seconds until the end."""
        left = self.epochs - done
        if left <= 0:
            return 1.0
        last = min(done, self.epochs - 1)
        seen = {mode: float(self._seen[mode][last]) for mode in self._modes}
        prior = self.epochs / len(self._modes)
        total = _sum(prior + count for count in seen.values())
        expected = {mode: self.epochs * (prior + seen[mode]) / total for mode in self._modes}
        for mode in self._modes:
            expected[mode] -= min(seen[mode], float(int(expected[mode])))
        seconds = _sum(expected[mode] * self._mean[mode] for mode in self._modes) * self.factor
        return seconds * left / max(int(_sum(expected.values()) + 1), left)


def _sum(values: Iterable[float]) -> float:
    """Rounded after every addition, as the original's: from Python 3.12 on `sum` rounds once, and whole epochs hang on the last digit."""
    total = 0.0
    for value in values:
        total += value
    return total


# The same prediction without knowledge of the future: batch sizes that a job has not had are unknown, and no prior speaks of them.


@dataclass
class Learner:
    """What a job has shown: how long its epochs took at the batch sizes they had."""

    epochs: int
    seconds: Callable[[int], float]  # seconds of an epoch at a batch size that has been seen
    present: int  # the batch size it has now
    ends: list[float] = field(default_factory=lambda: [0.0])  # seconds after so many epochs

    def observe(self, batch: int, done: int) -> None:
        """So many epochs are done, the last of them at the batch size before this one."""
        each = self.seconds(self.present)
        while len(self.ends) <= done:
            self.ends.append(self.ends[-1] + each)
        del self.ends[max(done, 0) + 1 :]
        self.present = batch

    def calibrate(self, times: int = 1) -> None:
        """Nothing to correct: durations are those measured."""

    def spent(self, done: int) -> float:
        """Seconds of the epochs done."""
        return self.ends[min(done, len(self.ends) - 1)]

    def mean(self, done: int) -> float:
        """Mean seconds of the epochs done and the one under way."""
        return (self.spent(done) + self.seconds(self.present)) / (min(done, len(self.ends) - 1) + 1)

    def remaining(self, done: int) -> float:
        """What is left goes on as now: a regime once left is not expected to come back."""
        left = self.epochs - done
        return 1.0 if left <= 0 else left * self.seconds(self.present)


# Shockwave's planner in its own simulator: nominal time, fair targets, a plan of twenty rounds, a fixed beat of eight.

_SETTLE = 20  # calls of the calibration before a plan's inputs are read


@dataclass
class Planner(Chooser):
    """The jobs present, what is believed of them, and the plan in force."""

    makespan: float = 1e-3
    power: float = 12.0
    largest: float = 1.0
    rounds: int = 20
    calibrate: bool = True
    knows_futures: bool = True  # whether the planner knows batch sizes that are still to come
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
                if self.knows_futures
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
        target = np.array([fair_target(self._targets[job.index], self.number) for job in jobs])
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


def fair_target(series: Sequence[tuple[int, float]], number: int) -> float:
    """The fair finish time so far, by how long each estimate (round, seconds) stood, and a little of the last."""
    ends = [later for later, _ in series[1:]] + [number]
    weight = np.array([end - since for (since, _), end in zip(series, ends)], dtype=np.float64)
    value = np.array([value for _, value in series])
    mean = float(weight @ value / weight.sum()) if weight.sum() > 0 else float(value[-1])
    return 0.9 * mean + 0.1 * float(value[-1])
