"""What a job's processes find in their environment, whichever runner starts them; `docs/design/live.md` lists the names.

A runner says where the gang is and at which address its first node is reached. What is true of a gang over several nodes (which rank
runs where, how many nodes there are, where they meet) is worked out here, once for all runners.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field

from gantline.engine.executor import Order
from gantline.live.jobs.launch import Launch
from gantline.live.runners.runner_context import Task

_HANDED_OUT: deque[int] = deque(maxlen=1000)


@dataclass(frozen=True, slots=True)
class GangRank:
    """One rank of a gang: the node that it runs on, and what its environment has of its own."""

    node: str
    env: dict[str, str] = field(default_factory=dict)


def job_environment(task: Task, order: Order, devices: Sequence[str], url: str, checkpoint: str, folder: str = "") -> dict[str, str]:
    """What all ranks of an incarnation share.

    `devices` are its devices by node and place, ``node1:0``. `checkpoint` is the folder for its saved work, the same in every incarnation.
    `folder` is that of the incarnation, in which the runner announces changes of its grant: only where both see the same files.
    """
    launch = task.launch
    found = {
        "GANTLINE_URL": url, "GANTLINE_JOB_ID": task.job, "GANTLINE_CHECKPOINT": checkpoint, "JOB_ID": task.job,
        "RESTART_COUNT": str(task.restarts), **grant_environment(order, devices), **({"GANTLINE_FOLDER": folder} if folder else {}),
    }  # fmt: skip
    if "CHECKPOINT_PATH" in launch.env:
        found["CHECKPOINT_PATH"] = launch.env["CHECKPOINT_PATH"].replace("${JOB_ID}", task.job).replace("$JOB_ID", task.job)
    if launch.array_index >= 0:
        found["ARRAY_INDEX"] = str(launch.array_index)
    return found | dict(task.env)


def grant_environment(order: Order, devices: Sequence[str]) -> dict[str, str]:
    """The part of it that differs from grant to grant."""
    found = {"GANTLINE_EPOCH": str(order.epoch), "GANTLINE_DEVICES": ",".join(devices), "GANTLINE_GPUS": str(len(devices))}
    batch = order.grant.assignment.batch if order.grant is not None else 0
    return found | ({"GANTLINE_BATCH": str(batch)} if batch else {})


def gang_ranks(launch: Launch, places: Mapping[str, Sized], address: str, port: int) -> list[GangRank]:
    """The ranks of a gang in order, with torchrun's variables.

    `places` has its devices on each of its nodes, the node of rank 0 first (`Contact.by_node`): the ranks of a node follow one another, as
    libraries expect. `address` is where the other nodes reach that first node, `port` is free there.
    """
    nodes, held = list(places), [len(devices) for devices in places.values()]
    counts = _ranks_by_node(launch, held)
    world, found = sum(counts), list[GangRank]()
    for number, (node, devices, count) in enumerate(zip(nodes, held, counts)):
        for local in range(count):
            one = {
                "RANK": len(found), "LOCAL_RANK": local, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": count, "NODE_RANK": number,
                "NNODES": len(nodes), "GPUS_PER_NODE": max(devices, 1), "MASTER_ADDR": address, "MASTER_PORT": port,
            }  # fmt: skip
            found.append(GangRank(node, {name: str(value) for name, value in one.items()}))
    return found


def _ranks_by_node(launch: Launch, held: Sequence[int]) -> list[int]:
    """How many ranks each node runs: in proportion to its devices, where the job says how many there are in all."""
    if launch.per_node:
        return [1 for _ in held]
    devices, count = sum(held), launch.ranks(sum(held), len(held))
    if not devices:
        return [count, *(0 for _ in held[1:])]
    owner = [number for number, here in enumerate(held) for _ in range(here)]
    found = [0 for _ in held]
    for rank in range(count):
        found[owner[rank * devices // count]] += 1
    return found


def free_port(address: str = "127.0.0.1") -> int:
    """A port of this machine that is free now, and was not handed out of late: its gang may not listen yet."""
    while True:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
            probe.bind((address, 0))
            port = int(probe.getsockname()[1])
        if port not in _HANDED_OUT:
            _HANDED_OUT.append(port)
            return port
