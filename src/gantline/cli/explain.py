"""``gantline explain``: why a job waits, who is ahead of it, which change would start it, and when it is expected to start."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.questions import NOTHING_SAID, PresentSettings, QuestionOptions, show_answer

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
    set_: Annotated[PresentSettings, Parameter(name="--set")] = None,
    options: QuestionOptions = NOTHING_SAID,
) -> int:
    """Say why a job waits, who is ahead of it, which change would start it, and when it is expected to start."""
    if options.snapshot is not None:
        return show_answer(options.about_file("explain", set_, job=job), options.output)
    from gantline.cli.live.connection import connect

    with connect(options.home) as client:
        return show_answer(client.explain(job, **options.asked()), options.output)
