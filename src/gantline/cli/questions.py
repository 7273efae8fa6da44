"""What the commands ``explain``, ``forecast`` and ``what-if`` share: a question about a file, or about the service."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from gantline.cli.arguments import Settings, settings_of
from gantline.cli.console import printable, say, show_json
from gantline.cli.decide import read_json
from gantline.cli.live.connection import HomeOption, connect
from gantline.core.errors import UsageError
from gantline.lab.questions.asked import answer
from gantline.lab.questions.calibration import check_forecasts
from gantline.lab.questions.forecast import Setup
from gantline.lab.questions.past import past_what_if
from gantline.live.watch.sources import look
from gantline.live.watch.watched import Document
from gantline.models.uncertainty import Uncertainty
from gantline.traces.files.clusters import read_cluster
from gantline.traces.files.policies import code_named, load_policy
from gantline.traces.files.python_file import only_given
from gantline.traces.trace import Trace

PresentSettings = Annotated[list[str] | None, Parameter(help="A parameter of the policy in force, key=value.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """What a question is about, and how it is answered.

    Args:
        sigma: How far work may be from its estimate: sigma of a log-normal, where nothing better is known.
        snapshot: Ask about this file (docs/snapshots.md) instead of the service.
        watch: Ask about a cluster that others schedule: slurm or kubernetes; slurm:FILE for a recording
            (docs/watch.md).
        present: The policy in force, where a file is asked about; by default as a watched cluster says.
        placement: Which devices, where a file is asked about; by default as the file says.
        profiles: Measured profiles of the jobs, where a file is asked about: starts, stops and speeds are drawn from
            them.
        samples: How often the present is rolled forward: 40 times, or 200 where profiles have a spread.
        newcomers: Let others come: 'past', as those that have ended came; or as in this table of jobs. Beside Slurm
            they come as the latest did, where enough are known; 'none': no other comes.
        output: Words for people, or JSON.
    """

    snapshot: Path | None = None
    watch: str = ""
    present: str = ""
    placement: str = ""
    profiles: Path | None = None
    samples: Annotated[int | None, Parameter(name=["--draws", "--samples"])] = None
    sigma: float = 0.5
    newcomers: str = ""
    home: HomeOption = None
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text"

    def about_file(self, ask: str, settings: list[str] | None, **more: Any) -> dict[str, Any]:
        """The answer to a question about the snapshot in the file, or of the cluster that is watched."""
        document = self._document()
        instant = document.get("snapshot", document) if isinstance(document, dict) else document
        in_force = document.get("present", {}) if isinstance(document, dict) else {}
        policy = self.present or in_force.get("policy", "")
        if not policy:
            raise UsageError("a file does not say which policy is in force", where="--snapshot", fix="add --present NAME")
        latest = document.get("arrivals") if in_force else None
        if self.newcomers in ("", "past") and latest:
            more["newcomers"] = latest
        elif self.newcomers not in ("", "none"):
            more["newcomers"] = self.coming()
        given = {} if self.present else in_force.get("settings", {})
        question = {
            "ask": ask,
            "snapshot": instant,
            "policy": policy,
            "settings": {**given, **settings_of(settings)},
            "placement": self.placement,
        }
        shown = {"ratios": document["ratios"]} if in_force and document.get("ratios") else {}
        if self.profiles is not None:
            more["profiles"] = str(self.profiles)
        with only_given(code_named(self.present, self.placement, more.get("other"))):  # the file, or the recording, may be somebody else's
            return answer({**question, **shown, "samples": self.samples, "sigma": self.sigma, **more})

    @property
    def about_others(self) -> bool:
        """Whether something else than our own service is asked about."""
        return self.snapshot is not None or bool(self.watch)

    def refuse_profiles(self, why: str) -> None:
        """Where they would decide nothing."""
        if self.profiles is not None:
            raise UsageError(why, where="--profiles", fix="leave --profiles out")

    def _document(self) -> Document:
        if self.watch:
            if self.snapshot is not None:
                raise UsageError("a question is about a file or about a cluster", where="--watch", fix="leave --snapshot out")
            return look(self.watch).as_json()
        assert self.snapshot is not None
        return read_json(self.snapshot)

    def coming(self) -> list[dict[str, Any]]:
        """The jobs of the table like which others may come."""
        if self.newcomers == "past":
            what = "too few jobs are known, or all came at once" if self.watch else "a file does not hold the past"
            raise UsageError(what, where="--newcomers", fix="name a table of jobs")
        return list(Trace.load(self.newcomers).frame.iter_rows(named=True))

    def asked(self) -> dict[str, Any]:
        """What the service receives on how to answer."""
        if self.newcomers not in ("", "none", "past"):
            raise UsageError("the service has only its own past", where="--newcomers", fix="write --newcomers past")
        self.refuse_profiles("the service answers by its own profiles")
        return {"samples": self.samples, "sigma": self.sigma, "newcomers": self.newcomers == "past"}


NOTHING_SAID = QuestionOptions()


def show_answer(found: dict[str, Any], form: str) -> int:
    """Print it."""
    if form == "json":
        show_json({key: value for key, value in found.items() if key != "lines"})
    else:
        print("\n".join(map(printable, found["lines"])))
    return 0


# ``gantline explain``: why a job waits, which jobs are ahead of it, which change would start it, and when it is expected to start.

explain_app = App(
    name="explain",
    help_epilogue="""A service says at once why the job waits, its place and what is ahead of it. --wait adds when it will start and which
