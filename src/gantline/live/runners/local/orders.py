"""What is written into an incarnation's order: how it is started, and the environment of its newcomers."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gantline.core.cluster import Cluster
from gantline.core.plan import Mode
from gantline.engine.executor import Order
from gantline.engine.runs import is_trial
from gantline.live.host import limit_of_jobs
from gantline.live.jobs.launch import Launch
from gantline.live.runners.job_environment import free_port, gang_ranks, grant_environment, job_environment
from gantline.live.runners.local.devices import Machine
from gantline.live.runners.local.files import home_mark, make_private, write_json
from gantline.live.runners.local.fork_server import handed_on
from gantline.live.runners.local.incarnation import Incarnation
from gantline.live.runners.local.isolation import Closing, Groups, LocalAccounts
from gantline.live.runners.local.slices import Mps, Slice, by_rank, slice_at
from gantline.live.runners.local.spawning import cpu_seconds
from gantline.live.runners.runner_context import Task


@dataclass
class Writer:
    """Writes orders for this machine."""

    home: Path
    url: str
    machine: Machine
    groups: Groups
    mps: Mps
    cluster: Callable[[], Cluster]
    accounts: LocalAccounts = field(default_factory=LocalAccounts)
    closing: Closing = field(default_factory=Closing)

    def order(self, order: Order, task: Task, one: Incarnation) -> dict[str, Any]:
        """All that a keeper needs."""
        launch, name = task.launch, f"{task.job}.{order.epoch}"
        one.is_trial = is_trial(order.grant)
        checkpoint = one.checkpoint
        make_private(checkpoint)
        account, work = self.accounts.of(task.user), one.folder / "work"
        if account is not None:
            account.give(self.home, one.folder, work, checkpoint)
        devices = list(map(self.name, order.devices))
        variables = job_environment(task, order, devices, self.url, str(checkpoint), str(one.folder)) | self._sharing_variables(order, task)
        cuda, count = self.cuda(order.devices), launch.ranks(len(order.devices))
        fraction = 0.0 if launch.share == "time" else _part(order, launch)
        memory, closing = int(launch.memory * 2**30), self.closing if account is not None else Closing()
        group = f"{home_mark(self.home)}.{name}"  # another service of this machine has jobs of the same numbers
        groups = self.groups.of(group, launch.pids, memory, account is not None, closing.numbers(cuda))
        of_account = None if account is None else account.variables
        return {
            "want": "run", "job": task.job, "epoch": order.epoch, "name": name, "revision": order.revision,
            "engine_devices": list(order.devices), "resumed": one.resumed, "command": list(launch.command), "shell": launch.shell,
            "cwd": launch.cwd or (str(work) if account is not None else ""),
            "account": None if account is None else account.to_json(),
            "env": common_environment(launch.env, variables, closing.visible(cuda), of_account),
            "ranks": rank_environments(
                launch, len(order.devices), by_rank(self.slices(order.devices), count, self.mps.serve, fraction or 1.0)
            ),
            "stop_signal": launch.stop_signal, "grace": launch.grace, "save_signal": launch.save_signal,
            "resumes": launch.resumes, "trial": one.is_trial,
            "stopped_exit": launch.stopped_exit, "files": limit_of_jobs(),
            "part": self.part(order, task),
            "log_bytes": launch.log_bytes, "groups": groups, "covered": closing.covered(cuda, one.folder),
            "bounds": {**self.groups.beyond(launch.pids, memory), "cpu": cpu_seconds(launch.time_limit)},
        }  # fmt: skip

    def change(self, order: Order, launch: Launch, members: Sequence[int], devices: Sequence[int]) -> dict[str, Any]:
        """The gang that shall be: which ranks stay, in their new order, and the environment of newcomers."""
        about = grant_environment(order, list(map(self.name, devices)))
        env = {**about, "GANTLINE_JOINING": "1", "CUDA_VISIBLE_DEVICES": ",".join(self.cuda(devices))}
        slice_env = by_rank(self.slices(devices), len(devices), self.mps.serve)
        ranks = rank_environments(launch, len(devices), slice_env)[len(members) :]
        return {"epoch": order.epoch, "members": list(members), "env": env, "ranks": ranks}

    @property
    def alike(self) -> bool:
        """Whether all devices are slots to which no process is bound."""
        return not self.machine.binds

    def stays(self, one: Incarnation, devices: Sequence[int]) -> bool:
        """Whether an incarnation that runs can go on with these devices; else it stops, and starts there."""
        return True

    def grant(self, order: Order, devices: Sequence[int]) -> dict[str, Any]:
        """What a running job reads of its new grant."""
        batch = order.grant.assignment.batch if order.grant is not None else 0
        return {"epoch": order.epoch, "gpus": len(devices), "devices": list(map(self.name, devices)), "batch": batch or None}

    def part(self, order: Order, task: Task) -> float:
        """Its part of the time on a device that it takes turns on; 0: it takes no turns."""
        return 0.0 if not task.launch.share or self._sharing_variables(order, task) else _part(order, task.launch)

    def _sharing_variables(self, order: Order, task: Task) -> dict[str, str]:
        """Variables for a job that runs beside others on its GPUs; none where that is not possible, or not wanted."""
        part, gpus = _part(order, task.launch), self.cuda(order.devices)
        if not 0.0 < part < 1.0 or task.launch.share == "time" or not gpus:
            return {}
        return self.mps.serve(gpus[0]) if self.slices(order.devices) else self.mps.share(part)

    def name(self, device: int) -> str:
        """A device by its node and its place there."""
        nodes = self.cluster()
        node = int(nodes.device_node[device])
        return f"{nodes.nodes[node].name}:{device - int(nodes.first_device[node])}"

    def cuda(self, devices: Sequence[int]) -> list[str]:
        """What CUDA calls these devices, each GPU once; CPU slots have no such name."""
        names = (self.machine.cuda_of(node, place) for node, place in map(self._place, devices))
        return list(dict.fromkeys(name for name in names if name is not None))

    def slices(self, devices: Sequence[int]) -> list[Slice]:
        """Those of these devices that are slices."""
        found = (slice_at(self.machine, node, place) for node, place in map(self._place, devices))
        return [one for one in found if one is not None]

    def _place(self, device: int) -> tuple[str, int]:
        node, _, place = self.name(device).rpartition(":")
        return node, int(place)


def _part(order: Order, launch: Launch) -> float:
    """The part of each device that it has, by its specification or by a policy that packs; 0: it has devices of its own."""
    grant = order.grant.assignment if order.grant is not None else None
    if grant is None or grant.mode not in (Mode.SPACE, Mode.INTERLEAVE):
        return 0.0
    part = min(launch.part, grant.fraction)
    return part if part < 1.0 else 0.0


# What a job's processes have of this machine in their environment, beside what every runner gives them
# (`job_environment`).


_HERE = "127.0.0.1"


def common_environment(
    own: Mapping[str, str], variables: Mapping[str, str], cuda: Sequence[str], account: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What all ranks of an incarnation share; `account`: what the account says that they run as, where it is not the service's own."""
    found = {name: value for name, value in handed_on().items() if not (account and name == "TMPDIR")} | dict(account or {})
    found |= {"PYTHONUNBUFFERED": "1"} | dict(own) | dict(variables)
    found["CUDA_VISIBLE_DEVICES"] = ",".join(cuda)
    return found


