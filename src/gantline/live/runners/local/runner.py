"""This machine as a runner: a thread of its own carries out orders (`execution.py`) and watches keepers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from gantline.core.cluster import Cluster
from gantline.engine.executor import Can
from gantline.live.jobs.amounts import storage_bandwidth
from gantline.live.runners.local.devices import Machine, declared, find_machine, too_many, with_capacity
from gantline.live.runners.local.execution import JOIN_LIMIT, Execution, LocalKeepers
from gantline.live.runners.local.fork_server import KeeperForkServer, WarmTemplate
from gantline.live.runners.local.home_runner import KeeperRunner
from gantline.live.runners.local.incarnation import Incarnation, Incarnations
from gantline.live.runners.local.isolation import Closing, LocalAccounts, find_groups
from gantline.live.runners.local.keeper import share_out
from gantline.live.runners.local.orders import Writer
from gantline.live.runners.local.output import KeptJobs
from gantline.live.runners.local.slices import Mps, SliceCrashes, check_slices, unbounded
from gantline.live.runners.registry import OPTIONS
from gantline.live.runners.runner_context import Contact, RunnerContext, RunnerOption

_APART = "jobs of other users run as their own accounts (see gantline user)"
_TOGETHER = "jobs of all users run as root: any user who may submit can do everything on this machine (--run-as users keeps them apart)"


@dataclass
class LocalRunner(KeeperRunner):
    """A runner for one machine. `attach` before the first order."""

    options: ClassVar[Sequence[RunnerOption]] = OPTIONS["local"]
    preloads: ClassVar[bool] = True
    shares_files: ClassVar[bool] = True

    home: Path
    devices: str | None = None
    url: str = ""  # of the service, for jobs that report
    preload: tuple[str, ...] = ()  # modules that a template imports for jobs
    storage: float = 0.0  # MB/s that jobs may book; 0: none

    def __post_init__(self) -> None:
        self.home = Path(self.home).absolute()
        self.machine: Machine = with_capacity(find_machine(self.devices), self.storage)
        check_slices(self.machine)
        self.groups, self.mps = find_groups(), Mps(self.home)
        self.accounts: LocalAccounts = LocalAccounts()
        self.closing, self.kept = Closing(), KeptJobs(self.home)
        self.join_limit = JOIN_LIMIT
        self._prepare(Incarnations(), KeeperForkServer())
        self.template: WarmTemplate | None = None

    @classmethod
    def check(cls, devices: str | None, options: Mapping[str, str]) -> Sequence[str]:
        storage_of(options)
        found = too_many(declared(devices)) if devices is not None else ""
        return [found] if found else []

    @classmethod
    def open(cls, context: RunnerContext) -> Self:
        runner = cls(context.home, context.devices, context.url, context.preload, storage_of(context.options))
        runner.known.generation = context.generation
        runner.accounts = LocalAccounts(context.apart, context.owner, context.named)
        if os.getuid() == 0 and context.apart:
            runner.closing = Closing.find(runner.machine, runner.groups)
        return runner

    def notes(self) -> Sequence[str]:
        found = [f"warning: {self.template.failure}"] if self.template is not None and self.template.failure else []
        found += [f"warning: {free}"] if (free := unbounded(self.machine)) else []
        if os.getuid() == 0:
            closed = self.closing.words()
            found.append(f"note: {_APART + (closed and '; ' + closed) if self.accounts.apart else _TOGETHER}")
        return found

    @property
    def cluster(self) -> Cluster:
        """The machine as the engine sees it."""
        return self.machine.cluster

    def attach(self, contact: Contact) -> None:
        self._contact = contact
        self.writer = Writer(self.home, self.url, self.machine, self.groups, self.mps, contact.cluster, self.accounts, self.closing)
        self.mps.several_users, crashes = self.accounts.apart, SliceCrashes(self.mps, self.writer.slices)
        if self.preload:
            self.template = WarmTemplate(self.preload, self.fork_server)
            self.template.warm_up()
        self._crashes, keepers = crashes, LocalKeepers(self.fork_server, crashes, self.template)
        self._begin(Execution(self.home, contact, self.known, self.writer, keepers, self._orders))

    def leave(self, drained: bool) -> None:
        if drained:
            self.mps.quit()

    def close(self) -> None:
        super().close()
        if self.template is not None:
            self.template.close()

    # --- the executor's interface ---------------------------------------------------------------------------------------
    def can(self, row: int) -> frozenset[Can]:
        return self._contact.task(row).launch.can(not self.machine.binds)

    # --- inside ---------------------------------------------------------------------------------------------------------
    def _look(self) -> None:
        self._execution.join_limit = self.join_limit

    def _look_after(self) -> None:
        self._try(self._crashes.look, self.known.alive())
        let_take_turns(self.known.alive())


# Which jobs of this machine take turns on a device, written into their orders; `turns` says when a turn is.


def let_take_turns(incarnations: Iterable[Incarnation]) -> None:
    """Let jobs that need parts of one device and are on it together take turns."""
    there: dict[int, dict[str, Incarnation]] = {}
    for one in incarnations:
        if not one.over and one.order.get("part") and len(one.devices) == 1:
            there.setdefault(one.devices[0], {})[one.job] = one
    for jobs in there.values():
        for job, turn in share_out({job: one.order["part"] for job, one in jobs.items()}).items():
            value = None if turn is None else list(turn)
            if jobs[job].order.get("turn") != value:
                with contextlib.suppress(OSError):  # a full disk: later, then
                    jobs[job].write_order(turn=value)


def storage_of(options: Mapping[str, str]) -> float:
    """MB/s of storage that jobs may book."""
    return storage_bandwidth(options.get("storage", "0"), "--storage")
