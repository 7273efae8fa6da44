"""``gantline explain``: why a job waits, who is ahead of it, which change would start it, and when it is expected to start."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.live.connection import HomeOption
from gantline.cli.questions import Answer, Placement, Present, PresentSettings, Samples, Sigma, SnapshotFile, about_file, show_answer

app = App(
    name="explain",
    help_epilogue="""The policy and the engine are asked, now and with one thing changed, so the answer is what would happen. Examples:

  gantline explain 42
  gantline explain big --snapshot now.json --present srtf""",
)


@app.default
def explain(
    job: Annotated[str, Parameter(help="Its id.")],
    /,
    *,
    snapshot: SnapshotFile = None,
    present: Present = "",
    set_: Annotated[PresentSettings, Parameter(name="--set")] = None,
    placement: Placement = "first-free",
    samples: Samples = 40,
    sigma: Sigma = 0.5,
    home: HomeOption = None,
    output: Answer = "text",
) -> int:
    """Say why a job waits, who is ahead of it, which change would start it, and when it is expected to start."""
    if snapshot is not None:
        return show_answer(about_file("explain", snapshot, present, set_, placement, samples, sigma, job=job), output)
    from gantline.cli.live.connection import connect

    with connect(home) as client:
        return show_answer(client.explain(job, samples=samples, sigma=sigma), output)
