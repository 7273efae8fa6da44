"""Runners by name, which carry out the orders of a service: ours, and those of installed packages (group ``gantline.runners``).

An entry is a class that has what `Runner` describes. It is imported when a service uses it. Options of its own stand in ``OPTIONS`` of the
module ``options`` beside its module, which imports nothing heavy, because ``gantline up --help`` reads it; its class names them, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gantline.core.errors import UsageError
from gantline.live.runner_options import RunnerOption
from gantline.registry import Register

if TYPE_CHECKING:
    from gantline.live.runner import Runner

_PARTS = (
    "check", "open", "notes", "abilities", "refusal", "can", "cluster", "roll_call", "attach", "alive", "is_same_life", "switched",
    "forget", "incarnations", "output", "jobs_kept", "remove", "accounts", "leave", "close", "send", "fail",
)  # fmt: skip
_OURS = {
    "local": ("gantline.live.local.runner:LocalRunner", "processes on this machine"),
    "kubernetes": ("gantline.live.kubernetes.runner:KubernetesRunner", "pods of a Kubernetes cluster"),
    "ray": ("gantline.live.ray.runner:RayRunner", "actors of a Ray cluster"),
    "slurm": ("gantline.live.slurm.runner:SlurmRunner", "steps of a Slurm allocation"),
}
RUNNERS = Register("runners", _OURS, where="--executor")


def find_runner(name: str) -> type[Runner]:
    """The class of that name."""
    found = RUNNERS.load(name)
    if missing := [part for part in _PARTS if not hasattr(found, part)]:
        kind = found.__name__ if isinstance(found, type) else type(found).__name__
        what = f"'{name}' is a {kind}, not an executor of a service: it has no {', '.join(missing[:3])}"
        raise UsageError(what, where="--executor", fix="derive it from gantline.live.runner.Runner")
    return found  # type: ignore[no-any-return]


def options_of(name: str) -> Sequence[RunnerOption]:
    """The options that the runner of that name has of its own; nothing of the runner itself is imported where they stand beside it."""
    entry = RUNNERS.find(name)
    if entry is None:
        return ()
    beside = f"{entry.target.partition(':')[0].rpartition('.')[0]}.options"
    if find_spec(beside) is not None:
        return tuple(import_module(beside).OPTIONS)
    return () if entry.brought_by == "gantline" else tuple(find_runner(name).options)
