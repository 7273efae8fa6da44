"""How a run is made: every option once, with its name, its default, how it is read, what help says and its flag.

The Python call, the command line, experiment files and hashes are all derived from here. A new option is one line in `RunSpec`,
and its use; an option that names something also needs one line in `finders`.
"""

# ruff: noqa: RUF009 (`option` makes a field)

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from gantline.core.errors import UsageError, near
from gantline.core.fields import (
    amounts,
    duration,
    duration_above_zero,
    factor,
    finite_duration,
    name,
    name_or_none,
    path,
    path_or_list,
    round_of_time,
    seed,
    track,
    victims_rule,
    warmup,
    windows,
    yes_or_no,
)
from gantline.core.queues import queues_as_text

if TYPE_CHECKING:
    from gantline.core.facts import Costs
    from gantline.core.inputs import NodeEvent
    from gantline.core.windows import AdvanceWindow
    from gantline.engine.ending import EndingRule
    from gantline.engine.executor import Executor
    from gantline.engine.regime import Regime
    from gantline.models.estimate_chain import Estimates
    from gantline.models.goodput.measured import Profiles
    from gantline.models.model import PerformanceModel
    from gantline.models.sharing.throughput_table import ThroughputTable
    from gantline.policies.admission.rules import AdmissionRule
    from gantline.policies.placement.device_rule import DeviceRule
    from gantline.policies.placement.rules import PlacementRule


