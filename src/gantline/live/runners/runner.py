"""What a service asks of the machines beneath it: an `Executor` that also has nodes and logs, adopts what runs, and reports by itself.

The scheduler, recovery, the service and the questions know a `Runner` and nothing of how it starts processes: on this machine
(`runtime.local`), or through an engine that has machines already. `docs/runners.md` explains how to write one;
`conformance.executor` checks it.

The life of a runner: `check` and `open` (class methods), `adopt`, `attach`, then orders in (`send`) and events out
(`Contact.tell`); at the end `leave` and `close`. Jobs outlive `close`: the next service adopts them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

from gantline.engine.executor import Can, Executor, Order, Report
from gantline.live.runners.runner_context import Accounts, AsTheService, Contact, RunnerContext, RunnerOption, Task
from gantline.live.runners.runner_events import Ending, NodeNews, NodeState, RunnerEvents

if TYPE_CHECKING:
    from gantline.core.cluster import Cluster
    from gantline.live.jobs.launch import Launch, RuntimeEnv
    from gantline.live.runners.runner_events import KeptIncarnation, Output, Present

__all__ = [
    "Accounts",
    "Contact",
    "Ending",
    "NodeNews",
    "NodeState",
    "Runner",
    "RunnerContext",
    "RunnerEvents",
    "RunnerOption",
    "Task",
]  # fmt: skip


class Runner(Executor, Protocol):
    """Carries out the orders of a service. Derive from it: what most runners need not define has a default here."""

    #: options of its own, as `gantline up` takes them (``--ray-address``)
    options: ClassVar[Sequence[RunnerOption]] = ()

    #: whether it can import modules once for all Python jobs (``--preload``)
    preloads: ClassVar[bool] = False

    #: whether its jobs see the files of the service's machine: they then learn of changes of their grant from a folder
    #: (``GANTLINE_FOLDER``); others report over the network, and learn it from the answers
    shares_files: ClassVar[bool] = False

    #: which account the jobs of a user run as; by default all run as the service does
    accounts: Accounts = AsTheService()

    #: what ended its thread, where it was not closed
    failure: BaseException | None = None

    # --- beginning ------------------------------------------------------------------------------------------------------
    @classmethod
    def check(cls, devices: str | None, options: Mapping[str, str]) -> Sequence[str]:
        """Refuse devices and options that cannot be, before a service starts; returns warnings for the operator."""
        return ()

    @classmethod
    def open(cls, context: RunnerContext) -> Self:
        """Connect to the machines. Where there is no engine at the address, or it is too old, or rights are missing: one clear error."""
        ...

    def notes(self) -> Sequence[str]:
        """What the operator is told when the service has started: lines that begin with ``note:`` or ``warning:``."""
        return ()

    # --- what it can ----------------------------------------------------------------------------------------------------
    @property
    def abilities(self) -> frozenset[Can]:
        """What it can do to a gang that runs, if the job can, too. It is written into the journal when a service starts, and does not
        change while one runs."""
        ...

    def refusal(self, launch: Launch) -> str:
        """Why it cannot run such a job at all: it has no containers, no mounts, no runtime environments. Empty: it can. Asked at
        submission."""
        return "it asks for a runtime environment, and this executor makes none" if launch.runtime_env else ""

    def pack(self, environment: RuntimeEnv) -> RuntimeEnv:
        """A job's runtime environment with all that it names on this machine put by, so that no later change there matters. Called at
        submission, from any thread; what cannot be packed is refused."""
        return environment

    def can(self, row: int) -> frozenset[Can]: ...

    # --- nodes ----------------------------------------------------------------------------------------------------------
    @property
    def cluster(self) -> Cluster:
        """The nodes that are there now, under the names by which they stay known. After `attach` changes are told as `NodeNews`."""
        ...

    @property
    def drained(self) -> Mapping[str, str]:
        """Those of them on which nothing may begin, with the reason: asked when a service starts, before its first decision."""
        return {}

    # --- after a restart ------------------------------------------------------------------------------------------------
    def adopt(self, is_over: Callable[[str], bool] = lambda job: False) -> Sequence[Present]:
        """The newest incarnation of each job that is known, and what it is; those that run are adopted. Called once, before `attach`.

        `is_over` says which jobs need not be looked at. An older incarnation beside a newer one is ended.
        """
        ...

    def attach(self, contact: Contact) -> None:
        """Begin work: tell what each adopted incarnation is, then carry out orders and watch nodes and gangs, in threads of its own."""
        ...

    @property
    def alive(self) -> bool:
        """Whether orders are carried out and jobs watched; an engine that does not answer for a while is no reason to say no."""
        ...

    # --- jobs -----------------------------------------------------------------------------------------------------------
    def is_same_life(self, job: str, epoch: int) -> bool:
        """Whether an epoch is an earlier one of the incarnation that runs, and shall; from any thread."""
        ...

    def switched(self, job: str, epoch: int) -> None:
        """The job has reported that it goes on as this epoch, through the service; from any thread."""
        ...

    def forget(self, jobs: Iterable[str]) -> None:
        """Forget jobs that are over and will get no more orders; from any thread."""
        ...

    # --- output ---------------------------------------------------------------------------------------------------------
    def incarnations(self, job: str) -> Sequence[KeptIncarnation]:
        """The incarnations of a job of which something is kept, in order of their epochs; from any thread."""
        ...

    def output(self, job: str, epoch: int) -> Output:
        """What one of them has printed, to be read by offset and closed; from any thread."""
        ...

    def jobs_kept(self) -> set[str]:
        """The jobs of which output or saved work is kept."""
        ...

    def remove(self, job: str) -> None:
        """Remove output and saved work of a job that is over."""
        ...

    # --- the end --------------------------------------------------------------------------------------------------------
    def leave(self, drained: bool) -> None:
        """What is to be done before the service ends; `drained`: it has stopped its jobs."""

    def close(self) -> None:
        """Stop watching; jobs go on."""
        ...

    # --- for executors on virtual time ----------------------------------------------------------------------------------
    def next_time(self) -> float:
        return math.inf

    def receive(self, now: float) -> list[Report]:
        return []

    def send(self, order: Order, now: float) -> None: ...

    def fail(self, node: int, devices: frozenset[int], now: float) -> None:
        """A node is lost, by a events of this runner or by an operator's word: what it ran is over, also if the node comes back."""
        ...
