"""Which foreign trace formats are known, and the options each one takes.

An importer is a function ``read(src, **options) -> Trace``; its module is only imported when the format is asked for. A new format needs
a function and one line here, or in the manifest of its system.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.registry import Register, of_kind, own_systems

Made = TypeVar("Made")
_HOME = "gantline.traces.importers"
_IMPORTERS = Register(
    "importers",
    {
        "acme": (f"{_HOME}.published:acme", "Shanghai AI Laboratory's Acme: Seren and Kalos, language models (CSV)"),
        "helios": (f"{_HOME}.published:helios", "SenseTime Helios cluster_log (CSV)"),
        "openb": (f"{_HOME}.published:openb", "Alibaba 2023 openb_pod_list (CSV)"),
        "pai": (f"{_HOME}.pai:read", "Alibaba PAI 2020 pai_task_table, with pai_job_table (CSV without header)"),
        "philly": (f"{_HOME}.philly:read", "Microsoft Philly cluster_job_log (JSON)"),
        "philly-list": (f"{_HOME}.published:philly_list", "Plain list: timestamp, duration, num_gpus, gpu_time, cluster (CSV)"),
        "sacct": (f"{_HOME}.slurm:read", "Slurm accounting: sacct --parsable2"),
        "spot": (f"{_HOME}.published:spot", "Alibaba 2026 job_info_df of the spot GPU cluster (CSV)"),
        "swf": (f"{_HOME}.swf:read", "Standard Workload Format: 18 fields"),
    },
)

#: what people call a format -> its name here
_ALSO_CALLED: Mapping[str, str] = {
    "slurm": "sacct", "microsoft": "philly", "msr": "philly", "sensetime": "helios", "alibaba": "pai", "alibaba-2020": "pai",
    "alibaba-2023": "openb", "alibaba-2026": "spot", "seren": "acme", "kalos": "acme", "shanghai": "acme",
}  # fmt: skip


@dataclass(frozen=True)
class ImportOption:
    """One option of an importer: its type, its default and what it does."""

    name: str
    type: Any
    default: object
    help: str


def importer_names() -> list[str]:
    """All formats, our own and those of installed packages."""
    return sorted(_IMPORTERS.entries())


def importer_summaries() -> dict[str, str]:
    """Our own formats, each in half a line."""
    own = _IMPORTERS.own()
    return {name: own[name].summary for name in sorted(own)}


def find_importer(name: str) -> Callable[..., object]:
    """The function that reads the format ``name``."""
    if _IMPORTERS.find(name) is None:
        also_called = {**_ALSO_CALLED, **{word: known for system in own_systems() for word, known in system.also_called.items()}}
        called = also_called.get(name.lower())
        fix = f"did you mean '{called}'?" if called else near(name, importer_names())
        raise NotFoundError(f"no trace format '{name}'", fix=fix)
    found: Callable[..., object] = _IMPORTERS.load(name)
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


def read_as(name: str, src: str | Path, options: Mapping[str, object], kind: type[Made]) -> Made:
    """What the importer of the format ``name`` makes of ``src``; option values may be text, as on a command line."""
    function = find_importer(name)
    known = {option.name: option for option in import_options(name)}
    given: dict[str, object] = {}
    for key, value in options.items():
        plain = key.replace("-", "_")
        if plain not in known:
            fix = near(plain, known) if known else "it takes no options"
            raise UsageError(f"format '{name}' has no option '{key}'", fix=fix)
        given[plain] = _convert(name, known[plain], value)
    return of_kind(function(Path(src), **given), kind, f"importer '{name}'")


def _convert(name: str, option: ImportOption, value: Any) -> Any:
    try:
        return TypeAdapter(option.type).validate_python(value)
    except ValidationError as error:
        what = f"option '{option.name}' of format '{name}': {error.errors()[0]['msg']}, not '{value}'"
        raise UsageError(what, fix=option.help) from error
