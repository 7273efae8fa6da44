"""This machine as a runner: a thread of its own carries out orders (`execution.py`) and watches keepers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from gantline.core.cluster import Cluster
from gantline.engine.executor import Can
from gantline.live.local import switching
from gantline.live.local.accounts import LocalAccounts
from gantline.live.local.capacity import with_capacity
from gantline.live.local.closing import Closing
from gantline.live.local.devices import Machine, declared, find_machine, too_many
from gantline.live.local.execution import Execution, LocalKeepers
from gantline.live.local.fork_server import KeeperForkServer
from gantline.live.local.incarnations import Incarnations
from gantline.live.local.keeper_runner import KeeperRunner
from gantline.live.local.kept import KeptJobs
from gantline.live.local.limits import find_groups
from gantline.live.local.mps import Mps
from gantline.live.local.options import OPTIONS, storage_of
from gantline.live.local.orders import Writer
from gantline.live.local.slice_crashes import SliceCrashes
from gantline.live.local.slices import check_slices, unbounded
from gantline.live.local.templates import WarmTemplate
from gantline.live.local.time_slices import let_take_turns
from gantline.live.premises import Contact, Premises
from gantline.live.runner import RunnerOption

_APART = "jobs of other users run as their own accounts (see gantline user)"
_TOGETHER = "jobs of all users run as root: any user who may submit can do everything on this machine (--run-as users keeps them apart)"


@dataclass
class LocalRunner(KeeperRunner):
    """A runner for one machine. `attach` before the first order."""

    options: ClassVar[Sequence[RunnerOption]] = OPTIONS
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
        self.join_limit = switching.JOIN_LIMIT
        self._prepare(Incarnations(), KeeperForkServer())
        self.template: WarmTemplate | None = None

    @classmethod
    def check(cls, devices: str | None, options: Mapping[str, str]) -> Sequence[str]:
        storage_of(options)
        found = too_many(declared(devices)) if devices is not None else ""
        return [found] if found else []

    @classmethod
    def open(cls, premises: Premises) -> Self:
        runner = cls(premises.home, premises.devices, premises.url, premises.preload, storage_of(premises.options))
        runner.known.generation = premises.generation
        runner.accounts = LocalAccounts(premises.apart, premises.owner, premises.named)
        if os.getuid() == 0 and premises.apart:
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
