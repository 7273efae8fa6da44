"""What a job's processes have of this machine in their environment, beside what every runner gives them (`job_environment`)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from gantline.live.job_environment import free_port, seats
from gantline.live.launch import Launch

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

_HERE = "127.0.0.1"


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


def ranks(launch: Launch, devices: int, slices: Sequence[Mapping[str, str]] = ()) -> list[dict[str, str]]:
    """What differs from rank to rank: all see the devices of the job, and a rank of one per device uses its own.

    All nodes are this machine. `slices`: what each rank is told of its slices (`slices.by_rank`); such a rank sees the GPU of its slice and
    no other. The port is of its own for a single rank, too: libraries listen there although no other rank comes.
    """
    found = [seat.env for seat in seats(launch, {"": range(devices)}, _HERE, free_port(_HERE))]
    return [{**one, **own} for one, own in zip(found, slices)] if slices else found
