"""The two loops that a job trains in: over numbered steps, and over batches of data. Both resume where the last checkpoint was."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from gantline.train.batches import BatchPlan
from gantline.train.changing import enter, settle
from gantline.train.sampler import Sampler
from gantline.train.saved import SavedTraining

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Batch(Sequence[Item], Generic[Item]):
    """One rank's share of one step; it may be empty at the end of an epoch, and the rank then still takes part.

    A step is the same whatever the number of ranks if each adds its samples' gradients times ``1 / total``.
    """

    items: tuple[Item, ...]
    indices: tuple[int, ...]  # which samples they are
    total: int  # samples of all ranks in this step
    step: int
    epoch: int
    accumulation: int = 0  # parts before the last one

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        return self.items[at]

    def parts(self) -> list[tuple[Item, ...]]:
        """The items in pieces that fit on the device, for gradient accumulation; always at least one piece."""
        size = max(-(-len(self.items) // (self.accumulation + 1)), 1)
        return [self.items[first : first + size] for first in range(0, len(self.items), size)] or [()]


def walk_steps(job: SavedTraining, total: int) -> Iterator[int]:
    """Steps from where the job is to ``total``."""
    if total < 0:
        raise ValueError(f"{total} steps cannot be made")
    enter(job)
    _check(job)
    job.total = float(total)
    for hook in job.hooks:
        hook.before_train(job)
    while job.step < total:
        settle(job)
        job.begin(1, done=1.0)
        yield from _one(job, job.step - 1)
    _finish(job)


def walk_data(job: SavedTraining, data: Sequence[Item], plan: BatchPlan, *, epochs: int, seed: int, shuffle: bool) -> Iterator[Batch[Item]]:
    """Batches from where the job is to the end of the last epoch."""
    enter(job)
    sampler = Sampler(len(data), seed, shuffle, job.rank, job.world)
    _check(job)
    if job.position.index >= sampler.size:
        raise ValueError(f"the checkpoint is at sample {job.position.index} of an epoch, and there are {sampler.size}: other data?")
    job.total = float(sampler.size * epochs)
    for hook in job.hooks:
        hook.before_train(job)
    while job.position.epoch < epochs:
        settle(job)
        sampler = Sampler(len(data), seed, shuffle, job.rank, job.world)  # the gang may have changed
        at = job.position
        own, taken = sampler.step(at, job.batch)
        if at.index == 0:
            for hook in job.hooks:
                hook.before_epoch(job)
        job.position = sampler.after(at, taken)
        job.begin(taken, done=float(taken))
        accumulation = plan.split(job.batch, job.world)[1]
        items = tuple(data[i] for i in own)
        yield from _one(job, Batch(items, tuple(own), taken, job.step - 1, at.epoch, accumulation))
        if job.position.epoch > at.epoch:
            for hook in reversed(job.hooks):
                hook.after_epoch(job)
    _finish(job)


def _one(job: SavedTraining, thing: Item) -> Iterator[Item]:
    """Hand one step out and take its time."""
    for hook in job.hooks:
        hook.before_step(job)
    begun = time.perf_counter()
    yield thing
    job.end(time.perf_counter() - begun)
    for hook in reversed(job.hooks):
        hook.after_step(job)


def _check(job: SavedTraining) -> None:
    if job.must_restore:
        raise RuntimeError(f"{job.folder} holds a checkpoint: call job.keep(save, load) or job.restore(load) before the loop")


def _finish(job: SavedTraining) -> None:
    for hook in reversed(job.hooks):
        hook.after_train(job)
    job.finish()
