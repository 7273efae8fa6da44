"""The jobs of Shockwave's simulator: steps at the present batch size, and the rules by which a batch size changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import ceil, isnan, nan
from typing import Final

# The models of Shockwave's traces: samples per epoch, largest batch sizes, and the epochs in which a batch size may change.
#
# Two ways to grow a batch: Accordion (Agarwal et al., MLSys 2021) trains with the small batch in critical regimes and
# the largest one outside; gradient noise scale (GNS, McCandlish et al., 2018) doubles the batch when the noise has
# passed a threshold. The planner's profile and the simulated job follow slightly different rules in the original, so
# both are here.


SAMPLES: Final = {
    "ResNet-18": 50000,
    "ResNet-50": 100000,
    "Transformer": 10000,
    "LM": 59675,
    "Recommendation": 117907,
    "CycleGAN": 6287,
    "A3C": 4,
}
LARGEST: Final = {"ResNet-18": 256, "ResNet-50": 128, "Transformer": 128, "LM": 80, "Recommendation": 8192}

#: (model, gang) -> first batch -> epochs from which the batch is 2, 4, 8, 16 times as large
_DOUBLINGS: Final[dict[tuple[str, int], dict[int, tuple[int, ...]]]] = {
    ("ResNet-18", 1): {16: (31, 41, 51, 71), 32: (21, 31, 51), 64: (11, 31), 128: (11,)},
    ("ResNet-18", 2): {16: (21, 31, 91, 111), 32: (11, 21, 41), 64: (21, 41), 128: (41,)},
    ("ResNet-18", 4): {16: (11, 21, 81, 91), 32: (21, 31, 61), 64: (11, 61), 128: (11,)},
    ("ResNet-50", 1): {64: (101,)},
    ("ResNet-50", 2): {32: (101, 111), 64: (81,)},
    ("ResNet-50", 4): {32: (131, 221), 64: (191,)},
    ("LM", 1): {5: (31, 41, 61, 71), 10: (11, 21, 41), 20: (11, 41), 40: (11,)},
    ("LM", 2): {5: (31, 51, 61, 71), 10: (11, 31, 41), 20: (31, 41), 40: (11,)},
    ("LM", 4): {5: (11, 31, 71, 91), 10: (11, 31, 61), 20: (11, 61), 40: (61,)},
    ("Recommendation", 1): {512: (21, 41, 71, 91), 1024: (21, 51, 91), 2048: (21, 41), 4096: (41,)},
}
_ADAPTS: Final = ("ResNet-18", "ResNet-50", "LM", "Recommendation")  # Transformers keep their batch under Accordion


def steps_per_epoch(model: str, batch: int) -> int:
    return ceil(SAMPLES[model] / batch)


def doublings(model: str, gang: int, first: int) -> tuple[int, ...]:
    """Epochs at which a job's batch doubles under gradient noise; none for most."""
    return _DOUBLINGS.get((model, gang), {}).get(first, ())


def gns_batch(model: str, gang: int, first: int, epoch: int) -> int:
    passed = sum(epoch >= at for at in doublings(model, gang, first))
    return int(min(first * 2**passed, LARGEST.get(model, first)))


def critical(model: str, first: int, epoch: int, *, planned: bool = False) -> bool:
    """Whether Accordion keeps the small batch in this epoch; `planned`: as the planner's profile has it."""
    if model == "LM":
        return epoch < 10
    if model == "ResNet-50":
        return epoch % 30 < 10
    if model == "ResNet-18":
        return epoch < (20 if first == 256 else 10) or 150 <= epoch < 160 or 250 <= epoch < 260
    if model == "Recommendation":
        start = {512: 30, 1024: 30, 2048: 40}.get(first, 10)
        return epoch < start or (planned and (60 <= epoch < 70 or 80 <= epoch < 90))
    return True


def accordion_batch(model: str, first: int, epoch: int) -> int:
    """The batch size that Accordion wants in this epoch."""
    return first if model not in _ADAPTS or critical(model, first, epoch) else LARGEST[model]


