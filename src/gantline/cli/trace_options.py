"""Which jobs: a table, a foreign log or a generator, wherever a command takes a trace."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from gantline.cli.arguments import settings_of
from gantline.core.errors import NotFoundError, near

if TYPE_CHECKING:
    from gantline.lab.experiment.source import TraceSource
    from gantline.traces.trace import Trace

TraceName = Annotated[str, Parameter(help="A table of jobs, a log in a foreign --format, or the name of a generator ('day').")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """What a trace is, where its name does not say it all."""

    format: Annotated[str | None, Parameter(help="The foreign format of the trace, as in 'gantline trace import'.")] = None
    trace_set: Annotated[
        list[str] | None, Parameter(negative="", help="A setting of the generator or an option of the format, key=value; may be repeated.")
    ] = None

    def source(self, trace: str) -> TraceSource:
        """Where the jobs come from."""
        from gantline.lab.experiment.source import TraceSource
        from gantline.traces.generators.registry import generator_names, is_generator
        from gantline.traces.importers.registry import find_importer

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
