"""A job as its training loop sees it: what it is asked for, what it tells, where it is, and its checkpoints."""

from __future__ import annotations

import atexit
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from gantline.train import record
from gantline.train.batches import BatchPlan, Follow
from gantline.train.changing import carry_out, enter
from gantline.train.gangs import Gang
from gantline.train.hooks import Hook
from gantline.train.loops import Batch, walk_data, walk_steps
from gantline.train.membership import Membership
from gantline.train.noise import NoiseMeter
from gantline.train.orders import Sum
from gantline.train.rank import FLUSH, Rank
from gantline.train.rates import RULES, BatchState
from gantline.train.sampler import Position
from gantline.train.store import MODEL, Checkpoints
from gantline.train.switch import Switchboard
from gantline.train.trial import Trial

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Kept:
    """How a job's model is kept, and handed over."""

    save: Callable[[Path], object] | None = None
    load: Callable[[Path], object] | None = None
    pack: Callable[[], bytes] | None = None
    unpack: Callable[[bytes], object] | None = None
    loops: bool = False  # whether loops save by themselves


class Job(Rank):
    """One rank of a job; made by `gantline.train.join`."""

    def __init__(
        self,
        member: Membership,
        *,
        sum_over_ranks: Sum | None = None,
        gang: Gang | None = None,
        hooks: Sequence[Hook] = (),
        save_every: float = 0.0,
        interval: float = 1.0,
    ) -> None:
        self.board = Switchboard(member.home)
        self.after_switch: list[Callable[[Job], object]] = []
        self.hooks = list(hooks)
        self.noise = NoiseMeter()
        self.state: dict[str, Any] = {}  # small JSON values of the job's own, kept in its checkpoints
        self.step = 0  # steps done, the one in hand included
        self.done = 0.0  # the same in the units that are reported: steps, or samples
        self.total = 0.0
        self.position = Position()
        self.progress = 0.0  # steps at the base batch that all steps so far are worth
        self.step_seconds = 0.0  # how long the last step took, and how many samples it had
        self.step_samples = 0
        self._plan, self._batch = BatchPlan(1), 1
        self.asked_batch: int | None = None
        self.kept = Kept()
        self._joins = member.is_joining
        self._unconfirmed = False  # a gang of which nobody has heard yet
        self._made = 0  # steps by this process
        self._trial = Trial.read()
        self._saved: float | None = None
        self._told_at = time.monotonic()
        self._busy, self._samples = 0.0, 0.0
        self.store = Checkpoints(member.folder, member.epoch)
        kept = {} if self._joins else self.store.state()
        if kept:
            record.resume(self, kept)
            self._saved = self.done
        super().__init__(member, gang, sum_over_ranks, save_every, interval)
        if self._saved is not None:
            self.report(step=self.step, done=self.done, saved=self._saved)
        atexit.register(self.close)

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

    # loops

    def steps(self, total: int) -> Iterator[int]:
        """The numbers of the steps that are left of ``total``; between them the job saves and leaves when it is asked to."""
        return walk_steps(self, total)

    def loader(
        self,
        data: Sequence[Item],
        batch: int,
        *,
        epochs: int = 1,
        seed: int = 0,
        shuffle: bool = True,
        follow: Follow = "fixed",
        most: int = 0,
        local_most: int = 0,
    ) -> Iterator[Batch[Item]]:
        """This rank's batches of what is left of ``epochs`` passes over the data; see `Batch` and `BatchPlan`."""
        self._plan = BatchPlan(batch, most, local_most, follow)
        self._batch = self._plan.total(self.world, self.asked_batch)
        return walk_data(self, data, self._plan, epochs=epochs, seed=seed, shuffle=shuffle)

    # checkpoints

    @property
    def folder(self) -> Path:
        """Where checkpoints are; it stays for the job's life."""
        return self.member.folder

    def keep(
        self,
        save: Callable[[Path], object] | None = None,
        load: Callable[[Path], object] | None = None,
        *,
        pack: Callable[[], bytes] | None = None,
        unpack: Callable[[bytes], object] | None = None,
    ) -> bool:
        """Load the newest checkpoint if there is one, and let loops save from now on, whenever that is asked for.

        Both functions take a path: ``save`` makes a file or a folder of it, ``load`` reads that. Without them `state` alone is kept.
        ``pack`` and ``unpack`` give newcomers of a gang what the first rank has; without them they load a checkpoint made for them.
        A newcomer waits here until the gang takes it in. The first rank tries one save, which is thrown away: a function that cannot save
        fails here, and not hours later.
        """
        if (save is None) != (load is None) or (pack is None) != (unpack is None):
            raise ValueError("a function that saves needs one that loads, and the other way round")
        self.kept = Kept(save, load, pack, unpack, loops=True)
        if self._joins:
            self.enter()
            return True
        found = self.restore(load) if load is not None else self.step > 0
        if self.rank == 0 and not self._trial.steps:
            self.store.rehearse(self.step, record.to_json(self), save)
            self.report(step=self.step, done=self.done, saved=self._saved or 0.0)  # the service knows that it can be asked to save
        return found

    def enter(self) -> None:
        """A newcomer joins the gang; everybody else is in it already."""
        if self._joins:
            self._joins = False
            self.is_restored = True
            enter(self)

    def on_switch(self, act: Callable[[Job], object]) -> None:
        """Call a function on ranks that stay, each time when the gang has changed: to wrap a model anew, for example."""
        self.after_switch.append(act)

    def become(self, member: Membership) -> None:
        """Go on as another rank, or under another epoch."""
        self.member = replace(member, is_joining=False)
        self.store = Checkpoints(member.folder, member.epoch)
        self._orders.become(self.member)
        self._unconfirmed = True

    def restore(self, load: Callable[[Path], object]) -> bool:
        """Call ``load`` with the path that the save function wrote to; False where the job begins from nothing."""
        self.is_restored = True
        newest = self.store.newest()
        if newest is None or not (newest / MODEL).exists():
            return False
        load(newest / MODEL)
        return True

    is_restored = False

    @property
    def must_restore(self) -> bool:
        """Whether going on would train new weights from where old ones were."""
        newest = self.store.newest()
        return not self.is_restored and newest is not None and (newest / MODEL).exists()

    def checkpoint(self, save: Callable[[Path], object] | None = None) -> None:
        """Save now: everything or nothing, and only then acknowledged. Inside a loop the step in hand counts as done: call it last.

        The first rank writes; a gang waits for it, so that nobody leaves before the checkpoint is whole.
        """
        failed: Exception | None = None
        if self.rank == 0:
            try:
                self.store.write(self.step, record.to_json(self), save or self.kept.save)
            except Exception as error:
                failed = error
                self._say_why()
        (failures,) = self.sum([0.0 if failed is None else 1.0])
        if failed is not None:
            raise failed
        if failures:
            raise RuntimeError("the first rank could not save; its log says why")
        self._saved = self.done
        self._orders.saved({"step": self.step, "done": self.done, "saved": self.done})

    def _say_why(self) -> None:
        """Print what went wrong before others hear that something did: whoever ends first makes the keeper end everybody else."""
        if self.world > 1:
            traceback.print_exc()
            sys.stderr.flush()

    # what loops call

    def settle(self) -> None:
        """Between two steps: agree with the other ranks on what is asked for, save, leave, and choose the next batch."""
        if self._trial.is_over(self._made):
            self.close()
            raise SystemExit(0)
        if self._orders.agreed[0]:  # a loop that saves by hand was told to stop a step ago, and went on
            self.leave()
        while True:
            can_regroup = self.gang is not None and self.kept.loops
            due = self.board.due(self.member, decides=self.rank == 0, can_regroup=can_regroup)
            asked = self._orders.agree(self.asked_batch, due)
            if self._unconfirmed and self.rank == 0:
                self.board.say_switched(self.member.epoch)  # all have agreed on something: the gang stands
            self._unconfirmed = False
            stop, save = self._orders.agreed
            if stop or not self._orders.switch:
                break
            carry_out(self, self._orders.switch)
        self._batch = self._plan.total(self.world, asked)
        if self.kept.loops and (stop or save):
            self.checkpoint()
        if self.kept.loops and stop:
            self.leave()

    def begin(self, samples: int, *, done: float) -> None:
        """A step is handed out."""
        self.step += 1
        self._made += 1
        self.step_samples = samples
        self.done += done
        self.progress += self.noise.gain(self._batch / self._plan.base)

    def end(self, seconds: float) -> None:
        """The step in hand is over."""
        self.step_seconds = seconds
        self._busy += seconds
        self._trial.note(self._made)
        self._samples += self.step_samples
        now = time.monotonic()
        if self._orders.wire and now - self._told_at >= self._interval / 2:
            self._tell(now)

    def finish(self) -> None:
        """The loop is through: keep the result and tell it."""
        if self.kept.loops:
            self.checkpoint()
        self._tell(time.monotonic())
        if self._orders.wire:
            self._orders.wire.flush(FLUSH)

    def _tell(self, now: float) -> None:
        noise = {"gradient_square": self.noise.square, "gradient_variance": self.noise.variance} if self.noise.is_known else {}
        speed = self._samples / self._busy if self._busy > 0 else None
        self.report(step=self.step, done=self.done, total=self.total, batch=self._batch, throughput=speed, **noise)
        self._busy, self._samples, self._told_at = 0.0, 0.0, now