def profile(model: str, mode: str, gang: int, first: int, epochs: int) -> list[int]:
    """The batch size of every epoch, as the planner and the fair finish time see it."""
    if mode == "accordion" and model in _ADAPTS:
        small = (epoch <= 0.3 * epochs or critical(model, first, epoch, planned=True) for epoch in range(epochs))
        return [first if keeps else LARGEST[model] for keeps in small]
    rising = doublings(model, gang, first) if mode == "gns" else ()
    if not rising or epochs <= rising[0]:
        return [first] * epochs
    sizes: list[int] = []
    for start, stop in pairwise((0, *rising, epochs)):
        sizes += [gns_batch(model, gang, first, start)] * (min(stop, epochs) - start)
    if len(rising) > 1 and epochs - 1 >= rising[1]:
        sizes[-1] = first
    return sizes


# A job of Shockwave's simulator: steps at the present batch size, and the change of batch size that waits for its next task to close.

Speed = Callable[[str, int, int], float]  # model, batch size, gang -> steps per second of the gang; NaN: not measured


@dataclass
class ShockwaveJob:
    """One job, from its arrival to its end."""

    index: int
    model: str
    mode: str  # static, accordion or gns
    gang: int
    first: int  # the batch size it was submitted with
    arrival: float
    steps: int  # in all, at the present batch size
    speed: Speed
    batch: int = 0
    done: int = 0  # steps done, counted at the present batch size
    run_time: float = 0.0
    last_turn: float = 0.0  # seconds credited for its last task
    pending: int = 0  # the batch size it will change to when its next task closes; 0: none
    admitted: float = nan
    first_start: float = nan
    finish: float = nan
    failures: int = 0
    started: list[int] = field(default_factory=list)  # passes in which it was started
    measured: list[tuple[int, float, int]] = field(default_factory=list)  # (pass, steps per second, batch size)

    def __post_init__(self) -> None:
        self.batch = self.batch or self.first
        self.epochs = ceil(self.steps / steps_per_epoch(self.model, self.first))

    @property
    def throughput(self) -> float:
        return self.speed(self.model, self.batch, self.gang)

    @property
    def left(self) -> int:
        """Steps to go, at the present batch size."""
        return self.steps - self.done

    @cached_property
    def planned(self) -> list[int]:
        """The batch size of every epoch, as the planner sees it."""
        return profile(self.model, self.mode, self.gang, self.first, self.epochs)

    @cached_property
    def epoch_seconds(self) -> list[float]:
        """Seconds of every epoch by the profile."""
        seconds = {batch: self.seconds_of_epoch(batch) for batch in set(self.planned)}
        return [seconds[batch] for batch in self.planned]

    def seconds_of_epoch(self, batch: int) -> float:
        return SAMPLES[self.model] / (batch * self.speed(self.model, batch, self.gang))

    @cached_property
    def exclusive(self) -> float:
        """Seconds of the whole job by the profile: its time on a cluster of its own."""
        return sum(self.epoch_seconds)

    def note_request(self) -> None:
        """Decide whether the batch size shall change; the change is made when the job's next task closes."""
        epoch = ceil(self.done / steps_per_epoch(self.model, self.batch))
        if self.mode == "accordion":
            wanted = accordion_batch(self.model, self.first, epoch)
            if (self.batch == self.first) != (wanted == self.first):
                self.pending = wanted
        elif self.mode == "gns":
            ahead = max(gns_batch(self.model, self.gang, self.first, at) for at in (epoch, epoch + 1))
            if ahead > self.batch and self.batch < LARGEST.get(self.model, 0):
                self.pending = 2 * self.batch

    def change_batch(self) -> None:
        """Make the change that is pending: epochs are kept, steps are counted anew."""
        wanted, self.pending = self.pending, 0
        if not wanted or self.first == LARGEST.get(self.model) or isnan(self.speed(self.model, wanted, self.gang)):
            return
        before, after = steps_per_epoch(self.model, self.batch), steps_per_epoch(self.model, wanted)
        epochs = ceil(self.steps / before)
        steps = ceil(self.steps * self.batch / wanted)
        self.steps = steps if ceil(steps / after) == epochs else after * epochs
        self.done = ceil(self.done / before) * after
        self.batch = wanted


def fairness(jct: float, job: ShockwaveJob, contention: float) -> float:
    """Completion time over the fair finish time: the job alone on its part of the cluster (Themis, NSDI 2020, section 3.1)."""
    return round(jct / (job.exclusive * max(1.0, contention)), 5)


def mean_contention(active: Sequence[int], gpus: int, begin: int, end: int) -> float:
    """Jobs per GPU over the passes [begin, end)."""
    seen = active[begin:end]
    return sum(seen) / len(seen) / gpus if seen else 0.0
