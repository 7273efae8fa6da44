"""GPUs cut in slices, as people write them: ``8`` for eight equal ones, ``8%x4+16%x4`` for four of 8 % and four of 16 % of a GPU.

A slice is a device of a type of its own, named by its part of the GPU's processors: an eighth of an ``h200`` is an ``h200.12pct``. NVIDIA's
multi-process service takes whole percentages, so that equal slices are rounded down.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from gantline.core.cluster import Node
from gantline.core.errors import UsageError

MOST_SLICES = 48
"""Clients that the multi-process service serves on one GPU (Volta and later)."""
_SIZE = re.compile(r"^(?P<percent>\d{1,3})%(?:x(?P<count>\d{1,4}))?$")
_TYPE = re.compile(r"^(?P<whole>.+)\.(?P<percent>[1-9]\d?)pct$")
_FIX = "write the number of equal slices, as in h200/8, or their sizes, as in h200/8%x4+16%x4"


class Size(NamedTuple):
    """So many slices of one size."""

    percent: int
    number: int


def parse_slices(text: str, where: str) -> tuple[Size, ...]:
    """The slices of one GPU that the text describes; one that cannot be is refused."""
    if text.isdecimal():
        number = int(text)
        if number == 1:
            raise UsageError("one slice is the whole GPU", where=where, fix="leave the slice out, or cut the GPU in two or more")
        _check_number(number, where)
        return (Size(100 // number, number),)
    found = []
    for part in text.split("+"):
        size = _SIZE.match(part)
        if not size or not 0 < int(size["percent"]) < 100 or size["count"] == "0":
            raise UsageError(f"'{part}' is no size of slices", where=where, fix=_FIX)
        found.append(Size(int(size["percent"]), int(size["count"] or 1)))
    percents = [size.percent for size in found]
    if len(set(percents)) < len(percents):
        twice = next(percent for percent in percents if percents.count(percent) > 1)
        raise UsageError(f"slices of {twice} % are listed twice", where=where, fix="list every size once, with its number")
    _check_number(sum(size.number for size in found), where)
    if (whole := sum(size.percent * size.number for size in found)) > 100:
        raise UsageError(f"slices of {whole} % of one GPU", where=where, fix="let the slices of a GPU sum to 100 % or less")
    return tuple(found)


def _check_number(number: int, where: str) -> None:
    if not 0 < number <= MOST_SLICES:
        raise UsageError(f"{number} slices of one GPU", where=where, fix=f"the multi-process service allows 2 to {MOST_SLICES}")


def slice_type(whole: str, percent: int) -> str:
    """The type of a slice."""
    return f"{whole}.{percent}pct"


def cut(machine: Node, text: str, where: str) -> Iterator[Node]:
    """The nodes of a machine whose GPUs are cut: one for each GPU and size of slices; the machine takes the place of their rack."""
    if machine.rack:
        fix = "leave the rack out: the GPUs of a machine are near one another, as the nodes of a rack are"
        raise UsageError("machines with slices stand in no rack", where=where, fix=fix)
    sizes = parse_slices(text, where)
    parts = max(1, machine.gpus * len(sizes))
    each = replace(machine, cpus=machine.cpus / parts, memory=machine.memory / parts, storage=machine.storage / parts, rack=machine.name)
    for gpu in range(machine.gpus):
        for percent, number in sizes:
            name = f"{machine.name}.{gpu}" + (f".{percent}pct" if len(sizes) > 1 else "")
            memory = machine.device_memory * percent / 100
            yield replace(each, name=name, type=slice_type(machine.type, percent), gpus=number, device_memory=memory)


def whole_and_percent(kind: str) -> tuple[str, int]:
    """The type of the GPU that a slice is cut from and its part of it; any other type is a whole device."""
    found = _TYPE.match(kind)
    return (found["whole"], int(found["percent"])) if found else (kind, 100)


def is_cpu(kind: str) -> bool:
    """Whether devices of this type are CPU slots, or slices of one."""
    whole, _ = whole_and_percent(kind)
    return whole == "cpu" or whole.startswith("cpu-")


def is_slice(kind: str) -> bool:
    """Whether devices of this type are slices."""
    return whole_and_percent(kind)[1] < 100


def gpu_of(node: Node) -> str:
    """What the devices of a node are cut from: slices of two sizes are two nodes of one GPU. Of whole devices it is the node itself."""
    return node.name.replace(f".{whole_and_percent(node.type)[1]}pct", "", 1)


def slices_of_gpu(node: Node, nodes: Iterable[Node]) -> float:
    """How many devices of a node's size its GPU has been cut in, slices of other sizes counted by their part."""
    shared = sum(one.gpus * whole_and_percent(one.type)[1] for one in nodes if gpu_of(one) == gpu_of(node))
    return shared / whole_and_percent(node.type)[1]
