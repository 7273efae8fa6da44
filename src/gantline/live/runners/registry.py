"""Runners by name, which carry out the orders of a service: ours, and those of installed packages (group ``gantline.runners``).

An entry is a class that has what `Runner` describes, and is imported when a service uses it. Its options of its own are
``gantline up --executor ray --ray-address ADDR``; those of our runners stand here, so that help imports none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gantline.core.errors import UsageError, near
from gantline.live.runners.runner_context import RunnerOption
from gantline.registry import Register

if TYPE_CHECKING:
    from gantline.live.runners.runner import Runner

_PARTS = (
    "check", "open", "notes", "abilities", "refusal", "can", "cluster", "adopt", "attach", "alive", "is_same_life", "switched",
    "forget", "incarnations", "output", "jobs_kept", "remove", "accounts", "leave", "close", "send", "fail",
)  # fmt: skip
_OURS = {
    "local": ("gantline.live.runners.local.runner:LocalRunner", "processes on this machine"),
    "kubernetes": ("gantline.live.runners.kubernetes.runner:KubernetesRunner", "pods of a Kubernetes cluster"),
    "ray": ("gantline.live.runners.ray.runner:RayRunner", "actors of a Ray cluster"),
    "slurm": ("gantline.live.runners.slurm.runner:SlurmRunner", "steps of a Slurm allocation"),
}
RUNNERS = Register("runners", _OURS, where="--executor")


#: options of our runners
OPTIONS = {
    "local": (
        RunnerOption("storage", "What the machine can read from storage, for jobs to book: 500MB/s. By default jobs cannot ask for any."),
    ),
    "kubernetes": (
        RunnerOption("kubeconfig", "The cluster and who we are there. By default as kubectl finds it, or the service account of this pod."),
        RunnerOption("context", "A context of the kubeconfig; by default its current one."),
        RunnerOption("namespace", "Where the pods of jobs are; by default the context's."),
        RunnerOption("image", "The image of jobs that name none."),
        RunnerOption("checkpoints", "A volume that all nodes see, for saved work: the name of a claim, or /a/path of every node."),
        RunnerOption("gang-timeout", "After so many seconds a gang whose pods do not all run is given back.", "300"),
    ),
    "ray": (
        RunnerOption(
            "ray-address",
            "The Ray cluster, as HOST:PORT or 'auto' for one that runs on this machine. By default RAY_ADDRESS, else a cluster of its own.",
        ),
        RunnerOption(
            "ray-checkpoints",
            "A folder that all nodes of the cluster share, for the saved work of jobs. By default the service's own folder.",
        ),
    ),
    "slurm": (
        RunnerOption(
            "slurm-job", "The allocation, by the id of its Slurm job. By default the one that the service is started in (SLURM_JOB_ID)."
        ),
        RunnerOption(
            "slurm-checkpoints",
            "A folder that all nodes of the allocation share, for the saved work of jobs. By default the service's own folder.",
        ),
    ),
}


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


def checked(given: Mapping[str, str], declared: Sequence[RunnerOption], executor: str) -> dict[str, str]:
    """The given options; one that the runner does not have, and a value that it does not take, are refused."""
    known = {option.name: option for option in declared}
    for name, value in given.items():
        if name not in known:
            fix = near(f"--{name}", [f"--{one}" for one in known]) if known else "leave it out, or choose the executor that has it"
            raise UsageError(f"executor '{executor}' has no such option", where=f"--{name}", fix=fix)
        if known[name].choices and value not in known[name].choices:
            raise UsageError(f"'{value}' is none of its values", where=f"--{name}", fix=f"use {', '.join(known[name].choices)}")
    return {name: str(value) for name, value in given.items()}


def completed(given: Mapping[str, str], before: Mapping[str, str], declared: Sequence[RunnerOption]) -> dict[str, str]:
    """A value for each option that has one: as given now, else as at an earlier start, else its default."""
    usual = {option.name: option.default for option in declared if option.default is not None}
    kept = {name: value for name, value in before.items() if any(option.name == name for option in declared)}
    return {**usual, **kept, **given}
