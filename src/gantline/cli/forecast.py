"""``gantline forecast``: when jobs are expected to start and to end."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.arguments import settings_of
from gantline.cli.questions import NOTHING_SAID, PresentSettings, QuestionOptions, show_answer
from gantline.core.errors import UsageError

app = App(
    name="forecast",
    help_epilogue="""The present is rolled forward under the policy in force, each time with other amounts of work. No new jobs arrive,
unless --newcomers says how or Slurm is watched; the last line says which it was. Where profiles have single measurements, starts, stops and
speeds are drawn from them, too, and means with the middle nine tenths of the draws are shown.
Half of the starts should lie before the P50, nine of ten before the P90; see the page on questions for how that is checked. Examples:

  gantline forecast
  gantline forecast --newcomers past
  gantline forecast --learn past
  gantline forecast --snapshot now.json --present srtf --profiles profiles.json --draws 500
  gantline forecast big small --snapshot now.json --present srtf
  gantline forecast --check jobs.csv --cluster 4x8 --present fifo --estimates noisy:0.3""",
)


@app.default
def forecast(
    *jobs: Annotated[str, Parameter(help="Ids; by default all that wait or run.")],
    check: Annotated[str, Parameter(help="Replay this table of jobs, forecast each on arrival, and count how many came true.")] = "",
    cluster: Annotated[str, Parameter(help="With --check: on which.", show_default=False)] = "",
    estimates: Annotated[str, Parameter(help="With --check: what the policy and the forecasts know of the work.")] = "noisy:0.3",
    learn: Annotated[
        str,
        Parameter(
            help="Stretch forecasts as those of these jobs would have been late: a table, or 'past' for the service's own.",
            show_default=False,
        ),
    ] = "",
    set_: Annotated[PresentSettings, Parameter(name="--set")] = None,
    options: QuestionOptions = NOTHING_SAID,
) -> int:
    """Say when jobs are expected to start and to end: P50 and P90."""
    if check and options.about_others:
        raise UsageError("a table is replayed, and nothing else is asked about", where="--check", fix="leave --snapshot and --watch out")
    if check:
        return show_answer(_checked(check, cluster, estimates, set_, options), options.output)
    if options.about_others:
        rows = {"learn": replace(options, newcomers=learn).coming()} if learn else {}
        return show_answer(options.about_file("forecast", set_, jobs=list(jobs), **rows), options.output)
    from gantline.cli.live.connection import connect

    with connect(options.home) as client:
        if learn not in ("", "past"):
            raise UsageError("the service has only its own past", where="--learn", fix="write --learn past")
        return show_answer(client.forecast(*jobs, learn=bool(learn), **options.asked()), options.output)


def _checked(trace: str, cluster: str, estimates: str, settings: list[str] | None, options: QuestionOptions) -> dict[str, object]:
    from gantline.lab.questions.calibration import check_forecasts
    from gantline.lab.questions.forecast import Setup
    from gantline.simulator.uncertainty import Uncertainty
    from gantline.traces.files.policies import load_policy

    options.refuse_profiles("a table is replayed without profiles")
    if not cluster or not options.present:
        raise UsageError("a table of jobs does not say where and how it runs", where="--check", fix="add --cluster and --present")
    policy = load_policy(options.present, settings_of(settings))
    setup = Setup(options.placement or None, uncertainty=Uncertainty(options.sigma), samples=options.samples)
    named = trace if options.newcomers == "past" else options.newcomers
    coming = replace(options, newcomers=named).coming() if named not in ("", "none") else ()
    found = check_forecasts(trace, cluster, policy, setup, coming=coming, estimates=estimates)
    text = "with newcomers as in the table" if coming else "no new jobs"
    return {**found.as_json(), "lines": [*found.lines(), f"note: {text}"]}
