"""Options that commands over many runs share: which jobs, which cluster, which policies, how each run is made."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from gantline.cli.arguments import settings_of
from gantline.cli.run_flags import given_flags, run_flags
from gantline.cli.trace_options import TraceOptions
from gantline.core.errors import UsageError

if TYPE_CHECKING:
    from gantline.lab.experiment.backend import Backend
    from gantline.lab.experiment.setting import Setting
    from gantline.lab.experiment.source import TraceSource

Policies = Annotated[
    list[str],
    Parameter(
        name="--policy", negative="", help="A policy, several (fifo,las), or one with parameters ('las service=gpu-time'); may be repeated."
    ),
]
Seeds = Annotated[str | None, Parameter(help="How many seeds (5 means 0 to 4), or which (1,2,3).")]
Limit = Annotated[str, Parameter(help="Give up a run that takes longer than this (wall-clock time).")]
Workers = Annotated[int | None, Parameter(help="Processes that run side by side; by default one per processor.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Backends:
    """Where many runs are made."""

    workers: Workers = None
    backend: Annotated[
        Literal["processes", "ray"], Parameter(help="Make the runs in processes here, or on the nodes of a Ray cluster (docs/ray.md).")
    ] = "processes"
    ray_address: Annotated[
        str | None, Parameter(help="The Ray cluster, HOST:PORT; by default RAY_ADDRESS, else the one that runs on this machine.")
    ] = None

    def make(self, runs: int, limit: float) -> Backend:
        """What runs so many settings; a cluster that does not answer is refused here."""
        if self.backend == "ray":
            from gantline.lab.experiment.ray_backend import OnRay

            return OnRay(self.ray_address or os.environ.get("RAY_ADDRESS") or "auto", self.workers, limit)
        if self.ray_address is not None:
            raise UsageError("runs are made in processes here", where="--ray-address", fix="give --backend ray, too")
        from gantline.lab.experiment.backend import choose_backend

        few = self.workers is None or self.workers > 0
        return choose_backend(min(self.workers or len(os.sched_getaffinity(0)), runs) if few else int(self.workers or 0), limit)


HERE = Backends()  # as many processes as there are processors


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
@run_flags(single=False)
class RunOptions(TraceOptions):
    """How each run is made; the seed is an axis of its own."""

    cluster: Annotated[str, Parameter(help="32x4 (nodes x GPUs), v100:36,k80:36, v100:4x8@rack1, or a file (YAML, CSV).")]

    def base(self, trace: str) -> Setting:
        """The setting that all runs begin with."""
        return self.setting(self.source(trace), self.cluster)

    def setting(self, source: TraceSource, cluster: str) -> Setting:
        """The same for jobs and a cluster from elsewhere."""
        from gantline.lab.experiment.setting import Setting

        return Setting(source, cluster, policy="fifo", **given_flags(self))


def seeds_of(text: str | None, default: int) -> tuple[int, ...]:
    """Seeds from a count or a list."""
    if text is None:
        return tuple(range(default))
    parts = text.split(",")
    if any(not part.strip().isdigit() for part in parts) or (len(parts) == 1 and int(text) < 1):
        raise UsageError(f"'{text}' is neither a number of seeds nor a list", where="--seeds", fix="write 5 or 1,2,3")
    return tuple(int(part) for part in parts) if len(parts) > 1 else tuple(range(int(text)))


def numbers_of(text: str | None, where: str) -> tuple[float, ...]:
    """Numbers from ``0.5,0.7,0.9``."""
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise UsageError(f"'{text}' is not a list of numbers", where=where, fix="write 0.5,0.7,0.9") from None


def varied_of(texts: Sequence[str] | None) -> dict[str, list[str]]:
    """Axes from ``round=60,300``, or with ``;`` between values that hold commas."""
    found = {}
    for name, values in settings_of(texts, "--vary").items():
        found[name] = [value.strip() for value in values.split(";" if ";" in values else ",")]
    return found
