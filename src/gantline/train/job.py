"""A job as its training loop sees it: its loops, and the functions that keep its model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from gantline.train.batches import BatchPlan, Follow
from gantline.train.changing import enter
from gantline.train.gangs import Gang
from gantline.train.hooks import Hook
from gantline.train.loops import Batch, walk_data, walk_steps
from gantline.train.membership import Membership
from gantline.train.orders import Sum
from gantline.train.saved import Kept, SavedTraining

Item = TypeVar("Item")


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
