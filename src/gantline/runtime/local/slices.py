"""Slices of this machine's GPUs and CPU slots: what the processes on them are told and held to.

A rank on a slice of its own has the slice's part of the GPU's processors and memory, and its cores. A job with another number of processes
than slices has all of its slices in each process: one process has the sum of them, several divide it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gantline.core.slices import whole_and_percent
from gantline.runtime.local.devices import Machine

CORES = "GANTLINE_CORES"  # the cores that a process is bound to when it starts, with commas between them
_MB = 1024  # per GB


class Slice(NamedTuple):
    """One slice."""

    gpu: str | None  # what CUDA calls its GPU; None: it is a slice of a CPU slot
    percent: int
    memory: float  # GB; 0: not known
    cores: tuple[int, ...]


def slice_at(machine: Machine, name: str, place: int) -> Slice | None:
    """The slice at that place of a node; None: the device there is a whole one, or gone."""
    node = next((node for node in machine.cluster.nodes if node.name == name), None)
    percent = 100 if node is None else whole_and_percent(node.type)[1]
    if node is None or percent == 100:
        return None
    cores = machine.cores.get(name, ())
    return Slice(machine.cuda_of(name, place), percent, node.device_memory, cores[place] if place < len(cores) else ())


def by_rank(slices: Sequence[Slice], count: int, part: float = 1.0) -> list[dict[str, str]]:
    """What each of so many ranks is told of the slices of its job, of which the job has that part; nothing where it has none."""
    if not slices:
        return [{} for _ in range(count)]
    if count == len(slices):
        return [_variables([one], part) for one in slices]
    return [_variables(slices, part / count)] * count


def _variables(slices: Sequence[Slice], part: float) -> dict[str, str]:
    cores = sorted({core for one in slices for core in one.cores})
    found = {CORES: ",".join(map(str, cores))} if cores else {}
    gpus = list(dict.fromkeys(one.gpu for one in slices if one.gpu is not None))
    if not gpus:
        return found
    held = [[one for one in slices if one.gpu == gpu] for gpu in gpus]
    percent = max(sum(one.percent for one in on) for on in held)  # one number holds on all GPUs of a process
    found["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    found["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(max(1, int(percent * part)))
    limits = [int(sum(one.memory for one in on) * part * _MB) for on in held]
    if all(limits):
        found["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = ",".join(f"{k}={limit}M" for k, limit in enumerate(limits))
    return found
