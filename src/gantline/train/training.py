"""One rank of a job: its identity, what it is asked for, what it reports."""

from __future__ import annotations

import atexit
import math
import time
from collections.abc import Callable
from typing import Any

from gantline.train.gangs import Gang
from gantline.train.membership import Membership, Trial
from gantline.train.orders import Flags, Orders, Sum
from gantline.train.rates import RULES, BatchState, NoiseMeter
from gantline.train.sampler import BatchPlan, Position
from gantline.train.terms import Pace, Terms
from gantline.train.wire import Answer

#: how a process ends that was asked to: what a shell says of one that SIGTERM ended
STOPPED = 143
FLUSH = 2.0  # seconds to send the last report
FIELDS = frozenset(("step", "done", "total", "saved", "throughput", "batch", "loss", "gradient_square", "gradient_variance", "request"))


class Rank:
    """What every rank is, whatever it trains."""

    requested_gpus: int | None = None

    def __init__(self, member: Membership, gang: Gang | None, sum_over_ranks: Sum | None, save_every: float, interval: float) -> None:
        if gang is not None and sum_over_ranks is not None:
            raise ValueError("a gang sums over its ranks itself: give one of gang and sum_over_ranks")
        if member.is_joining and gang is None:
            raise ValueError("this process is to join a gang that runs: give train.join a gang, or leave elastic.live out")
        self.member, self.gang, self._interval = member, gang, interval
        self.orders = Orders(member, gang.sum if gang is not None else sum_over_ranks, save_every, interval)
        if gang is not None and not member.is_joining:
            gang.form(member)

    # its identity

    @property
    def rank(self) -> int:
        return self.member.rank

    @property
    def world(self) -> int:
        """Ranks in all."""
        return self.member.world

    @property
    def gpus(self) -> int:
        """Devices that the job holds."""
        return self.member.gpus

    @property
    def flags(self) -> Flags:
        """What signals have asked for."""
        return self.orders.flags

    @property
    def answer(self) -> Answer:
        """The service's last answer."""
        return self.orders.answer

    # what it is asked for

    def should_stop(self) -> bool:
        """Whether to save and leave: by SIGTERM, by the service, or because a newer incarnation has taken over."""
        return self.orders.stop

    def should_checkpoint(self) -> bool:
        """Whether a checkpoint is due: asked for by SIGUSR1 or the service, by time, or because the job shall stop."""
        return self.orders.save

    def resize_pending(self) -> int | None:
        """How many devices the job is to have soon, where that differs from what it holds."""
        found = self.answer.gpus
        return found if found and found != self.gpus else None

    def sum(self, values: list[float]) -> list[float]:
        """Numbers summed over all ranks; every rank must call it at the same place."""
        return self.orders.sum(values)

    # what it reports

    def report(self, **fields: Any) -> None:
        """Report to the service: ``loss``, or any other field of a progress report. Costs no time."""
        unknown = sorted(set(fields) - FIELDS)
        if unknown:
            raise ValueError(f"no field '{unknown[0]}' of a progress report: there are {', '.join(sorted(FIELDS))}")
        if self.orders.wire:  # a loss that is not a number is not reported: JSON has none
            values = {name: value for name, value in fields.items() if not isinstance(value, float) or math.isfinite(value)}
            self.orders.wire.report({name: value for name, value in values.items() if value is not None})

    def request(self, *, gpus: int, min_gpus: int | None = None, max_gpus: int | None = None) -> None:
        """Ask the scheduler for other devices; it may grant that, now, later or never."""
        if gpus < 1:
            raise ValueError(f"a job cannot request {gpus} devices")
        self.requested_gpus = gpus
        bounds = {"gpus": gpus, "min_gpus": min_gpus, "max_gpus": max_gpus}
        self.report(request={name: value for name, value in bounds.items() if value is not None})

    def leave(self) -> None:
        """End this process as one that was asked to."""
        self.close()
        raise SystemExit(STOPPED)

    def close(self) -> None:
        """Send the last report and restore the signals; a finished or leaving process need not call it."""
        atexit.unregister(self.close)
        self.orders.close(FLUSH)