change would start it now: the policy and the engine are asked, so that is what would happen. Examples:

  gantline explain 42
  gantline explain 42 --wait
  gantline explain big --snapshot now.json --present srtf""",
)


@explain_app.default
def explain(
    job: str,
    /,
    *,
    wait: bool = False,
    set_: Annotated[PresentSettings, Parameter(name="--set")] = None,
    options: QuestionOptions = NOTHING_SAID,
) -> int:
    """Say why a job waits, which jobs are ahead of it, which change would start it, and when it is expected to start.

    Args:
        job: Its id.
        wait: Wait for the forecast, and for what would start it.
    """
    if options.about_others:
        return show_answer(options.about_file("explain", set_, job=job), options.output)
    with connect(options.home) as client:
        found = client.explain(job, wait=wait, **options.asked())
        if (found["forecast"] or {}).get("status") == "pending":
            say(f"note: the forecast is being worked out: gantline explain {job} --wait")
        return show_answer(found, options.output)


# ``gantline forecast``: when jobs are expected to start and to end.

forecast_app = App(
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


@forecast_app.default
def forecast(
    *jobs: str,
    check: str = "",
    cluster: str = "",
    estimates: str = "noisy:0.3",
    learn: str = "",
    set_: Annotated[PresentSettings, Parameter(name="--set")] = None,
    options: QuestionOptions = NOTHING_SAID,
) -> int:
    """Say when jobs are expected to start and to end: P50 and P90.

    Args:
        jobs: Ids; by default all that wait or run.
        check: Replay this table of jobs, forecast each on arrival, and count how many came true.
        estimates: With --check: what the policy and the forecasts know of the work.
        cluster: With --check: on which.
        learn: Stretch forecasts as those of these jobs would have been late: a table, or 'past' for the service's own.
    """
    if check and options.about_others:
        raise UsageError("a table is replayed, and nothing else is asked about", where="--check", fix="leave --snapshot and --watch out")
    if check:
        return show_answer(_checked(check, cluster, estimates, set_, options), options.output)
    if options.about_others:
        rows = {"learn": replace(options, newcomers=learn).coming()} if learn else {}
        return show_answer(options.about_file("forecast", set_, jobs=list(jobs), **rows), options.output)
    with connect(options.home) as client:
        if learn not in ("", "past"):
            raise UsageError("the service has only its own past", where="--learn", fix="write --learn past")
        return show_answer(client.forecast(*jobs, learn=bool(learn), **options.asked()), options.output)


def _checked(trace: str, cluster: str, estimates: str, settings: list[str] | None, options: QuestionOptions) -> dict[str, object]:
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


# ``gantline what-if``: the present queue, or the past, under another policy, with more devices or without a node.

_REPLICAS = 20  # of a history, at most

what_if_app = App(
    name="what-if",
    help_epilogue="""Both futures are rolled forward with the same draws of work, so that differences are the policy's. Examples:

  gantline what-if --job job.yaml
  gantline what-if --policy srtf
  gantline what-if --add 1x4 --snapshot now.json --present fifo
  gantline what-if --policy las --history jobs.csv --cluster 4x8 --present fifo""",
)


@what_if_app.default
def what_if(
    *,
    policy: str = "",
    set_: Settings = None,
    add: str = "",
    lose: list[str] | None = None,
    job: Path | None = None,
    history: Path | None = None,
    past: bool = False,
    cluster: str = "",
    present_set: Annotated[PresentSettings, Parameter(name="--present-set")] = None,
    options: QuestionOptions = NOTHING_SAID,
) -> int:
    """Say how the queue, or the past, would fare under another policy, with more devices or without a node.

    Args:
        lose: A node to lose; may be repeated.
        job: Say when this job (a YAML file) would start if it were submitted now.
        history: Ask about this table of past jobs instead of the present queue.
        past: Ask about the service's own past instead of the present queue.
        policy: The other policy; by default the one in force.
        add: Nodes to add, such as 1x4 or v100:2x8.
        cluster: On which the history ran.
    """
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
