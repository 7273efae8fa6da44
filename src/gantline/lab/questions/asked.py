"""Questions and answers as plain JSON: what the command line asks of a file, and the service of its scheduler in another process.

A question is ``{"ask": "explain" | "changes" | "forecast" | "submission" | "what-if", "snapshot", "policy", "settings", ...}``, or
``"past"`` with ``jobs`` (rows of a trace) and ``cluster`` in place of the snapshot. ``about`` names the snapshot, so that it need not be
sent again; ``profiles`` is the file with the measured profiles of the run; ``seconds`` of CPU time bound the futures that are drawn;
``newcomers`` are past jobs that future ones may resemble, ``learn`` those from which a forecast learns how late forecasts are. An answer
has the values and, under ``lines``, the same as sentences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from gantline.core.cluster_spec import decode_cluster
from gantline.core.errors import UsageError, near
from gantline.core.facts import Costs
from gantline.core.fields import human_seconds
from gantline.core.json_reader import Reader
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot
from gantline.engine.assembly.run_rules import rule_of_run
from gantline.lab.questions.calibration import FEWEST, check_forecasts
from gantline.lab.questions.explain import explain, submission
from gantline.lab.questions.forecast import SAMPLES, Forecast, Setup, Stretch, forecast, unestimated
from gantline.lab.questions.past import REPLICAS, past_what_if
from gantline.lab.questions.what_if import what_if
from gantline.models.profiles.profiled_model import ProfiledModel
from gantline.models.uncertainty import Uncertainty
from gantline.traces.files.policies import load_policy
from gantline.traces.files.speeds import read_bundle
from gantline.traces.trace import Trace

MOST_SAMPLES = 1000
_LEARNING = 12  # draws of each forecast from which others learn
_DRAWS = ("samples", "sigma", "ratios", "horizon", "seed", "newcomers", "seconds")
_HEAD = ("ask", "snapshot", "about", "policy", "settings", "placement", "costs", "profiles", *_DRAWS)
_OWN = {
    "explain": ("job",),
    "changes": ("job",),
    "submission": ("job",),
    "forecast": ("jobs", "learn"),
    "what-if": ("other", "other_settings", "add", "lose"),
}
_OWN["past"] = ("jobs", "cluster", "replicas", *_OWN["what-if"])


def answer(question: Mapping[str, Any], decoded: dict[str, Any] | None = None) -> dict[str, Any]:
    """The answer to one question; `decoded` keeps its snapshot under the name that it has."""
    reader = Reader(question, "question")
    kind = reader.text("ask")
    if kind not in _OWN:
        raise UsageError(f"no question '{kind}'", where=reader.at("ask"), fix=near(kind, _OWN))
    reader.only((*_HEAD, *_OWN[kind]))
    policy = load_policy(reader.text("policy"), dict(reader.raw("settings") or {}))
    if kind == "past":
        return _past(reader, policy)
    snapshot = _snapshot(reader, decoded)
    setup = setup_of(reader).at(snapshot)
    coming = reader.raw("newcomers")
    if coming is not None:
        setup = setup.with_newcomers(coming, snapshot, policy)
    return _ANSWERS[kind](reader, snapshot, policy, setup)


def _snapshot(reader: Reader, decoded: dict[str, Any] | None) -> Snapshot:
    name = reader.text("about", "")
    if decoded is None or not name:
        return decode_snapshot(reader.raw("snapshot"), _model(reader))
    if name not in decoded or "snapshot" in reader:  # a snapshot that was sent is the one that is meant, whatever has that name
        decoded.clear()
        decoded[name] = decode_snapshot(reader.raw("snapshot"), _model(reader))
    found: Snapshot = decoded[name]
    return found


def _model(reader: Reader) -> ProfiledModel | None:
    """The performance model of the run, which no snapshot holds: its profiles, by the name of their file."""
    path = reader.text("profiles", "")
    return ProfiledModel(read_bundle(path)) if path else None


def setup_of(reader: Reader) -> Setup:
    """How to roll forward, from the fields of the question."""
    samples = reader.whole("samples", SAMPLES, least=1) if reader.raw("samples") is not None else None
    if samples is not None and samples > MOST_SAMPLES:
        raise UsageError(f"{samples} draws are too many", where=reader.at("samples"), fix=f"at most {MOST_SAMPLES}")
    shown = tuple(float(ratio) for ratio in reader.raw("ratios") or ())
    return Setup(
        placement=reader.text("placement", "") or None,
        costs=Costs.parse(reader.text("costs")) if "costs" in reader else None,
        horizon=reader.number("horizon", math.inf),
        uncertainty=Uncertainty(reader.number("sigma", Uncertainty().sigma), shown),
        samples=samples,
        seed=reader.whole("seed", 0),
        seconds=reader.number("seconds", math.inf),
    )


def _explain(reader: Reader, snapshot: Snapshot, policy: Policy, setup: Setup) -> dict[str, Any]:
    found = explain(snapshot, policy, reader.text("job"), setup)
    return {**_plain(asdict(found)), "lines": found.lines()}


def _changes(reader: Reader, snapshot: Snapshot, policy: Policy, setup: Setup) -> dict[str, Any]:
    """What would start a job that waits: a change, or the end of others."""
    found = explain(snapshot, policy, reader.text("job"), replace(setup, samples=0))
    return {**_plain({"changes": [asdict(one) for one in found.changes], "waits_for": found.waits_for}), "lines": found.prospects()}


def _submission(reader: Reader, snapshot: Snapshot, policy: Policy, setup: Setup) -> dict[str, Any]:
    """The place of a job in the queue and when it would start, if it were submitted now."""
    found: dict[str, Any] = _plain(submission(snapshot, policy, dict(reader.raw("job")), setup))
    return found


def _forecast(reader: Reader, snapshot: Snapshot, policy: Policy, setup: Setup) -> dict[str, object]:
    wanted, past = reader.raw("jobs"), reader.raw("learn")
    if past is not None:
        setup = replace(setup, stretch=_learned(past, snapshot, policy, setup))
    found = forecast(snapshot, policy, wanted or None, setup)
    used, ids = found[0].samples if found else 0, snapshot.jobs.ids
    blind = [ids[place] for place in sorted(unestimated(snapshot))]
    lines = [*_lines(found, setup.has_spread), *_without_estimate(blind), f"note: {setup.used(used)} of {setup.over}"]
    return {"now": snapshot.now, "over": setup.over, "samples": used, "jobs": [one.as_json() for one in found], "lines": lines}


def _learned(past: Any, snapshot: Snapshot, policy: Policy, setup: Setup) -> Stretch:
    """How late forecasts of these jobs would have been, had they been made on the same cluster."""
    rows = [dict(row) for row in past]
    if len(rows) < FEWEST:
        raise UsageError(f"{len(rows)} jobs are too few to learn from", where="learn", fix=f"ask again when {FEWEST} have ended")
    rule = rule_of_run(snapshot) if setup.placement is None else setup.placement
    quick = replace(setup, placement=rule, samples=min(setup.samples or SAMPLES, _LEARNING), newcomers=None)
    found = check_forecasts(Trace.from_records(rows), snapshot.cluster.description, policy, quick, estimates="noisy:0.3")
    if not found.stretch.forecasts:
        raise UsageError(f"{found.forecasts} jobs waited, too few to learn from", where="learn", fix=f"give a table in which {FEWEST} do")
    return found.stretch


def _what_if(reader: Reader, snapshot: Snapshot, policy: Policy, setup: Setup) -> dict[str, Any]:
    named = reader.text("other", "")
    other = load_policy(named, dict(reader.raw("other_settings") or {})) if named else None
    names = {"present": reader.text("policy"), **({"other": named} if named else {})}
    lose = tuple(reader.raw("lose") or ())
    found = what_if(snapshot, policy, other, add=reader.text("add", ""), lose=lose, setup=setup, names=names)
    return {**_plain(found.as_json()), "lines": found.lines()}


def _past(reader: Reader, policy: Policy) -> dict[str, Any]:
    named = reader.text("other", "")
    other = load_policy(named, dict(reader.raw("other_settings") or {})) if named else None
    rows = [dict(row) for row in reader.raw("jobs") or ()]
    if not rows:
        raise UsageError("the history has no jobs", where="what-if", fix="ask again when some have ended")
    found = past_what_if(
        Trace.from_records(rows, "history"), decode_cluster(reader), policy, other, add=reader.text("add", ""),
        lose=tuple(reader.raw("lose") or ()), replicas=reader.whole("replicas", REPLICAS), placement=reader.text("placement", "") or None,
        costs=reader.text("costs", ""),
    )  # fmt: skip
    return {**_plain(found.as_json()), "lines": found.lines()}


def _without_estimate(blind: Sequence[str]) -> list[str]:
    """A note on a forecast in which some jobs have no estimate."""
    if not blind:
        return []
    shown = ", ".join(blind[:5]) + (f" and {len(blind) - 5} more" if len(blind) > 5 else "")
    return [f"note: no estimate is known of {shown}: no start is named of what waits behind them (gantline set JOB --estimate 2h)"]


def _lines(found: list[Forecast], has_spread: bool) -> list[str]:
    def written(one: Forecast, instant: float) -> str:
        return human_seconds(instant - one.now) if math.isfinite(instant) else "beyond the horizon"

    def span(one: Forecast, mean: float, low: float, high: float) -> str:
        return f", mean {written(one, mean)} ({written(one, low)} to {written(one, high)})" if has_spread else ""

    def start(one: Forecast) -> str:
        if one.start_p90 <= one.now:
            return "runs"
        mean = span(one, one.start_mean, one.start_low, one.start_high)
        return f"starts in {written(one, one.start_p50)} (P50), {written(one, one.start_p90)} (P90){mean}"

    def end(one: Forecast) -> str:
        if not one.estimated:
            return "its end is not known: it has no estimate"
        mean = span(one, one.finish_mean, one.finish_low, one.finish_high)
        return f"ends in {written(one, one.finish_p50)} (P50), {written(one, one.finish_p90)} (P90){mean}"

    return [f"{one.job}: " + (one.message() if one.unknown else f"{start(one)}; {end(one)}") for one in found]


def _plain(value: Any) -> Any:
    """The value with what JSON cannot hold replaced."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_ANSWERS: dict[str, Callable[[Reader, Snapshot, Policy, Setup], dict[str, object]]] = {
    "explain": _explain,
    "changes": _changes,
    "submission": _submission,
    "forecast": _forecast,
    "what-if": _what_if,
}
