"""``gantline explain``: why a job waits, which jobs are ahead of it, which change would start it, and when it is expected to start."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import say
from gantline.cli.questions import NOTHING_SAID, PresentSettings, QuestionOptions, show_answer

app = App(
    name="explain",
    help_epilogue="""A service says at once why the job waits, its place and what is ahead of it. --wait adds when it will start and which
change would start it now: the policy and the engine are asked, so that is what would happen. Examples:

  gantline explain 42
  gantline explain 42 --wait
  gantline explain big --snapshot now.json --present srtf""",
)


@app.default
def explain(
    job: Annotated[str, Parameter(help="Its id.")],
    /,
    *,
    wait: Annotated[bool, Parameter(negative="", help="Wait for the forecast, and for what would start it.")] = False,
    set_: Annotated[PresentSettings, Parameter(name="--set")] = None,
    options: QuestionOptions = NOTHING_SAID,
) -> int:
    """Say why a job waits, which jobs are ahead of it, which change would start it, and when it is expected to start."""
    if options.about_others:
        return show_answer(options.about_file("explain", set_, job=job), options.output)
    from gantline.cli.live.connection import connect

    with connect(options.home) as client:
        found = client.explain(job, wait=wait, **options.asked())
        if (found["forecast"] or {}).get("status") == "pending":
            say(f"note: the forecast is being worked out: gantline explain {job} --wait")
        return show_answer(found, options.output)