@dataclass(frozen=True)
class RunOption:
    """One option: how a value is `read` (with the place at which a mistake is reported), and what it is called."""

    read: Callable[[Any, str], Any]
    help: str
    name: str = ""
    default: Any = None
    flag: str = ""
    """On the command line."""
    file: Literal["", "in", "out"] = ""
    """Whether the value names a file or a folder, that is read or that is written; what is read counts by its content."""
    inline: str = ""
    """A character that marks values that are written out instead of naming a file."""
    single: bool = False
    """Of one run only, not of experiments."""
    number: bool = False
    """Whether a number may be given in place of the file."""
    settable: bool = False
    """Whether --set takes it too, where the policy has no parameter of that name."""

    def names_file(self, value: Any) -> bool:
        """Whether this value is the path of a file that the run depends on."""
        if self.file != "in" or not isinstance(value, str) or value == "" or (self.inline and self.inline in value):
            return False
        return not (self.number and _is_number(value))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def option(default: Any, read: Callable[[Any, str], Any], help: str, **more: Any) -> Any:
    """A field of `RunSpec`."""
    return field(default=default, metadata={"option": RunOption(read, help, default=default, **more)})


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Everything about a run but its jobs, its cluster and its policy. Values are what people write; None means the default."""

    placement: PlacementRule | DeviceRule | str = option(
        "first-free", name, "Which devices: first-free, consolidated[:preferred], skew[:X], random, ..., or FILE.py:RULE."
    )
    admission: AdmissionRule | str = option("accept-all", name, "Which jobs may enter: accept-all, load-limit:X, quota:user=N,queue=M.")
    queues: str = option(
        "",
        queues_as_text,
        "What queues are promised and may borrow (by default nothing), NAME=QUOTA[:BORROW[:WEIGHT]]: research=4,batch=2:1.",
    )
    regime: Regime | str = option("default", name, "How time is counted: default, or as a system does (`gantline system list`).")
    round: float | None = option(None, round_of_time, "Decide every so often; without it, on events.")
    estimates: Estimates | str = option("oracle", name, "What policies know of work ahead: oracle, noisy:S, history, boosted, limit, none.")
    end_by: EndingRule | str = option("never", name, "End jobs by their loss: never, plateau:BOUND[%][@REPORTS], target:LOSS.")
    costs: Costs | str = option(
        "", name_or_none, "Seconds lost: 30, measured, stop-resume, stop-free, or start=30,resume=60,resize=20,checkpoint=600."
    )
    min_run: float | None = option(None, finite_duration, "How long a gang runs before it may be stopped; measured: 60s.")
    grace: float | None = option(None, finite_duration, "How long a gang that is starting, or has not saved, is spared; measured: 120s.")
    turn: float | None = option(None, finite_duration, "How often an order that moves by itself may stop gangs; measured: 60s.")
    victims: str = option("order", victims_rule, "Which gang is stopped for a job that ranks higher: order (the lowest rank), least-lost.")
    latency: float = option(0.0, finite_duration, "How long a decision takes in virtual time.", flag="--decision-latency")
    performance: PerformanceModel | str = option(
        "trace", name, "How fast gangs run: trace (as it lists), pairs (measured pairs), a model of an installed package, or FILE.py:MODEL."
    )
    executor: Executor | str = option("instant", name, "How orders are carried out: instant, acknowledged, measured, faulty:SEED.")
    seed: int = option(0, seed, "Seed of everything random.")
    track: tuple[int, int] | None = option(
        None, track, "Measure jobs LO:HI (HI too, unless the regime counts otherwise), and stop when they end."
    )
    warmup: float | str = option(0.0, warmup, "Leave out jobs that arrive earlier than this after the first; auto: by MSER-5.")
    until: float = option(math.inf, duration, "Stop at this time.")
    node_events: tuple[NodeEvent, ...] | str = option("", path_or_list, "A CSV file time,node,event: down, up, drain, join.", file="in")
    reserve: tuple[AdvanceWindow, ...] | str = option(
        "", windows, "Devices that are reserved in advance: nodes=2,from=1h,for=4h[,queue=Q][,user=U][,name=N]; several with ';'."
    )
    throughputs: ThroughputTable | str = option("", path, "Measured speeds of job types on device types (JSON, Gavel's layout).", file="in")
    scaling: str = option("listed", name, "Speeds at other sizes: listed (the truth), learned[:NOISE] from what jobs report.")
    across_nodes: bool = option(False, yes_or_no, "Gangs that span nodes run at the table's speeds for that.")
    profiles: Profiles | str = option(
        "", path, "A folder of measured profiles: Pollux' layout, or that of the regime or the model.", file="in"
    )
    prices: str = option("", amounts, "Money per device-hour: v100=0.74,k80=0.135, or a CSV or JSON file.", file="in", inline="=")
    carbon: str = option("", path, "Carbon intensity over time, g/kWh: a CSV file with a column for time.", file="in")
    electricity: str = option("", path, "Money per kWh: a number, or a CSV file with prices over time.", file="in", number=True)
    power: str = option("", amounts, "Watts busy/idle by device type: v100=300/60,k80=150/30, or a CSV file.", file="in", inline="=")
    series_start: str = option("", name_or_none, "Where in the series of --carbon and --electricity the run begins: hours, 5d, or a date.")
    device_speeds: str = option("", path, "How much slower each device is, by class of jobs: a CSV file gpu,node,varA,varB,...", file="in")
    locality: float = option(1.0, factor, "How many times longer steps take on several nodes, with --device-speeds.", settable=True)
    budget: float | None = option(None, duration_above_zero, "Wall-clock time that one decision may take; 60s for policies of your own.")
    checkpoint: str = option("", path, "Save the run in this file when it stops, where the regime can.", file="out", single=True)
    checkpoint_every: float = option(math.inf, duration_above_zero, "And whenever so much virtual time has passed.", single=True)
    resume: str = option("", path, "Go on with a run that --checkpoint saved.", file="in", single=True)

    def __post_init__(self) -> None:
        for known in OPTIONS.values():
            given = getattr(self, known.name)
            read = known.default if given is None or given is known.default else known.read(given, known.name)
            object.__setattr__(self, known.name, read)

    @staticmethod
    def of(given: Mapping[str, Any], base: RunSpec | None = None) -> RunSpec:
        """The options in `given`, the others as in `base`; an unknown one is refused with its nearest name."""
        for key in given:
            if key not in OPTIONS:
                raise UsageError(f"no option '{key}'", fix=near(key, OPTIONS))
        return RunSpec(**({name: getattr(base, name) for name in OPTIONS if base is not None} | dict(given)))


#: name -> option, in the order of help
OPTIONS: dict[str, RunOption] = {
    item.name: replace(item.metadata["option"], name=item.name, flag=item.metadata["option"].flag or f"--{item.name.replace('_', '-')}")
    for item in fields(RunSpec)
}
