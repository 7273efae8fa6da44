"""``gantline advise``: which policy, and would more GPUs help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import Form, say, show_json
from gantline.cli.run_options import Policies, RunOptions, Seeds, Workers, seeds_of
from gantline.cli.trace_options import TraceName
from gantline.core.errors import UsageError

_SEEDS_OF_A_GENERATOR = 5

app = App(
    name="advise",
    help_epilogue="""Where a log says when jobs really started, what happened is one more row. Examples:

  gantline advise accounting.txt --format sacct --cluster 16x8 --policy fifo,srtf,las
  gantline advise jobs.csv --cluster a100:16x8 --policy fifo,las --grow 10% --also a100:12x8 --prices a100=2.5""",
)


@app.default
def advise(
    trace: TraceName,
    /,
    *,
    policy: Policies,
    options: RunOptions,
    grow: Annotated[str, Parameter(help="How much larger the other cluster is; 0 for none.")] = "10%",
    also: Annotated[list[str] | None, Parameter(negative="", help="Another cluster to try; may be repeated.")] = None,
    against: Annotated[str, Parameter(help="The policy to compare with; by default the first.", show_default=False)] = "",
    seeds: Seeds = None,
    workers: Workers = None,
    out: Annotated[Path | None, Parameter(help="Keep the runs in this folder.")] = None,
    page: Annotated[Path | None, Parameter(help="Write the answer, the clusters side by side and the figures as one HTML page.")] = None,
    output: Form = "table",
) -> int:
    """Say which policy serves these jobs best, and whether a larger cluster would help."""
    from gantline.cli.means_table import show_means
    from gantline.cli.sweeping import kept_or_not, report_failures, run_watched, with_what_happened
    from gantline.experiment.advice import SHOWN, advise, grid_of
    from gantline.experiment.grid import policies_of
    from gantline.experiment.remarks import usable

    base = options.base(trace)
    wanted = seeds_of(seeds, _SEEDS_OF_A_GENERATOR if base.trace.generator else 1)
    grid = grid_of(base, policies_of(policy), also or (), _share(grow), wanted)
    with kept_or_not(out) as folder:
        sweep = with_what_happened(usable(run_watched(grid.cases(), folder, workers)), base)
        found = advise(sweep, base, against=against)
        if page is not None:
            from gantline.experiment.advice_page import render_advice
            from gantline.report.html import write_page

            say(f"wrote {write_page(render_advice(found, base), page)}")
        if output == "table":
            show_means(sweep, [key for key in SHOWN if key != "money" or base.prices])
            print()
            print("\n".join(found.sentences))
        else:
            show_json({"advice": found.sentences, "means": found.means.to_dicts()})
        return report_failures(sweep)


def _share(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 10:
        raise UsageError(f"'{text}' is not a share", where="--grow", fix="write 10% or 0.1; --also takes another cluster, or a file of one")
    return value
