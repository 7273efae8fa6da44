"""Between two steps a gang becomes another one: ranks that leave, ranks that stay, newcomers that get what the first rank has.

All ranks of the old gang come here at the same step. Ranks that stay and newcomers form a new gang, newcomers get the job's state
(and its model: by the functions that `keep` was given for that, else from a checkpoint that is made for them), and every rank makes the
next step. No staying rank ends, and no step is made twice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from gantline.train.gangs import Gang
from gantline.train.hooks import Hook
from gantline.train.membership import Membership
from gantline.train.orders import Sum
from gantline.train.sampler import BatchPlan, Follow, Sampler
from gantline.train.saved import Kept, SavedTraining, check_version, resume
from gantline.train.store import MODEL

_LOOK = 0.01  # seconds between two looks at what others have decided


def settle(job: SavedTraining) -> None:
    """Between two steps: agree with the other ranks on what is asked for, save, leave, and choose the next batch."""
    if job.trial.is_over(job.made):
        job.close()
        raise SystemExit(0)
    if job.orders.agreed[0]:  # a loop that saves for itself was asked to stop a step ago, and went on
        job.leave()
    while True:
        can_regroup = job.gang is not None and job.kept.loops
        due = job.board.due(job.member, decides=job.rank == 0, can_regroup=can_regroup)
        asked = job.orders.agree(job.asked_batch, due)
        if job.unconfirmed and job.rank == 0:
            job.board.say_switched(job.member.epoch)  # all ranks have taken part in a sum: the gang is complete
        job.unconfirmed = False
        stop, save = job.orders.agreed
        if stop or not job.orders.switch:
            break
        carry_out(job, job.orders.switch)
    job.choose_batch(asked)
    if not stop:
        job.heed_terms()
    if job.kept.loops and (stop or save):
        job.checkpoint()
    if job.kept.loops and stop:
        job.leave()


def carry_out(job: SavedTraining, epoch: int) -> None:
    """Go on under another epoch, as it was decided; a rank that leaves does not return."""
    decision = job.board.decision(epoch, job.member)
    assert decision is not None  # an epoch is announced only after its decision
    if not decision.regroups(job.member):
        after = decision.after(job.member)
        assert after is not None
        job.become(after)
        return
    assert job.gang is not None
    if decision.newcomers and job.kept.pack is None:
        job.checkpoint()
    member = decision.after(job.member)
    if member is None:
        _step_out(job, epoch)
        return
    job.become(member)
    job.gang.form(member)
    if decision.newcomers:
        _hand_over(job)
    for act in job.after_switch:
        act()


def _step_out(job: SavedTraining, epoch: int) -> None:
    """Leave the gang: this rank stays until the others go on without it."""
    assert job.gang is not None
    while not job.board.is_switched(epoch):
        time.sleep(_LOOK)
    job.gang.close()
    job.close()
    raise SystemExit(0)


def _hand_over(job: SavedTraining) -> None:
    assert job.gang is not None
    job.gang.spread(json.dumps(job.where_it_is()).encode())
    if job.kept.pack is not None:
        job.gang.spread(job.kept.pack() if job.rank == 0 else b"")


def enter(job: SavedTraining) -> None:
    """A newcomer is ready: it waits until the gang takes it in, and goes on with what the others have."""
    if not job.joins:
        return
    job.joins, job.is_restored = False, True
    assert job.gang is not None
    job.board.say_ready(job.member)
    while (decision := job.board.decision(job.member.epoch, job.member)) is None:
        if job.flags.stop:
            job.leave()
        time.sleep(_LOOK)
    if decision.refused:
        job.close()
        raise SystemExit(0)
    after = job.member.at(decision.port)
    job.become(after)
    job.gang.form(after)
    received = json.loads(job.gang.spread(b""))
    check_version(received, job.store)
    resume(job, job.hooks, received)
    if job.kept.unpack is not None:
        job.kept.unpack(job.gang.spread(b""))
    elif job.kept.load is not None:
        newest = job.store.newest()
        assert newest is not None  # it was made for us
        job.kept.load(newest / MODEL)


# The two loops that a job trains in: over numbered steps, and over batches of data. Both resume where the last
# checkpoint was.

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


# A job as its training loop sees it: its loops, and the functions that keep its model.


class Job(SavedTraining):
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
        super().__init__(member, gang, sum_over_ranks, hooks, save_every, interval)

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
        plan = BatchPlan(batch, most, local_most, follow)
        self.follow(plan)
        return walk_data(self, data, plan, epochs=epochs, seed=seed, shuffle=shuffle)

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
        if self.joins:
            enter(self)
            return True
        found = self.restore(load) if load is not None else self.step > 0
        if self.rank == 0 and not self.trial.steps:
            self.store.rehearse(self.step, self.where_it_is(), save)
            self.report(step=self.step, done=self.done, saved=self._saved or 0.0)  # reports to the service that it can be asked to save
        return found

    def on_terms(self, act: Callable[[Job], object]) -> None:
        """Call a function each time when `terms` have changed: to start other loader workers, or to bound the device's memory."""
        self.after_terms.append(lambda: act(self))

    def on_switch(self, act: Callable[[Job], object]) -> None:
        """Call a function on ranks that stay, each time when the gang has changed: to wrap a model anew, for example."""
        self.after_switch.append(lambda: act(self))
