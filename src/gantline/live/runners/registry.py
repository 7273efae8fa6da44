"""Runners by name, which carry out the orders of a service: ours, and those of installed packages (group ``gantline.runners``).

An entry is a class that has what `Runner` describes, and is imported when a service uses it. Where it is one of
ours its options are found without that, because help lists them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gantline.core.errors import UsageError
from gantline.live.runners.options import OPTIONS, RunnerOption
from gantline.registry import Register

if TYPE_CHECKING:
    from gantline.live.runners.runner import Runner

_PARTS = (
    "check", "open", "notes", "abilities", "refusal", "can", "cluster", "roll_call", "attach", "alive", "is_same_life", "switched",
    "forget", "incarnations", "output", "jobs_kept", "remove", "accounts", "leave", "close", "send", "fail",
)  # fmt: skip
_OURS = {
    "local": ("gantline.live.runners.local.runner:LocalRunner", "processes on this machine"),
    "kubernetes": ("gantline.live.runners.kubernetes.runner:KubernetesRunner", "pods of a Kubernetes cluster"),
    "ray": ("gantline.live.runners.ray.runner:RayRunner", "actors of a Ray cluster"),
    "slurm": ("gantline.live.runners.slurm.runner:SlurmRunner", "steps of a Slurm allocation"),
}
RUNNERS = Register("runners", _OURS, where="--executor")


def find_runner(name: str) -> type[Runner]:
    """The class of that name."""
    found = RUNNERS.load(name)
    if missing := [part for part in _PARTS if not hasattr(found, part)]:
        kind = found.__name__ if isinstance(found, type) else type(found).__name__
        what = f"'{name}' is a {kind}, not an executor of a service: it has no {', '.join(missing[:3])}"
        raise UsageError(what, where="--executor", fix="derive it from gantline.live.runners.runner.Runner")
    return found  # type: ignore[no-any-return]


def options_of(name: str) -> Sequence[RunnerOption]:
    """The options that the runner of that name has of its own; a runner of another package is imported for that."""
    entry = RUNNERS.find(name)
    if entry is None or entry.brought_by == "gantline":
        return OPTIONS.get(name, ())
    return tuple(find_runner(name).options)
