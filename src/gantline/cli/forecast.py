"""``gantline forecast``: when jobs are expected to start and to end."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.arguments import settings_of
from gantline.cli.live.connection import HomeOption
from gantline.cli.questions import Answer, Placement, Present, PresentSettings, Samples, Sigma, SnapshotFile, about_file, show_answer
from gantline.core.errors import UsageError

app = App(
    name="forecast",
    help_epilogue="""The present is rolled forward under the policy in force, each time with other amounts of work; nobody new arrives.
Half of the starts should lie before the P50, nine of ten before the P90; see the page on questions for how that is checked. Examples:

  gantline forecast
  gantline forecast big small --snapshot now.json --present srtf
  gantline forecast --check jobs.csv --cluster 4x8 --present fifo --estimates noisy:0.3""",
)


@app.default
def forecast(
    *jobs: Annotated[str, Parameter(help="Ids; by default all that wait or run.")],
    snapshot: SnapshotFile = None,
    check: Annotated[str, Parameter(help="Replay this table of jobs, forecast each on arrival, and count how many came true.")] = "",
    cluster: Annotated[str, Parameter(help="With --check: on which.", show_default=False)] = "",
    estimates: Annotated[str, Parameter(help="With --check: what the policy and the forecasts know of the work.")] = "noisy:0.3",
    present: Present = "",
    set_: Annotated[PresentSettings, Parameter(name="--set")] = None,
    placement: Placement = "first-free",
    samples: Samples = 40,
    sigma: Sigma = 0.5,
    home: HomeOption = None,
    output: Answer = "text",
) -> int:
    """Say when jobs are expected to start and to end: P50 and P90."""
    if check:
        return show_answer(_checked(check, cluster, estimates, present, set_, placement, samples, sigma), output)
    if snapshot is not None:
        return show_answer(about_file("forecast", snapshot, present, set_, placement, samples, sigma, jobs=list(jobs)), output)
    from gantline.cli.live.connection import connect

    with connect(home) as client:
        return show_answer(client.forecast(*jobs, samples=samples, sigma=sigma), output)


def _checked(
    trace: str, cluster: str, estimates: str, present: str, settings: list[str] | None, placement: str, samples: int, sigma: float
) -> dict[str, object]:
    from gantline.files.policies import load_policy
    from gantline.questions.calibration import check_forecasts
    from gantline.questions.forecast import Setup
    from gantline.questions.uncertainty import Uncertainty

    if not cluster or not present:
        raise UsageError("a table of jobs does not say where and how it runs", where="--check", fix="add --cluster and --present")
    policy, setup = load_policy(present, settings_of(settings)), Setup(placement, uncertainty=Uncertainty(sigma), samples=samples)
    found = check_forecasts(trace, cluster, policy, setup, estimates=estimates)
    return {**found.as_json(), "lines": found.lines()}
