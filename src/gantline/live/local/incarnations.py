"""All incarnations that a home has: the newest of each job, and those of them that are not over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from gantline.live.local.incarnation import Incarnation
from gantline.live.roll_call import Present


@dataclass(frozen=True)
class Loss:
    """Devices that are declared lost. It stands among the orders: what was ordered before it may be about to start there."""

    devices: frozenset[int]
    missed: tuple[Incarnation, ...] = ()  # gangs there that have not heard of it yet; who starts there by now is none of them


class Incarnations:
    """The newest incarnation of each job."""

    def __init__(self, new: Callable[..., Incarnation] = Incarnation, generation: str = "") -> None:
        self._new, self.generation = new, generation  # the present life of the store
        self.newest: dict[str, Incarnation] = {}  # by job
        self.live: dict[str, Incarnation] = {}  # those of them that were not over when we last looked

    def new(self, job: str, epoch: int, folder: Path, row: int = -1, devices: tuple[int, ...] = ()) -> Incarnation:
        """One that begins in this life of the store."""
        one = self._new(job, epoch, folder, row, devices)
        one.generation = self.generation
        return one

    def __getitem__(self, job: str) -> Incarnation:
        return self.newest[job]

    def get(self, job: str) -> Incarnation | None:
        """The newest of a job; None: there is none."""
        return self.newest.get(job)

    def enter(self, one: Incarnation) -> None:
        """From now on this is the newest of its job."""
        self.newest[one.job] = self.live[one.job] = one

    def alive(self) -> list[Incarnation]:
        """Those that are not over: a machine that has run a hundred thousand jobs looks at the few that run."""
        for job in [job for job, one in self.live.items() if one.over]:
            del self.live[job]
        return list(self.live.values())

    def adopt(self, jobs: Path, is_over: Callable[[str], bool]) -> list[Present]:
        """Read the folders of jobs, and take over what still runs there.

        Jobs that are known to be over are passed over: of a hundred thousand folders only a few are read. What an earlier life of the
        store has begun is stopped, and saves.
        """
        for folder in sorted(one for one in jobs.glob("*") if not is_over(one.name)):
            epochs = sorted((int(one.name) for one in folder.iterdir() if one.name.isdigit()), reverse=True) if folder.is_dir() else []
            for place, epoch in enumerate(epochs):
                one = self.new(folder.name, epoch, folder / str(epoch))
                alive = one.adopt()
                if one.generation != self.generation:  # how it ended counts for nothing; while it runs it has its devices
                    if alive:
                        one.write_order(want="stop")
                        self.enter(one)
                    continue
                if place == 0:
                    self.enter(one)
                elif alive:  # an older one beside a newer one: its time is over
                    one.write_order(want="stop", grace=0.0)
        return [_present(one) for one in self.newest.values()]

    def forget(self, jobs: Iterable[str]) -> None:
        """Forget jobs that are over."""
        for job in jobs:
            self.newest.pop(job, None)


def _present(one: Incarnation) -> Present:
    named = str(one.order.get("env", {}).get("GANTLINE_DEVICES", ""))
    since = one.state.get("started")
    devices = tuple(one.order.get("device_names") or (name for name in named.split(",") if name))
    return Present(one.job, one.epoch, () if one.over else devices, None if since is None else float(since), one.over)
