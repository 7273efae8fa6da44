"""``gantline what-if``: the present queue, or the past, under another policy, with more devices or without a node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from gantline.cli.arguments import Settings, settings_of
from gantline.cli.questions import NOTHING_SAID, PresentSettings, QuestionOptions, show_answer
from gantline.core.errors import UsageError

_REPLICAS = 20  # of a history, at most

app = App(
    name="what-if",
    help_epilogue="""Both futures are rolled forward with the same draws of work, so that differences are the policy's. Examples:

  gantline what-if --job job.yaml
  gantline what-if --policy srtf
  gantline what-if --add 1x4 --snapshot now.json --present fifo
  gantline what-if --policy las --history jobs.csv --cluster 4x8 --present fifo""",
)


@app.default
def what_if(
    *,
    policy: Annotated[str, Parameter(help="The other policy; by default the one in force.", show_default=False)] = "",
    set_: Settings = None,
    add: Annotated[str, Parameter(help="Nodes to add, such as 1x4 or v100:2x8.", show_default=False)] = "",
    lose: Annotated[list[str] | None, Parameter(negative="", help="A node to lose; may be repeated.")] = None,
    job: Annotated[Path | None, Parameter(help="Say when this job (a YAML file) would start if it were submitted now.")] = None,
    history: Annotated[Path | None, Parameter(help="Ask about this table of past jobs instead of the present queue.")] = None,
    past: Annotated[bool, Parameter(negative="", help="Ask about the service's own past instead of the present queue.")] = False,
    cluster: Annotated[str, Parameter(help="On which the history ran.", show_default=False)] = "",
    present_set: Annotated[PresentSettings, Parameter(name="--present-set")] = None,
    options: QuestionOptions = NOTHING_SAID,
) -> int:
    """Say how the queue, or the past, would fare under another policy, with more devices or without a node."""
    other = {"other": policy, "other_settings": settings_of(set_)} if policy else {}
    change = {**other, "add": add, "lose": lose or []}
    if job is not None:
        return _about_job(job, change, options)
    if options.about_others and (history is not None or past):
        raise UsageError("a question is about the past or about the present", where="what-if", fix="leave --snapshot and --watch out")
    if history is not None:
        return show_answer(_about_past(history, cluster, present_set, policy, set_, add, lose or [], options), options.output)
    if options.about_others:
        return show_answer(options.about_file("what-if", present_set, **change), options.output)
    from gantline.cli.live.connection import connect

    if set_ and (past or not policy):
        fix = "leave it out" if past else "name the policy: --policy las"
        raise UsageError("parameters are those of another policy for the present queue", where="--set", fix=fix)
    with connect(options.home) as client:
        if past:
            options.refuse_profiles("the past is simulated without profiles")
            count = min(options.samples or _REPLICAS, _REPLICAS)
            return show_answer(client.past_what_if(policy, add=add, lose=lose or (), replicas=count), options.output)
        return show_answer(client.what_if(policy, add=add, lose=lose or (), settings=settings_of(set_), **options.asked()), options.output)


def _about_job(file: Path, change: dict[str, Any], options: QuestionOptions) -> int:
    """When a job would start, of the service; nothing else may be different at the same time."""
    options.refuse_profiles("the service answers by its own profiles")
    if any(change.values()) or options.about_others:
        raise UsageError(
            "a question about one job takes no other changes", where="--job", fix="leave the other changes, --snapshot and --watch out"
        )
    from gantline.cli.live.connection import connect

    with connect(options.home) as client:
        return show_answer(client.submission(file, dry_run=True)["then"], options.output)


def _about_past(
    history: Path,
    cluster: str,
    present_set: list[str] | None,
    policy: str,
    set_: list[str] | None,
    add: str,
    lose: list[str],
    options: QuestionOptions,
) -> dict[str, object]:
    from gantline.lab.questions.past import past_what_if
    from gantline.traces.files.clusters import read_cluster
    from gantline.traces.files.policies import load_policy
    from gantline.traces.trace import Trace

    options.refuse_profiles("the past is simulated without profiles")
    if not cluster or not options.present:
        raise UsageError("a history does not say where and how it ran", where="--history", fix="add --cluster and --present")
    now, then = load_policy(options.present, settings_of(present_set)), load_policy(policy, settings_of(set_)) if policy else None
    found = past_what_if(
        Trace.load(history),
        read_cluster(cluster),
        now,
        then,
        add=add,
        lose=lose,
        replicas=min(options.samples or _REPLICAS, _REPLICAS),
        placement=options.placement or None,
    )
    return {**found.as_json(), "lines": found.lines()}
