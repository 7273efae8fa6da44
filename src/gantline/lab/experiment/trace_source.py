"""Where the jobs of a run come from: a trace file, a foreign trace, or a generator with its settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.core.fields import mapping, number, plain_values, text, whole
from gantline.lab.experiment.digest import file_digest
from gantline.registry import own_systems
from gantline.traces.generators import generate_as_set
from gantline.traces.generators.registry import generator_names, is_generator, load_of_every_seed
from gantline.traces.importers import import_trace
from gantline.traces.importers.registry import import_options
from gantline.traces.sample import scale
from gantline.traces.trace import Trace

_FILE_KEYS: dict[str, Callable[[Any, str], Any]] = {"file": text, "format": text, "options": mapping, "scale": number}
_MADE_KEYS: dict[str, Callable[[Any, str], Any]] = {"generate": text, "settings": mapping, "seed": whole, "scale": number}
_KEPT_TRACES = 8


@dataclass(frozen=True)
class TraceSource:
    """A `file` (in Gantline's own columns, or in a foreign `format`) or a `generator`, with options or settings.

    A generator draws with its own `seed`, or with the run's when it has none. `scale` multiplies the load by bringing
    the arrivals closer together.
    """

    file: str = ""
    format: str = ""
    generator: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    scale: float = 1.0

    def __post_init__(self) -> None:
        if bool(self.file) == bool(self.generator):
            raise UsageError("needs a file or a generator", where="trace", fix="write file: jobs.csv or generate: philly")
        if self.settings and self.file and not self.format:
            raise UsageError("options belong to a foreign format", where="trace", fix="name the format of the file")
        if not self.scale > 0:
            raise UsageError(f"scale {self.scale:g} is not above 0", where="trace", fix="2 doubles the load, 0.5 halves it")

    @classmethod
    def read(cls, given: str | Mapping[str, Any]) -> TraceSource:
        """A source from a name (of a generator, else of a file) or from the mapping that `to_dict` gives."""
        if isinstance(given, str):
            return cls(generator=given) if is_generator(given) else cls(file=given)
        known = _MADE_KEYS if "generate" in given else _FILE_KEYS
        for key in given:
            if key not in known:
                raise UsageError(f"unknown key '{key}'", where="trace", fix=near(str(key), known))
        values = {key: known[key](value, f"trace: {key}") for key, value in given.items() if value is not None}
        name = values.pop("generate", "")
        if name and not is_generator(name):
            raise NotFoundError(f"no generator '{name}'", where="trace: generate", fix=near(name, generator_names()))
        options = values.pop("options", {})
        return cls(**({"generator": name, "settings": options} | values))

    @classmethod
    def saved_near(cls, folder: Path, trace: Trace, number: int = 0) -> TraceSource:
        """Jobs that come as a value, written beside the folder, which holds nothing but runs."""
        return cls(file=str(trace.save(folder.with_name(f"{folder.name}-trace{number or ''}.parquet"))))

    def to_dict(self) -> dict[str, Any]:
        """The source as a plain mapping, without what is not set."""
        found: dict[str, Any]
        if self.generator:
            found = {"generate": self.generator, "settings": plain_values(self.settings), "seed": self.seed}
        else:
            found = {"file": self.file, "format": self.format, "options": plain_values(self.settings)}
        found["scale"] = None if self.scale == 1.0 else self.scale
        return {key: value for key, value in found.items() if value not in (None, "", {})}

    def with_load(self, given: Any) -> TraceSource:
        """At another load: what a generator calls its load, or a factor on the arrivals of a file."""
        load = number(given, "load")
        if self.generator:
            return replace(self, settings={**self.settings, "load": load})
        return replace(self, scale=load)

    def with_value(self, name: str, value: Any) -> TraceSource:
        """With another value of one of its keys, or of one of the generator's settings or the format's options."""
        known = _MADE_KEYS if self.generator else _FILE_KEYS
        if name in ("scale", "seed") and name in known:
            return replace(self, **{name: known[name](value, f"trace.{name}")})
        return replace(self, settings={**self.settings, name: value})

    def with_throughputs(self, path: str) -> TraceSource:
        """With the run's table of throughputs, if this source makes seconds of steps by one and names no other."""
        if not path or "throughputs" in self.settings or path.endswith((".csv", ".csv.gz")):  # importers read the JSON layout alone
            return self
        if not any(name in system.in_steps for system in own_systems() for name in (self.format, self.generator)):
            return self
        return replace(self, settings={**self.settings, "throughputs": path})

    def files(self) -> dict[str, str]:
        """The files that the jobs depend on, each under a name of its part."""
        found = {"trace": self.file} if self.file else {}
        return found | {f"trace.{name}": str(self.settings[name]) for name in self.path_options() if self.settings.get(name)}

    def path_options(self) -> set[str]:
        """The options of the format that name files."""
        if not self.format or not self.settings:
            return set()
        return {option.name for option in import_options(self.format) if Path in (option.type, *get_args(option.type))}

    def load_of_every_seed(self) -> float | None:
        """The load that the generator stretches every seed to; None where seeds differ in it, or the jobs are fixed."""
        if not self.generator or self.seed is not None:
            return None
        found = load_of_every_seed(self.generator, self.settings)
        return None if found is None else found * self.scale

    def load(self, seed: int) -> Trace:
        """The trace; the last few stay in memory, because policies are compared on the same jobs."""
        drawn = 0 if self.file else seed if self.seed is None else self.seed
        digests = tuple(file_digest(path) for path in self.files().values())
        return _loaded(json.dumps(self.to_dict(), sort_keys=True), drawn, digests)


@lru_cache(maxsize=_KEPT_TRACES)
def _loaded(described: str, seed: int, digests: tuple[str, ...]) -> Trace:
    """The trace of a source that is given as text, because a key of the cache must not change."""
    source = TraceSource.read(json.loads(described))
    trace = _read(source, seed)
    if source.scale == 1.0:
        return trace
    return scale(trace, load=source.scale)


def _read(source: TraceSource, seed: int) -> Trace:
    if source.generator:
        return generate_as_set(source.generator, seed, source.settings)
    if source.format:
        return import_trace(source.format, source.file, source.settings)
    return Trace.load(source.file)
