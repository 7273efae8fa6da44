"""``gantline forecast``: when jobs are expected to start and to end."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.questions import Answer, Home, Placement, Present, PresentSettings, Samples, Sigma, SnapshotFile, about_file, show_answer

app = App(
    name="forecast",
    help_epilogue="""The present is rolled forward under the policy in force, each time with other amounts of work; nobody new arrives.
Half of the starts should lie before the P50, nine of ten before the P90; see the page on questions for how that is checked. Examples:

  gantline forecast
  gantline forecast big small --snapshot now.json --present srtf""",
)


@app.default
def forecast(
    *jobs: Annotated[str, Parameter(help="Ids; by default all that wait or run.")],
    snapshot: SnapshotFile = None,
    present: Present = "",
    set_: Annotated[PresentSettings, Parameter(name="--set")] = None,
    placement: Placement = "first-free",
    samples: Samples = 40,
    sigma: Sigma = 0.5,
    home: Home = None,
    output: Answer = "text",
) -> int:
    """Say when jobs are expected to start and to end: P50 and P90."""
    if snapshot is not None:
        return show_answer(about_file("forecast", snapshot, present, set_, placement, samples, sigma, jobs=list(jobs)), output)
    from gantline.cli.live import client_of

    return show_answer(client_of(home).forecast(list(jobs), samples=samples, sigma=sigma), output)