def rank_environments(launch: Launch, devices: int, slices: Sequence[Mapping[str, str]] = ()) -> list[dict[str, str]]:
    """What differs from rank to rank: all see the devices of the job, and a rank of one per device uses its own.

    All nodes are this machine. `slices`: what each rank is told of its slices (`slices.by_rank`); such a rank sees the GPU of its slice and
    no other. The port is of its own for a single rank, too: libraries listen there although no other rank comes.
    """
    found = [rank.env for rank in gang_ranks(launch, {"": range(devices)}, _HERE, free_port(_HERE))]
    return [{**one, **own} for one, own in zip(found, slices)] if slices else found


# What a running job is told of its grant beside its devices: CPUs, memory, storage bandwidth, its part of each
# device, its shift.
#
# A change is an order and no stop: ``terms.json`` in its folder is written anew, and a training loop reads it
# between two steps (`gantline.train`).


def terms_of(order: Order) -> dict[str, float]:
    """What the grant says; what is left out is as the job asked for it."""
    if order.grant is None:
        return {}
    item = order.grant.assignment
    said = {"cpus": item.cpus, "memory": item.memory, "storage": item.storage, "memory_cap": item.memory_cap}
    found = {name: amount for name, amount in said.items() if math.isfinite(amount)}
    found |= {"fraction": item.fraction} if item.fraction != 1.0 else {}
    return found | ({"offset": item.offset} if item.offset else {})


def tell_terms(one: Incarnation, order: Order) -> dict[str, dict[str, float]]:
    """Write them where the job reads them, unless they are as they were; what is to be noted in its order."""
    terms = terms_of(order)
    if terms != one.order.get("terms", {}):
        make_private(one.folder)
        path = one.folder / "terms.json"
        write_json(str(path), terms, lasting=False)
        os.chmod(path, 0o644)  # the job may run as another account
    return {"terms": terms}
