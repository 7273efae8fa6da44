"""What `gantline simulate` prints: the summary on stdout; lost turns, unfinished jobs and differences on stderr."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gantline.cli.console import chart_width, is_watched, say, show_object, show_text
from gantline.lab.report.doubts import MANY, free_stops, is_broken, links_apart, no_contest, ways_left_out, wholes_for_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantline.engine.lost_turns import Incident
    from gantline.simulator.run import Run

_SHOWN = 3
_NOTHING_RAN = 4
_FAILED = 1  # jobs did not end, or turns were lost: this is not the policy's result
_DIFFERENT = 1


def note(text: str) -> None:
    """Something worth knowing that is no mistake."""
    say(f"note: {text}")


def explain_loop(summary: dict[str, Any]) -> None:
    """Which loop ran, and why no faster one did."""
    from gantline.engine.drivers.compiled import LoopReport

    for line in LoopReport(summary["loop"], summary["loop_refused"]).lines():
        say(line)


class LostTurnWords:
    """Lost turns are reported as they happen: a mistake once, a few of them; then how many it has become at ten, a hundred, a thousand."""

    def __init__(self) -> None:
        self.count = 0
        self._shown: set[str] = set()

    def __call__(self, incident: Incident) -> None:
        self.count += 1
        new = incident.what not in self._shown and len(self._shown) < _SHOWN
        if new:
            self._shown.add(incident.what)
            say(f"warning: {incident}")
        elif self.count >= 10 and self.count == 10 ** round(math.log10(self.count)):
            say(f"warning: {self.count} turns lost until t={incident.time:g}")


def report_run(run: Run, bounded: bool) -> int:
    """Report lost turns, jobs that did not end and an excessive load; returns the exit code."""
    code = _report_ends(run, bounded)
    for said in (free_stops, wholes_for_parts, ways_left_out, links_apart):
        if found := said(run.summary):
            note(found)
    if "in_charge" in run.summary:
        from gantline.lab.report.in_charge import policies_in_charge

        note(policies_in_charge(run))
    if code == 0 and no_contest(run.summary):
        note(no_contest(run.summary))
    if code == 0 and not is_watched():  # a person finds it in the summary
        _report_load(run)
    return code


def _report_load(run: Run) -> None:
    """The overload guard."""
    if run.summary["jobs"] < MANY:
        return
    import numpy as np

    from gantline.core.columns import Job
    from gantline.core.units import human_seconds
    from gantline.lab.report.steady import judge
    from gantline.simulator.occupancy import held_by_job
    from gantline.simulator.queue_steps import let_in, lost_gpu_time, queue_steps

    F, I, summary = run.tables.F, run.tables.I, run.summary
    warmup = summary.get("warmup", 0.0)
    if warmup:
        note(f"warm-up: the first {human_seconds(warmup)} are left out, {summary['track'][0]:,} of {summary['jobs']:,} jobs")
    rows = let_in(run.tables)
    marks = [(0.0, 0), *summary["joined_gpus"]]
    devices = np.array([time for time, _ in marks]), np.array([summary["gpus"] + count for _, count in marks], dtype=np.float64)
    held = (held_by_job(run.log, F[Job.FINISH], summary["end"]) if run.held is None else run.held).device_seconds
    lost = lost_gpu_time(run.tables, run.log, held)[rows]
    found = judge(F[Job.ARRIVAL][rows], (I[Job.GPUS] * F[Job.WORK])[rows], queue_steps(run.tables, run.log), devices, warmup, lost=lost)
    if not found.steady:
        say(f"warning: {found}")
    elif found.from_empty:
        note(found.from_empty)


def _report_ends(run: Run, bounded: bool) -> int:
    summary = run.summary
    if summary["lost_turns"]:
        say(f"warning: {summary['lost_turns']} of {summary['decisions']} decisions were lost")
    others = [incident for incident in run.incidents if "its turn is lost" not in incident]
    for incident in others[:_SHOWN]:
        say(f"warning: {incident}")
    if "usual_round" in summary:
        usual, policy = summary["usual_round"], summary["policy"]
        say(f"note: decided at every event; the authors of {policy} decide every {usual:g} s, which is --round {usual:g}")
    if "not kept" in str(summary.get("reservations", "")):
        say(f"note: reservations in the trace: {summary['reservations']}")
    for notice in run.notices[:_SHOWN]:
        say(f"warning: {notice}")
    if len(run.notices) > _SHOWN:
        say(f"warning: and {len(run.notices) - _SHOWN} more like this")
    code = _FAILED if is_broken(summary) else 0
    left = summary["jobs"] - summary["completed"]
    if not left:
        return code
    counts = {state: count for state, count in run.jobs["state"].value_counts().iter_rows() if state != "completed"}
    text = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    if run.allocations.is_empty() and not bounded:
        first = run.jobs.row(0, named=True)["job"]
        why = f" ({_why(run, 0)})" if _why(run, 0) else ""
        say(f"error: no job could be started: {text}; the first is '{first}'{why}")
        return _NOTHING_RAN
    if run.track is None or bounded:
        say(f"note: {left} of {summary['jobs']} jobs did not end: {text}")
    return code


def _why(run: Run, row: int) -> str:
    from gantline.core.columns import Job
    from gantline.core.reasons import Reason, sentence

    code = int(run.tables.I[Job.REASON, row])
    return sentence(code) if code != Reason.NONE else ""


def report_skips(skipping: Sequence[Run], stepped: Run) -> int:
    """Whether stepping through every round gave the same run."""
    others = [run for run in skipping if run.summary["log_hash"] != stepped.summary["log_hash"]]
    if not others:
        say(f"note: stepping through all {stepped.summary['rounds']} rounds gives the same run ({stepped.summary['decisions']} decisions)")
        return 0
    ours, theirs = others[0].allocations, stepped.allocations
    for number, (a, b) in enumerate(zip(ours.iter_rows(named=True), theirs.iter_rows(named=True))):
        if a != b:
            ours_is, theirs_is = (f"job '{span['job']}' {span['start']:g} to {span['end']:g}" for span in (a, b))
            where = f"interval {number}: skipping gives {ours_is}, stepping {theirs_is}"
            break
    else:
        where = f"skipping gives {ours.height} intervals, stepping {theirs.height}"
    say(f"error: skipping rounds changed the result: {where} (the policy's valid_until promises too much)")
    return _DIFFERENT


def report_blocks(summary: dict[str, Any], form: str) -> int:
    """The numbers of a run in blocks, and whether all jobs have ended."""
    free, left = free_stops(summary), summary["jobs"] - summary["completed"]
    if free:
        note(free)
    if left:
        note(f"{left} of {summary['jobs']} jobs did not end")
    show_object(summary, form)
    return _FAILED if is_broken(summary) else 0


def show_summary(run: Run, form: str) -> None:
    """The numbers of a run: a picture for people, every key for programs."""
    if form == "table" and is_watched():
        from gantline.lab.report.terminal import run_summary

        show_text(run_summary(run, width=chart_width()))
        show_text(f"[dim]{run.summary['jobs']} jobs in {run.summary['wall_seconds']:.2f} s[/dim]")
        return
    show_object({**run.summary, **_groups(run)} if form == "json" else run.summary, form)


def _groups(run: Run) -> dict[str, list[dict[str, Any]]]:
    """The same numbers per device type and per queue, where there are several; a row of CSV has no room for them."""
    from gantline.lab.report.frames import span_of
    from gantline.lab.report.metrics import per_group, per_type

    found = {}
    if len(run.summary.get("node_types", ())) > 1:
        found["types"] = per_type(run).to_dicts()
    if run.jobs["queue"].n_unique() > 1:
        found["queues"] = per_group(run.jobs, "queue", span_of(run)[1]).to_dicts()
    return found
