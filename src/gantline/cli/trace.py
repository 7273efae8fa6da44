"""``gantline trace``: import, check, describe, change and generate tables of jobs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.arguments import Settings, settings_of, signed_time_of, time_of
from gantline.cli.console import Form, Sheet, is_watched, say, show, show_json, show_object, show_text
from gantline.cli.options import TraceName, TraceOptions
from gantline.cli.outputs import check_table_target
from gantline.cli.plot import save_trace_figures
from gantline.core.errors import UsageError
from gantline.traces.check import check as find
from gantline.traces.check import repair as put_right
from gantline.traces.files.clusters import read_cluster
from gantline.traces.files.node_lists import cluster_text, read_node_list
from gantline.traces.generators import generate_as_set
from gantline.traces.generators.registry import summaries
from gantline.traces.importers import import_trace as read
from gantline.traces.importers.registry import importer_summaries
from gantline.traces.sample import sample as choose
from gantline.traces.sample import scale as change
from gantline.traces.sample import shift as move
from gantline.traces.sample import window as cut
from gantline.traces.stats import render
from gantline.traces.stats import stats as describe
from gantline.traces.trace import Trace
from gantline.traces.write import encode

app = App(
    name="trace", help_epilogue="OUT is a .csv, .jsonl or .parquet file (.gz may follow the first two); without it, CSV goes to stdout."
)
_FOUND = 1  # exit code of a check that found something

Source = Annotated[Path, Parameter(help="A table of jobs: CSV, JSON lines or Parquet, which may be compressed.")]
Out = Annotated[Path | None, Parameter(help="Where to write; without it, CSV goes to stdout.")]


def _listed(entries: dict[str, str]) -> str:
    width = max(map(len, entries))
    return "\n".join(f"  {name.ljust(width)}  {text}" for name, text in entries.items())


@app.command(name="import", help_epilogue=f"Formats:\n\n{_listed(importer_summaries())}")
def import_trace(
    format_: Annotated[str, Parameter(name="FORMAT")],
    source: Annotated[Path, Parameter(name="SRC")],
    out: Out = None,
    /,
    *,
    throughputs: Path | None = None,
    profiles: Path | None = None,
    set_: Settings = None,
) -> None:
    """Turn a published trace into a table of jobs; what was dropped or assumed is reported on stderr.

    Args:
        throughputs: A table of speeds: Gavel's (JSON) or ElasticFlow's (CSV).
        profiles: A folder of measured profiles, in the layout of the format's system.
        format_: The foreign format, from the list below.
        source: The file, or the folder, in that format.
    """
    tables = {"throughputs": throughputs, "profiles": profiles}
    given = dict(settings_of(set_)) | {name: str(path) for name, path in tables.items() if path is not None}
    _write(lambda: read(format_, source, given), out, source)


@app.command(help_epilogue="Formats: openb, pai, philly, sinfo (Slurm: sinfo -N -o '%N|%G|%c|%m'), mapa (links between GPUs).")
def cluster(
    format_: Annotated[str, Parameter(name="FORMAT")],
    source: Annotated[Path, Parameter(name="SRC")],
    out: Annotated[Path, Parameter(name="OUT")],
    /,
) -> None:
    """Turn a node list into a cluster.

    Args:
        format_: The format of the node list, from the list below.
        source: The node list.
        out: The YAML file that --cluster takes.
    """
    found = read_node_list(format_, source)
    out.write_text(cluster_text(found), encoding="utf-8")
    say(f"note: wrote {len(found.nodes)} nodes with {sum(node.gpus for node in found.nodes)} GPUs to {out}")


@app.command
def check(
    source: Source,
    /,
    *,
    repair: Path | None = None,
    cluster: str | None = None,
    output: Form = "table",
) -> int:
    """List every contradiction with file, line and field; exit code 1 if there is one.

    Args:
        repair: Write a copy in which everything that has one right answer is put right.
        cluster: Check too whether the jobs could have run there: 16x8, or a YAML file.
    """
    if repair is not None:
        if cluster is not None:
            raise UsageError("a contradiction between a trace and a cluster has no single repair", where="--repair", fix="leave one out")
        check_table_target(repair, "--repair", source)
        found = put_right(source, repair)
        for line in found:
            say(f"note: {line}")
        say(f"note: wrote {repair}")
        return _FOUND if any(line.startswith("left:") for line in found) else 0
    problems = find(source, read_cluster(cluster) if cluster is not None else None)
    if not problems and output == "table":
        say(f"note: {source} has no contradictions{f' and fits {cluster}' if cluster else ''}")
        return 0
    rows = [(p.file, p.line, p.field, p.what, p.fix, p.repairable) for p in problems]
    show(Sheet.of("file line field problem remedy repairable", rows), output)
    if problems:
        mended = sum(p.repairable for p in problems)
        cure = f"; --repair OUT puts {mended} right" if mended else "; --repair puts none of them right" if cluster is None else ""
        say(f"note: {len(problems)} problem{'s' * (len(problems) > 1)}{cure}")
    return _FOUND if problems else 0


@app.command
def stats(
    source: TraceName,
    /,
    *,
    gpus: int | None = None,
    plot: Path | None = None,
    output: Form = "table",
    options: TraceOptions | None = None,
) -> None:
    """Describe a trace: sizes, durations, arrivals, people.

    Args:
        gpus: Size of the cluster, for the offered load.
        plot: A folder for figures of sizes, durations and hours of the day (PNG).
    """
    trace = (options or TraceOptions()).load(source)
    found = describe(trace, gpus)
    if output == "json":
        show_json(found.as_dict())
    elif output == "table" and is_watched():
        show_text(render(found))
    else:
        show_object(found.as_dict(), output)
    if plot is not None:
        for path in save_trace_figures(trace, plot):
            say(f"note: wrote {path}")


@app.command
def convert(source: TraceName, out: Out = None, /, *, options: TraceOptions | None = None) -> None:
    """Write the same jobs in the format that OUT ends in."""
    _write(lambda: (options or TraceOptions()).load(source), out, source)


@app.command
def sample(
    source: TraceName,
    out: Out = None,
    /,
    *,
    jobs: int | None = None,
    fraction: float | None = None,
    seed: int = 0,
    options: TraceOptions | None = None,
) -> None:
    """Keep a random part of the jobs; arrivals stay, so the load falls with the count.

    Args:
        jobs: How many jobs to keep.
        fraction: Which part of the jobs to keep.
        seed: Seed of the choice.
    """
    if (jobs is None) == (fraction is None):
        raise UsageError("give either --jobs or --fraction", where="sample", fix="--jobs 1000, or --fraction 0.1")
    _write(lambda: choose((options or TraceOptions()).load(source), n=jobs, fraction=fraction, seed=seed), out, source)


@app.command
def scale(
    source: TraceName,
    out: Out = None,
    /,
    *,
    load: float,
    options: TraceOptions | None = None,
) -> None:
    """Let the same jobs arrive faster or slower.

    Args:
        load: 2 doubles the load, 0.5 halves it.
    """
    _write(lambda: change((options or TraceOptions()).load(source), load=load), out, source)


@app.command
def shift(
    source: TraceName,
    out: Out = None,
    /,
    *,
    by: Annotated[str, Parameter(allow_leading_hyphen=True)],
    options: TraceOptions | None = None,
) -> None:
    """Move all arrivals in time.

    Args:
        by: How much later: 90, 2h, 1d; a minus sign means earlier.
    """
    _write(lambda: move((options or TraceOptions()).load(source), by=signed_time_of(by, "--by")), out, source)


@app.command
def window(
    source: TraceName,
    out: Out = None,
    /,
    *,
    start: str = "0",
    end: str = "inf",
    options: TraceOptions | None = None,
) -> None:
    """Cut a window of time out of a trace.

    Args:
        start: The first arrival that counts; it becomes time 0.
        end: Arrivals from here on are left out.
    """
    first, last = time_of(start, "--start") or 0.0, time_of(end, "--end") or 0.0
    _write(lambda: cut((options or TraceOptions()).load(source), start=first, end=last), out, source)


@app.command(help_epilogue=f"Generators:\n\n{_listed(summaries())}\n\ndocs/workloads.md lists the settings.")
def generate(
    name: Annotated[str, Parameter(name="NAME")],
    out: Out = None,
    /,
    *,
    seed: int = 0,
    set_: Settings = None,
) -> None:
    """Generate a seeded workload.

    Args:
        seed: The same seed gives the same jobs.
        name: A generator from the list below.
    """
    _write(lambda: generate_as_set(name, seed, settings_of(set_)), out)


def _write(make: Callable[[], Trace], out: Path | None, source: str | Path = "") -> None:
    """Make a trace and write it to its file, or to stdout; what was dropped, assumed or changed goes to stderr."""
    check_table_target(out, "OUT", source)
    trace = make()
    for note in trace.notes:
        say(f"note: {note}")
    if out is None:
        sys.stdout.write(encode(trace.frame, ".csv").decode())
        return
    trace.save(out)
    say(f"note: wrote {len(trace)} jobs to {out}")
