"""Options that commands over many runs share: which jobs, which cluster, which policies, how each run is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from gantline.cli.arguments import finite_time_of, settings_of, time_of, window_of
from gantline.core.errors import UsageError

if TYPE_CHECKING:
    from gantline.experiment.grid import PolicyChoice
    from gantline.experiment.setting import Setting

TraceName = Annotated[str, Parameter(help="A table of jobs, a file in a foreign --format, or the name of a generator.")]
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
class RunOptions:
    """How each run is made."""

    cluster: Annotated[str, Parameter(help="32x4 (nodes x GPUs), v100:36,k80:36, v100:4x8@rack1, or a YAML file.")]
    trace_set: Annotated[
        list[str] | None, Parameter(negative="", help="A setting of the generator or an option of the format, key=value; may be repeated.")
    ] = None
    format: Annotated[str, Parameter(help="The foreign format of the trace, as in 'gantline trace import'.")] = ""
    placement: Annotated[str, Parameter(help="Which devices: first-free, consolidated[:preferred], skew[:LIMIT], random.")] = "first-free"
    admission: Annotated[str, Parameter(help="Who may enter: accept-all, load-limit:X, quota:user=N,queue=M.")] = "accept-all"
    regime: Annotated[str, Parameter(help="How time is counted: default, blox, tiresias, gavel, ...")] = "default"
    round_: Annotated[str | None, Parameter(name="--round", help="Decide every so often; without it, on events.")] = None
    estimates: Annotated[str, Parameter(help="What policies know of the work to come: oracle, noisy:S, history, none.")] = "oracle"
    costs: Annotated[str, Parameter(help="Seconds lost: 30, or start=30,resume=60,resize=20,checkpoint=600.")] = ""
    min_run: Annotated[str, Parameter(help="How long a gang may run before it can be stopped.")] = "0"
    track: Annotated[str | None, Parameter(help="Measure jobs LO:HI only, and stop when they have ended.")] = None
    until: Annotated[str, Parameter(help="Stop at this time.")] = "inf"
    node_events: Annotated[Path | None, Parameter(help="A CSV file time,node,event: down, up, drain, join.")] = None
    throughputs: Annotated[Path | None, Parameter(help="Measured speeds of job types on device types (JSON, Gavel's layout).")] = None
    across_nodes: Annotated[bool, Parameter(negative="", help="Gangs that span nodes run at the table's speeds for that.")] = False
    profiles: Annotated[Path | None, Parameter(help="A folder of measured profiles, one folder per application (Pollux' layout).")] = None
    prices: Annotated[str, Parameter(help="Money per device-hour: v100=0.74,k80=0.135, or a CSV or JSON file.")] = ""
    decision_latency: Annotated[str, Parameter(help="How long a decision takes in virtual time.")] = "0"

    def base(self, trace: str) -> Setting:
        """The setting that all runs begin with."""
        from gantline.experiment.setting import Setting
        from gantline.experiment.source import TraceSource
        from gantline.workload.generators.registry import generator_names

        given: dict[str, Any] = dict(settings_of(self.trace_set, "--trace-set"))
        if trace in generator_names() and not self.format:
            source = TraceSource(generator=trace, settings=given)
        else:
            source = TraceSource(file=trace, format=self.format, settings=given)
        return Setting(
            source,
            self.cluster,
            policy="fifo",
            placement=self.placement,
            admission=self.admission,
            regime=self.regime,
            round=finite_time_of(self.round_, "--round", above=True),
            estimates=self.estimates,
            costs=self.costs,
            min_run=finite_time_of(self.min_run, "--min-run") or 0.0,
            track=window_of(self.track),
            until=time_of(self.until, "--until") or 0.0,
            latency=finite_time_of(self.decision_latency, "--decision-latency") or 0.0,
            node_events=str(self.node_events or ""),
            throughputs=str(self.throughputs or ""),
            across_nodes=self.across_nodes,
            profiles=str(self.profiles or ""),
            prices=self.prices,
        )


def policies_of(texts: Sequence[str]) -> tuple[PolicyChoice, ...]:
    """Policies from ``fifo``, ``fifo,las`` and ``tiresias limits=3600,36000 promote=2``."""
    from gantline.experiment.grid import PolicyChoice

    found = []
    for text in texts:
        name, *settings = text.split()
        if settings:
            found.append(PolicyChoice(name, settings_of(settings, f"--policy '{name} ...'")))
        else:
            found += [PolicyChoice(part) for part in name.split(",") if part]
    return tuple(found)


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
