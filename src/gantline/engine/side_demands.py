"""CPUs, memory and storage bandwidth that a job asks for beside its devices: whether any of its options can ever be satisfied here."""

from __future__ import annotations

from collections.abc import Sequence

from gantline.core.beside import amounts_beside
from gantline.core.cluster import Cluster
from gantline.core.columns import HOST_RESOURCE_NAMES
from gantline.core.errors import RefusedError
from gantline.core.options import Option
from gantline.engine.beside_reasons import UNITS

_SLACK = 1e-9


def check_side_demands(cluster: Cluster, job: str, options: Sequence[Option]) -> None:
    """Refuse a job without an option that fits what a node has beside devices: it would wait, and block others, for ever."""
    short = [_shortage(cluster, option) for option in options]
    if short and all(short):
        raise RefusedError(f"job '{job}' {short[0]}", where="resources", fix="ask for less, or leave it out")


def options_with_memory(cluster: Cluster, job: str, options: list[Option], need: float) -> list[Option]:
    """The options on devices that have the memory that the job needs on each; it is refused where there is none."""
    has = cluster.device_memory
    found = [one for one in options if not one.gpus or has[one.type] == 0.0 or need <= has[one.type] + _SLACK]
    if options and not found:
        largest = max(options, key=lambda one: has[one.type]).type
        what = f"job '{job}' needs {need:g} GB of device memory, and {cluster.types[largest]} has {has[largest]:g}"
        raise RefusedError(what, where="metrics.device_memory", fix="ask for a type with larger devices, or need less")
    return found


def _shortage(cluster: Cluster, option: Option) -> str:
    """What is missing for an option; empty: nothing."""
    nodes = [node for node in cluster.nodes if node.type == cluster.types[option.type]]
    for what, unit, each in zip(HOST_RESOURCE_NAMES, UNITS, amounts_beside(option)):
        has = [float(getattr(node, what)) for node in nodes]
        whole = each * max(option.gpus, 1)
        if each > max(has, default=0.0) + _SLACK or whole > sum(has) + _SLACK:
            return f"asks for {whole:g} {unit}, and {cluster.types[option.type]} has {sum(has):g}"
    return ""
