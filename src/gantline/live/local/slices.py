"""Slices of this machine's GPUs and CPU slots: what the processes on them are told and held to.

A rank on a slice of its own has the slice's part of the GPU's processors and memory, and its cores. A job with another number of processes
than slices has all of its slices in each process: one process has the sum of them, several divide it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from gantline.core.errors import RefusedError
from gantline.core.slices import is_slice, whole_and_percent
from gantline.live.local.devices import Machine, gpus_found
from gantline.live.local.mps import CONTROL, is_present

CORES = "GANTLINE_CORES"  # the cores that a process is bound to when it starts, with commas between them
_MB = 1024  # per GB
_VOLTA = 7.0  # compute capability since which the service knows parts of processors


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


def by_rank(slices: Sequence[Slice], count: int, serve: Callable[[str], Mapping[str, str]], part: float = 1.0) -> list[dict[str, str]]:
    """What each of so many ranks is told of the slices of its job, of which the job has that part; nothing where it has none.

    `serve` returns the variables by which a process finds what serves slices of a GPU.
    """
    if not slices:
        return [{} for _ in range(count)]
    if count == len(slices):
        return [_variables([one], part, serve) for one in slices]
    return [_variables(slices, part / count, serve)] * count


def _variables(slices: Sequence[Slice], part: float, serve: Callable[[str], Mapping[str, str]]) -> dict[str, str]:
    cores = sorted({core for one in slices for core in one.cores})
    found = {CORES: ",".join(map(str, cores))} if cores else {}
    gpus = {one.gpu for one in slices}
    if len(gpus) > 1:
        fix = "ask for slices of one GPU (topology: {within: gpu, mode: required}), or a process for each (processes: gpus)"
        raise RefusedError("a process can use slices of one GPU only", where="resources", fix=fix)
    (gpu,) = gpus
    if gpu is not None:
        found |= serve(gpu)
        found["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(max(1, int(sum(one.percent for one in slices) * part)))
        limit = int(sum(one.memory for one in slices) * part * _MB)
        found |= {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"0={limit}M"} if limit else {}
    return found


def check_slices(machine: Machine) -> None:
    """Refuse slices of GPUs that this machine cannot cut."""
    kinds = {whole_and_percent(node.type) for node in machine.cluster.nodes if node.name in machine.cuda}
    sliced = {whole for whole, percent in kinds if percent < 100}
    if not sliced:
        return
    found = gpus_found()
    for name in sorted(whole for whole, percent in kinds if percent == 100 and whole in sliced):
        if (there := sum(gpu.type == name for gpu in found)) < len(machine.gpus_of(name)):
            what = f"'{name}' is declared whole and in slices, and {there} such GPU{'' if there == 1 else 's'} are found"
            raise RefusedError(what, where="--devices", fix="a GPU is either whole or in slices: declare it once")
    old = [gpu for gpu in found if gpu.uuid in machine.gpus and 0 < gpu.capability < _VOLTA]
    if old:
        what = f"GPU {old[0].uuid} ({old[0].type}) cannot be cut in slices: its multi-process service knows no parts of processors"
        raise RefusedError(what, where="--devices", fix="declare it whole; GPUs since Volta (compute capability 7.0) can be cut")
    if not is_present():
        what = f"slices need NVIDIA's multi-process service, and {CONTROL} is not on the path"
        fix = "install it with the driver's tools; in a container, add it from the host"
        raise RefusedError(what, where="--devices", fix=fix)


def unbounded(machine: Machine) -> str:
    """That the memory of slices has no limit here, for the operator; empty: it has, or there are none."""
    if any(is_slice(node.type) and node.name in machine.cuda and not node.device_memory for node in machine.cluster.nodes):
        return "the memory of slices is not limited: NVML does not say how much their GPUs have (is nvidia-ml-py installed?)"
    return ""
