"""Options that commands share: which jobs, which cluster, which policies, how each run is made and where."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from cyclopts import Parameter

from gantline.cli.arguments import settings_of
from gantline.core.errors import NotFoundError, UsageError, near
from gantline.engine.assembly.spec import OPTIONS, RunOption
from gantline.lab.experiment.running.processes import choose_backend
from gantline.lab.experiment.running.ray_backend import OnRay
from gantline.lab.experiment.running.tasks import Backend
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource
from gantline.traces.generators.registry import generator_names, is_generator
from gantline.traces.importers.registry import find_importer
from gantline.traces.trace import Trace

TraceName = Annotated[str, Parameter(help="A table of jobs, a log in a foreign --format, or the name of a generator ('day').")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """What a trace is, where its name does not say it all.

    Args:
        format: The foreign format of the trace, as in 'gantline trace import'.
        trace_set: A setting of the generator or an option of the format, key=value; may be repeated.
    """

    format: str | None = None
    trace_set: list[str] | None = None

    def source(self, trace: str) -> TraceSource:
        """Where the jobs come from."""
        given: dict[str, Any] = dict(settings_of(self.trace_set, "--trace-set"))
        if self.format:
            find_importer(self.format)
        if is_generator(trace) and not self.format:
            return TraceSource(generator=trace, settings=given)
        is_word = Path(trace).name == trace and not Path(trace).suffix
        if not Path(trace).exists() and (is_word or get_close_matches(trace, generator_names(), n=1, cutoff=0.6)):
            raise NotFoundError("no such file, and no generator of that name", where=trace, fix=near(trace, generator_names()))
        return TraceSource(file=trace, format=self.format or "", settings=given)

    def load(self, trace: str, seed: int = 0, throughputs: str = "") -> Trace:
        """The jobs."""
        return self.source(trace).with_throughputs(throughputs).load(seed)


Flagged = TypeVar("Flagged", bound=type)


def run_flags(single: bool) -> Callable[[Flagged], Flagged]:
    """Below `@dataclass`: adds a field per option of a run; what is not given is None, and help shows the default.

    A set of flags takes 10 ms to make, so each command has only the class that it needs, and that is made once (no base of its own).
    """

    def add(cls: Flagged) -> Flagged:
        wanted = [known for known in OPTIONS.values() if single or not (known.single or known.name == "seed")]
        cls.__annotations__ = {known.name: _flag(known) for known in wanted} | cls.__annotations__
        for known in wanted:
            setattr(cls, known.name, _shown(known))
        return cls

    return add


def given_flags(flags: object) -> dict[str, Any]:
    """The values of the options of a run; a mistake names the flag."""
    given = {known.name: (known, getattr(flags, known.name)) for known in OPTIONS.values() if hasattr(flags, known.name)}
    return {name: known.read(value, known.flag) for name, (known, value) in given.items() if value is not None}


def _flag(known: RunOption) -> object:
    kind: object = bool if known.default is False else Path | None if known.file and not known.inline else str | None
    return Annotated[kind, Parameter(name=known.flag, help=known.help)]


def _shown(known: RunOption) -> str | bool | None:
    if known.default in (None, ""):
        return None
    return known.default if isinstance(known.default, (str, bool)) else f"{known.default:g}"


Policies = Annotated[
    list[str],
    Parameter(name="--policy", help="A policy, several (fifo,las), or one with parameters ('las service=gpu-time'); may be repeated."),
]
Seeds = Annotated[str | None, Parameter(help="How many seeds (5 means 0 to 4), or which (1,2,3).")]
Limit = Annotated[str, Parameter(help="Give up a run that takes longer than this (wall-clock time).")]
Workers = Annotated[int | None, Parameter(help="Processes that run side by side; by default one per processor.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Backends:
    """Where many runs are made.

    Args:
        backend: Make the runs in processes here, or on the nodes of a Ray cluster (docs/ray.md).
        ray_address: The Ray cluster, HOST:PORT; by default RAY_ADDRESS, else the one that runs on this machine.
    """

    workers: Workers = None
    backend: Literal["processes", "ray"] = "processes"
    ray_address: str | None = None

    def make(self, runs: int, limit: float) -> Backend:
        """What runs so many settings; a cluster that does not answer is refused here."""
        if self.backend == "ray":
            return OnRay(self.ray_address or os.environ.get("RAY_ADDRESS") or "auto", self.workers, limit)
        if self.ray_address is not None:
            raise UsageError("runs are made in processes here", where="--ray-address", fix="give --backend ray, too")
        few = self.workers is None or self.workers > 0
        return choose_backend(min(self.workers or len(os.sched_getaffinity(0)), runs) if few else int(self.workers or 0), limit)


HERE = Backends()  # as many processes as there are processors


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
@run_flags(single=False)
class RunOptions(TraceOptions):
    """How each run is made; the seed is an axis of its own.

    Args:
        cluster: 32x4 (nodes x GPUs), v100:36,k80:36, v100:4x8@rack1, or a file (YAML, CSV).
    """

    cluster: str

    def base(self, trace: str) -> Setting:
        """The setting that all runs begin with."""
        return self.setting(self.source(trace), self.cluster)

    def setting(self, source: TraceSource, cluster: str) -> Setting:
        """The same for jobs and a cluster from elsewhere."""
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
