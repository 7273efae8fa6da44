"""What a job's processes find in their environment; `docs/design/live.md` lists the names."""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Mapping, Sequence

#: what is handed on from the service's own environment; everything else of a job's environment comes from its specification
_HANDED_ON = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "SHELL",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
)

_HANDED_OUT: deque[int] = deque(maxlen=1000)


def handed_on() -> dict[str, str]:
    """What jobs have from the service's own environment."""
    return {name: os.environ[name] for name in _HANDED_ON if name in os.environ}


def common(
    own: Mapping[str, str], variables: Mapping[str, str], cuda: Sequence[str], account: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What all ranks of an incarnation share; `account`: what the account says that they run as, where it is not the service's own."""
    found = {name: value for name, value in handed_on().items() if not (account and name == "TMPDIR")} | dict(account or {})
    found |= {"PYTHONUNBUFFERED": "1"} | dict(own) | dict(variables)
    found["CUDA_VISIBLE_DEVICES"] = ",".join(cuda)
    return found


def ranks(count: int, slices: Sequence[Mapping[str, str]] = ()) -> list[dict[str, str]]:
    """What differs from rank to rank, by torchrun's names: all see the devices of the job, and a rank of one per device uses its own.

    `slices`: what each is told of its slices (`slices.by_rank`); such a rank sees the GPU of its slice and no other.
    """
    found = []
    port = str(free_port())  # of its own for a single rank, too: libraries listen there although no other rank comes
    for rank in range(count):
        one = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "NODE_RANK": 0, "NNODES": 1}
        found.append({name: str(value) for name, value in one.items()} | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
    return [{**one, **own} for one, own in zip(found, slices)] if slices else found


def free_port() -> int:
    """A port of the loopback device that is free now, and was not handed out of late: its gang may not listen yet."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port not in _HANDED_OUT:
            _HANDED_OUT.append(port)
            return port
