"""What a reader of a sweep should know: runs that failed or are in doubt, stops that cost nothing, seeds that change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from gantline.core.errors import GantlineError
from gantline.core.fields import human_seconds
from gantline.lab.experiment.grid import Case
from gantline.lab.experiment.records import DONE
from gantline.lab.experiment.results import HAPPENED, SweepRuns, same_runs
from gantline.lab.report.run_warnings import doubts_of, free_stops, links_apart, no_contest, turned_away, ways_left_out, wholes_for_parts
from gantline.models.estimate_chain import find_estimates
from gantline.simulator.summary import BATCH

Runs = TypeVar("Runs", bound="SweepRuns")
_SHOWN = 5


class RunsFailedError(GantlineError):
    """All runs failed."""

    exit_code = 1


def usable(sweep: Runs) -> Runs:
    """The sweep; where all of its runs failed for one reason, that is all there is to say."""
    messages = {message for _, message in sweep.failures}
    if len(messages) == 1 and len(sweep.failures) == len(sweep.cases):
        raise RunsFailedError(messages.pop())
    return sweep


def failures_of(sweep: SweepRuns) -> list[str]:
    """A sentence for each of the first runs that failed, and how many there are."""
    failed = sweep.failures
    more = [f"{len(failed)} of {len(sweep.cases)} runs failed."] if len(failed) > _SHOWN else []
    return [f"{case.name} failed: {message}." for case, message in failed[:_SHOWN]] + more


def warnings_of(sweep: SweepRuns) -> list[str]:
    """A sentence for each of the first runs in doubt, and how many there are."""
    done = [(case, record.summary) for case, record in zip(sweep.cases, sweep.records) if record.state == DONE]
    doubtful = [(case, summary) for case, summary in done if doubts_of(summary)]
    lines = [f"{case.name}: {'; '.join(doubts_of(summary))}{_first(summary)}" for case, summary in doubtful[:_SHOWN]]
    if len(doubtful) > _SHOWN:
        lines.append(f"{len(doubtful)} of {len(done)} runs are in doubt like this; they are marked (!) and never win")
    return lines


def _first(summary: Mapping[str, Any]) -> str:
    """What went wrong first, with the line of the policy's file."""
    return f"; first, at {summary['first_incident']}" if summary.get("first_incident") else ""


def _left_out(case: Case, summary: Mapping[str, Any]) -> str:
    out = summary["track"][0]
    text = f"{case.name}: the first {human_seconds(summary['warmup'])} are left out as warm-up, {out:,} of {summary['jobs']:,} jobs"
    at_limit = out >= summary["jobs"] // 2 - BATCH
    return text + ("; half of the jobs is the most that is left out, so that more of them are needed" if at_limit else "")


def notes_of(sweep: SweepRuns) -> list[str]:
    """Notes that are no doubts."""
    done = [(case, record.summary) for case, record in zip(sweep.cases, sweep.records) if record.state == DONE]
    notes = []
    free = [(summary["preemptions"], case, free_stops(summary)) for case, summary in done if free_stops(summary)]
    if free:
        _, case, said = max(free, key=lambda one: one[0])
        notes.append(f"{case.name}: {said}{f'; so in {len(free)} runs' if len(free) > 1 else ''}")
    for remark in (wholes_for_parts, ways_left_out, links_apart, turned_away, no_contest):
        if found := [(case, remark(summary)) for case, summary in done if remark(summary)]:
            case, said = found[0]
            notes.append(f"{case.name}: {said}{f'; so in {len(found)} of {len(done)} runs' if len(found) > 1 else ''}")
    if short := [(case, summary["from_empty"]) for case, summary in done if summary.get("from_empty")]:
        notes.append(f"{short[0][0].name}: {short[0][1]}{f'; so in {len(short)} of {len(done)} runs' if len(short) > 1 else ''}")
    if left := [(case, summary) for case, summary in done if summary.get("warmup")]:
        notes.append(_left_out(*max(left, key=lambda one: float(one[1]["warmup"]))))
    if same_runs(sweep.results):
        notes.append("every seed gave the same run, because the jobs are fixed and nothing is drawn: there is no interval over seeds")
    return notes


# What the policies of a sweep knew that nobody knows on a real cluster: how long jobs take.


def truth_known(sweep: SweepRuns) -> list[str]:
    """A sentence where policies knew how long jobs take, which is unknown on a real cluster."""
    choices = {case.policy: case.setting for case in sweep.cases if case.policy != HAPPENED}
    oracle = {name: one for name, one in choices.items() if find_estimates(str(one.estimates)).mode == "oracle"}
    names = ", ".join(name for name, one in oracle.items() if "remaining" in one.make_policy().needs)
    less = "with --estimates history (or limit, where jobs have time limits) it would know less"
    return [f"{names} knew how long each job really takes; {less}."] if names else []
