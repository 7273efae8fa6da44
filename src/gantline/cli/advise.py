"""``gantline advise``: which policy, and would more GPUs help."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import Form, Sheet, say, show, show_json
from gantline.cli.many_runs import kept_or_not, report_failures, run_watched, show_means
from gantline.cli.options import Policies, RunOptions, Seeds, TraceName, Workers, seeds_of
from gantline.cli.outputs import check_page_target
from gantline.core.errors import UsageError
from gantline.lab.experiment.advice import SHOWN, grid_of, render_advice
from gantline.lab.experiment.api import advised, usual_seeds
from gantline.lab.experiment.grid import policies_of
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource
from gantline.lab.report.html import write_page
from gantline.live.watch.look_advice import LookedAt, as_trace
from gantline.live.watch.sources import look

app = App(
    name="advise",
    help_epilogue="""Where a log says when jobs really started, what happened is one more row. Examples:

  gantline advise accounting.txt --format sacct --cluster 16x8 --policy fifo,srtf,las
  gantline advise jobs.csv --cluster a100:16x8 --policy fifo,las --grow 10% --also a100:12x8 --prices a100=2.5
  gantline advise --watch slurm --policy srtf,las""",
)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AdviseOptions(RunOptions):
    """Which jobs and which cluster: those that are named, or those of a cluster that others schedule.

    Args:
        cluster: 32x4 (nodes x GPUs), v100:36,k80:36, v100:4x8@rack1, or a file (YAML, CSV).
        watch: Compare on the jobs of a cluster that others schedule, with the policy in force there: slurm or
            kubernetes; slurm:FILE for a recording (docs/watch.md).
    """

    cluster: str = ""
    watch: str = ""

    def looked_at(self, trace: str) -> LookedAt | None:
        """The jobs and the cluster of a look; None where a trace and a cluster are named."""
        if not self.watch:
            for given, what, where in ((trace, "no jobs are named", "TRACE"), (self.cluster, "no cluster is named", "--cluster")):
                if not given:
                    raise UsageError(what, where=where, fix="name a trace and --cluster, or give --watch slurm or --watch kubernetes")
            return None
        named = {"TRACE": trace, "--cluster": self.cluster, "--format": self.format, "--trace-set": self.trace_set}
        for where, value in named.items():
            if value:
                raise UsageError("a look shows the jobs and the cluster", where=where, fix=f"leave {where} out, or --watch")
        return as_trace(look(self.watch))

    def base_of(self, seen: LookedAt, folder: Path) -> Setting:
        """The setting for the jobs of a look, which lie beside the folder of runs; policies know their limits."""
        base = self.setting(TraceSource.saved_near(folder, seen.trace), seen.cluster)
        return replace(base, estimates="limit") if base.estimates == "oracle" else base


NOTHING_NAMED = AdviseOptions()


@app.default
def advise(
    trace: TraceName = "",
    /,
    *,
    policy: Policies,
    options: AdviseOptions = NOTHING_NAMED,
    grow: Annotated[str, Parameter(allow_leading_hyphen=True)] = "10%",
    also: list[str] | None = None,
    against: str = "",
    seeds: Seeds = None,
    workers: Workers = None,
    out: Path | None = None,
    page: Path | None = None,
    output: Form = "table",
) -> int:
    """Say which policy serves these jobs best, and whether a larger cluster would help.

    Args:
        also: Another cluster to try; may be repeated.
        out: Keep the runs in this folder.
        page: Write the answer, the clusters side by side and the figures as one HTML page.
        grow: How much larger the other cluster is; 0 for none.
        against: The policy to compare with; by default the first.
    """
    check_page_target(page, "--page")
    seen, chosen = options.looked_at(trace), policies_of(policy)
    with kept_or_not(out) as folder:
        runs = folder if out is not None else folder / "runs"
        base = options.base(trace) if seen is None else options.base_of(seen, runs)
        wanted = seeds_of(seeds, usual_seeds(base))
        grid = grid_of(base, chosen if seen is None else seen.beside_present(chosen), also or (), _share(grow), wanted)
        found = advised(base, grid, partial(run_watched, folder=runs, where=workers), against)
        if seen is not None:
            found = found.resting_on(seen.rests_on)
            for note in seen.notes:
                say(f"note: {note}")
        if page is not None:
            say(f"wrote {write_page(render_advice(found, base), page)}")
        if output == "table":
            show_means(found.sweep, [key for key in SHOWN if key != "money" or base.prices])
            print()
            print("\n".join(found.sentences))
        elif output == "csv":
            show(Sheet.of_frame(found.means), output)
        else:
            show_json({"advice": found.sentences, "means": found.means.to_dicts()})
        return report_failures(found.sweep)


def _share(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 10:
        raise UsageError(f"'{text}' is not a share", where="--grow", fix="write 10% or 0.1; --also takes another cluster, or a file of one")
    return value
