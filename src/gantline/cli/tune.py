"""``gantline tune``: parameters of a policy by Optuna, on several workloads, and how they do on workloads that were held back."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.arguments import PolicyName, settings_of
from gantline.cli.console import Column, Form, Sheet, say, show, show_json
from gantline.cli.many_runs import write_figures
from gantline.cli.options import RunOptions, Seeds, Workers, seeds_of
from gantline.cli.progress import counted
from gantline.lab.experiment.tuning.space import read_space
from gantline.lab.experiment.tuning.tune import SEEDS, tune_settings
from gantline.lab.experiment.tuning.tuned import Tuned, charts_of_search
from gantline.simulator.objective import parse_objectives

_SHOWN = 10  # trials in the table for people

app = App(
    name="tune",
    help_epilogue="""Needs pip install 'gantline[tune]'. The same command goes on after a stop, and with more --trials. Examples:

  gantline tune tiresias --trace philly --cluster 16x8 --objective mean-jct --set limits.0=600:36000:log --trials 100
  gantline tune las --trace a.csv --trace b.csv --trace c.csv --cluster 32x4 --objective mean-jct,worst-rho --set service=time,gpu-time
  gantline simulate jobs.csv --cluster 32x4 --policy tuning/best.yaml""",
)


@app.default
def tune(
    policy: PolicyName,
    /,
    *,
    trace: list[str],
    options: RunOptions,
    set_: Annotated[list[str], Parameter(name="--set")],
    objective: str = "mean-jct",
    trials: int = 100,
    seeds: Seeds = None,
    hold_back: float = 0.4,
    tuning_seed: int = 0,
    confidence: float = 0.95,
    workers: Workers = None,
    out: Path = Path("tuning"),
    output: Form = "table",
) -> int:
    """Search for the parameters of a policy that make an objective small on some workloads, and try them on others.

    Args:
        trace: A table of jobs, a log in a foreign --format, or a generator; may be repeated.
        objective: mean-jct, p95-jct, responsiveness, worst-rho, deadlines, makespan, dollars, kwh, or a sum such as
            0.7*mean-jct+0.3*worst-rho; several with commas make a front.
        trials: How many settings to try in all.
        hold_back: The share of the workloads that the search does not see; the end of a single file.
        tuning_seed: Of the search, and of the choice of what is held back.
        confidence: Of the interval of the gain, 0.99 at most.
        out: The folder of the search; one that exists is gone on with.
        set_: What to search: NAME=LOW:HIGH, NAME=LOW:HIGH:log, NAME=A,B (lists: NAME=1,2;3,4, or NAME.0=LOW:HIGH for
            the first number of a list); NAME=VALUE stays. May be repeated.
    """
    wanted = parse_objectives(objective, "--objective")
    space = read_space(policy, settings_of(set_))
    bases = [options.base(one) for one in trace]
    usual_seeds = SEEDS if any(base.trace.generator for base in bases) else 1
    count = len(os.sched_getaffinity(0)) if workers is None else workers
    with counted("trials") as progress:
        try:
            found = tune_settings(
                space,
                wanted,
                bases,
                out,
                trials=trials,
                seeds=seeds_of(seeds, usual_seeds),
                hold_back=hold_back,
                seed=tuning_seed,
                confidence=confidence,
                workers=count,
                on_trial=progress,
            )
        except KeyboardInterrupt:
            say(f"stopped; what was tried is kept in {out}: the same command goes on from there")
            raise
    write_figures(charts_of_search(found), out / "figures")
    _show(found, output)
    for text in found.failures:
        say(f"failed: {text}")
    say(f"the settings that won are in {found.file}, for --policy")
    return 0


def _show(found: Tuned, form: str) -> None:
    """The best trials and the sentences for people, everything for programs."""
    frame = found.frame
    scores = [name for name in frame.columns if name.startswith("score")]
    if form == "csv":
        show(Sheet.of_frame(frame), form)
        return
    if form == "json":
        gains = [
            {"objective": str(one.objective), "seen": one.seen.__dict__, "held_back": one.held_back.__dict__ if one.held_back else None}
            for one in found.gains
        ]
        best = {"trial": found.best.number, "settings": dict(found.best.settings), "file": str(found.file)}
        show_json({"best": best, "gains": gains, "sentences": found.sentences, "trials": frame.to_dicts()})
        return
    rows = sorted(frame.rows(named=True), key=lambda row: math.inf if row["failure"] else sum(row[name] for name in scores))
    columns = [name for name in frame.columns if name != "failure" and (name != "front" or len(scores) > 1)]
    spelled = {name: _number for name in columns if frame[name].dtype.is_float()}
    shown = tuple(Column(name, right=name in spelled, spell=spelled.get(name)) for name in columns)
    show(Sheet(shown, [[row[name] for name in columns] for row in rows[:_SHOWN]]), "table")
    print()
    for sentence in found.sentences:
        print(sentence)


def _number(value: float) -> str:
    return "–" if value != value else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