# How far a job is: its steps, its batch, its noise. This is what hooks see of a job.


class Training(Rank):
    """One rank of a job, and how far it is."""

    def __init__(self, member: Membership, gang: Gang | None, sum_over_ranks: Sum | None, save_every: float, interval: float) -> None:
        self.noise = NoiseMeter()
        self.state: dict[str, Any] = {}  # small JSON values of the job's own, kept in its checkpoints
        self.step = 0  # steps done, the one in hand included
        self.done = 0.0  # the same in the units that are reported: steps, or samples
        self.total = 0.0
        self.position = Position()
        self.progress = 0.0  # steps at the base batch that all steps so far are worth
        self.step_seconds = 0.0  # how long the last step took, and how many samples it had
        self.step_samples = 0
        self.asked_batch: int | None = None
        self.trial = Trial.read()
        self.pace = Pace(member.home)
        self.after_terms: list[Callable[[], object]] = []
        self.made = 0  # steps by this process
        self._plan, self._batch = BatchPlan(1), 1
        self._reported_at = time.monotonic()
        self._busy, self._samples = 0.0, 0.0
        super().__init__(member, gang, sum_over_ranks, save_every, interval)

    # batch and learning rate

    @property
    def batch(self) -> int:
        """Samples of one step, all ranks together."""
        return self._batch

    @property
    def base_batch(self) -> int:
        """The batch that the learning rate was chosen for."""
        return self._plan.base

    def ask_batch(self, total: int) -> None:
        """Use another batch from the next step on, within the loader's limits."""
        if total < 1:
            raise ValueError(f"a batch of {total} samples makes no step")
        self.asked_batch = total

    def rate_factor(self, rule: str = "adascale", *, warmup: float = 0.0) -> float:
        """By what to multiply the learning rate that was chosen for the base batch."""
        if rule not in RULES:
            raise ValueError(f"no learning-rate rule '{rule}': there are {', '.join(RULES)}")
        scale = self._batch / self._plan.base
        return RULES[rule](BatchState(scale, self.noise.gain(scale), self.progress, warmup))

    def follow(self, plan: BatchPlan) -> None:
        """Batches are as planned from now on."""
        self._plan = plan
        self.choose_batch(self.asked_batch)

    def choose_batch(self, asked: int | None) -> None:
        """Settle the batch of the next step."""
        self._batch = self._plan.total(self.world, asked)

    # what it may use

    @property
    def terms(self) -> Terms:
        """What it may use beside its devices (CPUs, memory, device memory), and its shift; it may change while the job runs."""
        return self.pace.terms

    def heed_terms(self) -> None:
        """Between two steps: take up other terms. The first rank waits for a shift, and the others wait for it in the next step."""
        before = self.pace.terms
        if not self.pace.look():
            return
        for act in self.after_terms:
            act()
        if self.rank == 0 and (seconds := self.pace.delay(before)) > 0.0:
            self.pace.pause(seconds)

    # steps

    def begin(self, samples: int, *, done: float) -> None:
        """A step is handed out."""
        self.pace.begin()
        self.step += 1
        self.made += 1
        self.step_samples = samples
        self.done += done
        self.progress += self.noise.gain(self._batch / self._plan.base)

    def end(self, seconds: float) -> None:
        """The step in hand is over."""
        self.step_seconds = seconds
        self._busy += seconds
        self.trial.note(self.made)
        self._samples += self.step_samples
        now = time.monotonic()
        if self.orders.wire and now - self._reported_at >= self._interval / 2:
            self.tell_progress(now)

    def tell_progress(self, now: float) -> None:
        noise = {"gradient_square": self.noise.square, "gradient_variance": self.noise.variance} if self.noise.is_known else {}
        speed = self._samples / self._busy if self._busy > 0 else None
        self.report(step=self.step, done=self.done, total=self.total, batch=self._batch, throughput=speed, **noise)
        self._busy, self._samples, self._reported_at = 0.0, 0.0, now
