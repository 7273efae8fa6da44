"""What a runner is given: when it is made, and when it begins work."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from gantline.core.errors import RefusedError
from gantline.live.jobs.launch import Launch, Submittable

if TYPE_CHECKING:
    from gantline.core.cluster import Cluster
    from gantline.live.runners.runner_events import RunnerEvents
    from gantline.live.wall_time import Clock


@dataclass(frozen=True)
class RunnerContext:
    """What a runner is made for."""

    home: Path  # the service's folder; a runner has one of its own in it
    devices: str | None = None  # as declared; None: those that are found
    options: Mapping[str, str] = field(default_factory=dict)  # its own, by name
    url: str = ""  # the address under which jobs reach the service
    apart: bool = False  # whether jobs run as accounts of their users
    generation: str = ""  # of the store: what another life of it has begun, or seen the end of, counts for nothing
    owner: str = ""  # the user whose jobs run as the service does
    preload: tuple[str, ...] = ()  # modules to be imported once for all Python jobs; only where the runner `preloads`
    named: Callable[[], Mapping[str, str]] = dict  # accounts by user, as an operator has set them


@dataclass(frozen=True, slots=True)
class Task:
    """What a runner needs of a row."""

    job: str
    launch: Launch
    restarts: int = 0
    saved: float = math.nan  # work that it has reported as saved, where it does
    user: str = ""
    env: Mapping[str, str] = field(default_factory=dict)


def _ignore(job: str, gpus: int, why: str) -> None:
    """A refusal that is of no interest."""


class ExternalJobs:
    """Jobs that a runner finds in its engine, as objects of their owners. This scheduler takes in none (`runtime.found_jobs` does)."""

    def submit(self, spec: Submittable, user: str) -> str:
        """Submit one; its id."""
        raise RefusedError("this scheduler takes in no jobs that a runner finds", where="runner")

    def cancel(self, job: str) -> None:
        """Its object is no longer there, or asks for something else: it is cancelled, unless it has ended."""

    def resize(self, job: str, gpus: int, least: int, most: int) -> None:
        """From now on it asks for so many devices, within these bounds."""

    def is_over(self, job: str) -> bool:
        """Whether it has ended."""
        return False

    def present(self) -> Mapping[str, str]:
        """Those that have not ended: job -> object."""
        return {}


@dataclass(frozen=True)
class Contact:
    """The scheduler as a runner sees it. All of it may be called from any thread."""

    task: Callable[[int], Task]
    row_of: Callable[[str], int | None]  # None: the engine has forgotten this job
    clock: Clock
    tell: Callable[[RunnerEvents], None]
    cluster: Callable[[], Cluster]  # as the engine numbers its devices; nodes are only ever added
    refused: Callable[[str, int, str], None] = _ignore  # a job goes on with so many devices though it was given others, and why
    external: ExternalJobs = field(default_factory=ExternalJobs)
    to_run: Callable[[], Sequence[Launch]] = tuple  # how jobs are run that have not ended

    def place(self, device: int) -> tuple[str, int]:
        """The name of a device's node, and its place there."""
        nodes = self.cluster()
        node = int(nodes.device_node[device])
        return nodes.nodes[node].name, device - int(nodes.first_device[node])

    def device(self, node: str, place: int) -> int | None:
        """The number of the device at that place of a node; None: there is none."""
        nodes = self.cluster()
        for number, one in enumerate(nodes.nodes):
            if one.name == node:
                return int(nodes.first_device[number]) + place if place < one.gpus else None
        return None

    def by_node(self, devices: tuple[int, ...]) -> dict[str, list[int]]:
        """The places on each node that these devices are, nodes in the order of the gang's ranks."""
        found: dict[str, list[int]] = {}
        for device in devices:
            name, place = self.place(device)
            found.setdefault(name, []).append(place)
        return found


# Which account the jobs of a user run as, where a runner keeps users apart.


class NoAccountError(RefusedError):
    """A user has no account to run jobs as."""


class NamedAccount(Protocol):
    """An account that jobs run as."""

    @property
    def name(self) -> str: ...


class Accounts(Protocol):
    """Which account the jobs of a user run as."""

    @property
    def apart(self) -> bool:
        """Whether they run as accounts of their users at all; else all run as the service does."""
        ...

    def of(self, user: str) -> NamedAccount | None:
        """The account of a user, refused where there is none; None: the service's own."""
        ...

    def find(self, name: str) -> NamedAccount:
        """The account of that name, where jobs may run as it."""
        ...

    def lacks(self, user: str) -> bool:
        """Whether the user's jobs cannot run because there is no account for them."""
        try:
            self.of(user)
        except NoAccountError:
            return True
        return False


class AsTheService(Accounts):
    """All jobs run as the service does."""

    apart: ClassVar[bool] = False

    def of(self, user: str) -> None:
        return None

    def find(self, name: str) -> NamedAccount:
        raise RefusedError("the executor of this service runs no jobs as accounts of users", where="account", fix="leave it out")


@dataclass(frozen=True, slots=True)
class RunnerOption:
    """An option with a value; where it is not given it is as at the previous start, else its default."""

    name: str  # as on the command line, without the dashes
    help: str
    default: str | None = None
    choices: tuple[str, ...] = ()  # none: any text
