"""``gantline saturate``: the load at which a policy no longer keeps up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from gantline.cli.console import Column, Form, Sheet, show, show_json
from gantline.cli.run_options import Policies, RunOptions, Seeds, Workers, seeds_of
from gantline.cli.trace_options import TraceName
from gantline.core.errors import UsageError

if TYPE_CHECKING:
    from gantline.lab.experiment.saturation import Saturation

app = App(
    name="saturate",
    help_epilogue="""A load is a factor on the arrivals of a file, or what a generator calls its load. Examples:

  gantline saturate steady --cluster 16x8 --policy fifo,srtf --between 0.3:1.1
  gantline saturate blox --trace-set jobs=4000 --cluster 32x4 --policy las --by trace.jobs_per_hour --between 4:12 --tolerance 0.2""",
)


@app.default
def saturate(
    trace: TraceName,
    /,
    *,
    policy: Policies,
    options: RunOptions,
    between: Annotated[str, Parameter(help="LOW:HIGH, a load that is sustained and one that is not.")] = "0.2:1.2",
    tolerance: Annotated[float, Parameter(help="How close the two may come, for every seed.")] = 0.05,
    by: Annotated[str, Parameter(help="What sets the load: load, trace.scale, trace.jobs_per_hour, ...")] = "load",
    seeds: Seeds = None,
    workers: Workers = None,
    out: Annotated[Path | None, Parameter(help="Keep the runs in this folder; a search that was stopped goes on from there.")] = None,
    output: Form = "table",
) -> None:
    """Search for the load at which a policy saturates."""
    from gantline.cli.sweeping import kept_or_not, run_watched
    from gantline.lab.experiment.grid import policies_of
    from gantline.lab.experiment.saturation import find_saturation, runner
    from gantline.lab.report.metrics import BY_KEY
    from gantline.lab.report.numbers import spell

    low, high = _range(between)
    base = options.base(trace)
    found = []
    with kept_or_not(out) as folder:
        for choice in policies_of(policy):
            run_all = runner(folder, lambda cases, place: run_watched(cases, place, workers))
            search = {"low": low, "high": high, "tolerance": tolerance, "seeds": seeds_of(seeds, 5), "by": by}
            found.append(find_saturation(base, choice, run_all, **search))  # type: ignore[arg-type]
    if output == "json":
        show_json([_as_json(one) for one in found])
        return
    columns = (
        Column("policy"),
        Column("load", True, lambda value: f"{value:g}"),
        Column("runs", True),
        Column("steady runs", True, lambda value: f"{100 * value:.0f} %"),
        Column("mean queue", True, lambda value: spell(BY_KEY["queue_mean"], value)),
        Column("mean JCT", True, lambda value: spell(BY_KEY["jct_mean"], value)),
    )
    show(Sheet(columns, [(one.policy, *row) for one in found for row in one.tried.rows()]), output)
    if output == "table":
        for one in found:
            print(one)


def _as_json(one: Saturation) -> dict[str, object]:
    """Plain values; bounds that are not known are null."""
    load = one.load
    known = {"load": load.value, "low": load.low, "high": load.high, "confidence": load.confidence, "seeds": load.samples}
    return {"policy": one.policy, **known, "below": one.below, "above": one.above, "tried": one.tried.to_dicts()}


def _range(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise UsageError(f"'{text}' is not a range of loads", where="--between", fix="write 0.2:1.2") from None
    return low, high
