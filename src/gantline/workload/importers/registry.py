"""Which foreign trace formats are known, and the options each one takes.

An importer is a function ``read(src, **options) -> Trace`` in a module of its own; a module is only imported when its
format is asked for. A new format needs one new file and one line here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from gantline.core.errors import NotFoundError, UsageError, near

if TYPE_CHECKING:
    from gantline.workload.trace import Trace

_HOME = "gantline.workload.importers"
IMPORTERS: Mapping[str, tuple[str, str]] = {
    "acme": (f"{_HOME}.acme:read", "Shanghai AI Laboratory's Acme: Seren and Kalos, language models (CSV)"),
    "blox": ("gantline.systems.blox.importer:read", "Blox workload: job_index, arrival_s, total_iterations, ... (CSV)"),
    "elasticflow": ("gantline.systems.elasticflow.importer:read", "ElasticFlow traces, raw or generated, with its table of speeds (CSV)"),
    "gaia": ("gantline.systems.gaia.importer:read", "GAIA's batch jobs on CPUs: arrival_time, length, cpus (CSV)"),
    "gavel": ("gantline.systems.gavel.importer:read", "Gavel and Shockwave traces: 10, 12 or 7 fields, tab separated"),
    "helios": (f"{_HOME}.helios:read", "SenseTime Helios cluster_log, and Lucid's logs (CSV)"),
    "irfsim": ("gantline.systems.allox.importer:read", "IRFsim / AlloX jobs: four lines a job, or the same as CSV"),
    "openb": (f"{_HOME}.openb:read", "Alibaba 2023 openb_pod_list (CSV)"),
    "pai": (f"{_HOME}.pai:read", "Alibaba PAI 2020 pai_task_table, with pai_job_table (CSV without header)"),
    "pal": ("gantline.systems.pal.importer:read", "PAL's workloads: job, gpus, submit_s, iterations, model (CSV)"),
    "philly": (f"{_HOME}.philly:read", "Microsoft Philly cluster_job_log (JSON)"),
    "philly-list": (f"{_HOME}.philly_list:read", "Plain list: timestamp, duration, num_gpus, gpu_time, cluster (CSV)"),
    "pollux": ("gantline.systems.pollux.importer:read", "Pollux and Sia workloads: name, time, application, num_replicas, batch_size"),
    "sacct": (f"{_HOME}.sacct:read", "Slurm accounting: sacct --parsable2"),
    "spot": (f"{_HOME}.spot:read", "Alibaba 2026 job_info_df of the spot GPU cluster (CSV)"),
    "swf": (f"{_HOME}.swf:read", "Standard Workload Format: 18 fields"),
    "tiresias": ("gantline.systems.tiresias.importer:read", "Tiresias traces in seconds, Muri traces in milliseconds (CSV)"),
}

#: what people call a format -> its name here
_ALSO_CALLED: Mapping[str, str] = {
    "slurm": "sacct", "microsoft": "philly", "msr": "philly", "sensetime": "helios", "alibaba": "pai", "alibaba-2020": "pai",
    "alibaba-2023": "openb", "alibaba-2026": "spot", "adaptdl": "pollux", "sia": "pollux", "shockwave": "gavel", "muri": "tiresias",
    "allox": "irfsim", "seren": "acme", "kalos": "acme", "shanghai": "acme",
}  # fmt: skip


@dataclass(frozen=True)
class ImportOption:
    """One option of an importer: its type, its default and what it does."""

    name: str
    type: Any
    default: Any
    help: str


def find_importer(name: str) -> Callable[..., Trace]:
    """The function that reads the format ``name``."""
    if name not in IMPORTERS:
        called = _ALSO_CALLED.get(name.lower())
        raise NotFoundError(f"no trace format '{name}'", fix=f"did you mean '{called}'?" if called else near(name, IMPORTERS))
    module, _, function = IMPORTERS[name][0].partition(":")
    found: Callable[..., Trace] = getattr(import_module(module), function)
    return found


def import_options(name: str) -> tuple[ImportOption, ...]:
    """The options that the format ``name`` takes."""
    function = find_importer(name)
    hints = get_type_hints(function, include_extras=True)
    options = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            kind, *notes = get_args(hints[parameter.name])
            options.append(ImportOption(parameter.name, kind, parameter.default, " ".join(map(str, notes))))
    return tuple(options)


def import_trace(name: str, src: str | Path, options: Mapping[str, Any] | None = None) -> Trace:
    """Read ``src`` in the format ``name``; option values may be text, as on a command line."""
    function = find_importer(name)
    known = {option.name: option for option in import_options(name)}
    given: dict[str, Any] = {}
    for key, value in (options or {}).items():
        plain = key.replace("-", "_")
        if plain not in known:
            fix = near(plain, known) if known else "it takes no options"
            raise UsageError(f"format '{name}' has no option '{key}'", fix=fix)
        given[plain] = _convert(name, known[plain], value)
    return function(Path(src), **given)


def _convert(name: str, option: ImportOption, value: Any) -> Any:
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(option.type).validate_python(value)
    except ValidationError as error:
        what = f"option '{option.name}' of format '{name}': {error.errors()[0]['msg']}, not '{value}'"
        raise UsageError(what, fix=option.help) from error
