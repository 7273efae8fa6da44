"""``gantline simulate``: a trace, a cluster and a policy in, what happened out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from cyclopts import App, Parameter

from gantline.cli import outputs
from gantline.cli.arguments import PolicyName, Settings, settings_of
from gantline.cli.console import Form, chart_width, is_watched, say, show_object, show_text
from gantline.cli.options import TraceName, TraceOptions, given_flags, run_flags
from gantline.cli.progress import simulated_jobs
from gantline.core.cluster import Cluster
from gantline.core.columns import Job
from gantline.core.errors import UsageError
from gantline.core.fields import human_seconds
from gantline.core.policy import OrderPolicy, Policy
from gantline.core.reasons import Reason, sentence
from gantline.engine.assembly.finders import find, usual_cluster, with_found
from gantline.engine.assembly.spec import OPTIONS, RunSpec
from gantline.engine.drivers.simulation import LoopReport
from gantline.engine.policy_failures import Incident
from gantline.lab.report.frames import span_of
from gantline.lab.report.metrics import per_group, per_type
from gantline.lab.report.metrics.steadiness import steadiness
from gantline.lab.report.run_warnings import (
    MANY,
    free_stops,
    is_broken,
    links_apart,
    no_contest,
    policies_in_charge,
    ways_left_out,
    wholes_for_parts,
)
from gantline.lab.report.rundir import write_run
from gantline.lab.report.terminal import run_summary
from gantline.simulator.in_blocks import simulate_in_blocks
from gantline.simulator.replay import record_lines
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate as run_simulation
from gantline.traces.blocks import TraceBlocks
from gantline.traces.files.clusters import read_cluster
from gantline.traces.files.policies import load_policy, opened, policy_class

app = App(
    name="simulate",
    help_epilogue="""Times are 90, 15m, 2h, 1d or HH:MM:SS. Examples:

  gantline simulate day --cluster 8x8 --policy srtf
  gantline simulate jobs.csv --cluster 32x4 --policy srtf
  gantline simulate accounting.txt --format sacct --cluster 32x4 --policy las
  gantline simulate jobs.csv --cluster v100:4x8,k80:8x4 --policy tiresias --set limits=3600,36000 --round 60 -o json
  gantline simulate jobs.csv --cluster 16x8 --policy ./mine.py:MyPolicy --placement consolidated --jobs-out jobs.parquet
  gantline simulate years.parquet --cluster 12500x8 --policy srtf --round 60 --block 250000 --jobs-out ended.parquet""",
)


def with_settings(spec: RunSpec, settings: dict[str, str], policy: type[Policy]) -> tuple[RunSpec, dict[str, str]]:
    """Options of the run that `--set` names too (those that the policy has no parameter for), and the policy's own settings."""
    own = {item.name for item in fields(policy)}
    moved = {name: value for name, value in settings.items() if name not in own and name in OPTIONS and OPTIONS[name].settable}
    read = {name: OPTIONS[name].read(value, f"--set {name}") for name, value in moved.items()}
    return replace(spec, **read), {name: value for name, value in settings.items() if name not in moved}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
@run_flags(single=True)
class SingleRunOptions(TraceOptions):
    """How the one run is made."""

    def spec(self) -> RunSpec:
        """The options as the simulator takes them."""
        return RunSpec(**given_flags(self))


@app.default
def simulate(
    trace: TraceName,
    /,
    *,
    cluster: str | None = None,
    policy: PolicyName,
    set_: Settings = None,
    options: SingleRunOptions | None = None,
    verify_skips: bool = False,
    explain_loop: bool = False,
    jobs_out: Path | None = None,
    allocations_out: Path | None = None,
    out: Path | None = None,
    replace: bool = False,
    block: int | None = None,
    record: Path | None = None,
    output: Form = "table",
) -> int:
    """Replay a table of jobs on a cluster under a policy.

    Args:
        cluster: 32x4 (nodes x GPUs), v100:36,k80:36, v100:4x8@rack1, or a file (YAML, CSV).
        verify_skips: Run again through every round; the result must be the same.
        explain_loop: Say which loop ran the simulation, and why no faster one did.
        jobs_out: Write a row per job (.csv, .jsonl, .parquet).
        allocations_out: Write a row per interval in which a gang held devices.
        out: Store the whole run in a directory.
        replace: Let --out take the place of an older run.
        block: Read a Parquet trace so many jobs at a time and let go of those that have ended: bounded memory.
        record: Record inputs and decisions (JSON lines, .gz allowed) for 'gantline replay'.
    """
    options = options or SingleRunOptions()
    spec = options.spec()
    for path, name in ((jobs_out, "--jobs-out"), (allocations_out, "--allocations-out")):
        outputs.check_table_target(path, name, trace)
    outputs.check_folder(record, "--record")
    outputs.check_run_target(out, replace)
    spec, settings = with_settings(spec, settings_of(set_), policy_class(policy))
    chosen = load_policy(policy, settings)
    place = read_cluster(usual_cluster(spec) if cluster is None else cluster)
    if block is not None:
        unknown = {"--verify-skips": verify_skips, "--explain-loop": explain_loop, "--record": record}
        unknown |= {"--allocations-out": allocations_out, "--out": out}
        return _in_blocks(trace, place, chosen, options, block, jobs_out, [name for name, value in unknown.items() if value], output)
    speeds = str(spec.throughputs)
    asked, spec = spec, with_found(spec, place)
    if verify_skips and find(spec, "regime", place).with_round(spec.round).round <= 0:
        raise UsageError("without rounds there is nothing to skip", where="--verify-skips", fix="add --round 60")
    jobs = options.load(trace, spec.seed, speeds)
    for text in jobs.notes:
        note(text)
    with simulated_jobs(len(jobs)) as tick:
        lost = LostTurnWords()
        run = run_simulation(jobs, place, chosen, on_progress=tick, on_lost=lost, record=record is not None, spec=spec)
    code = report_run(run, math.isfinite(spec.until))
    if verify_skips:
        with simulated_jobs(len(jobs), "stepping") as tick:
            stepped = run_simulation(jobs, place, chosen, on_progress=tick, step_all=True, spec=spec)
            skipping = [run, *_asked(chosen, lambda: run_simulation(jobs, place, chosen, on_progress=tick, record=True, spec=spec))]
        code = max(code, report_skips(skipping, stepped))
    if record is not None:
        outputs.write_lines(record_lines(run, opened(policy)[0], jobs, place, asked), record)
    _write(run, jobs_out, allocations_out, out, replace)
    if explain_loop:
        say_which_loop(run.summary)
    show_summary(run, output)
    return code


def _asked(policy: Policy, again: Callable[[], Run]) -> list[Run]:
    """The run once more where the policy says how long its order holds: a compiled key does without, a recorded run asks."""
    own = getattr(type(policy), "valid_until", None)
    return [] if own in (None, OrderPolicy.valid_until) else [again()]


def _in_blocks(
    trace: str, place: Cluster, policy: Policy, options: SingleRunOptions, block: int, jobs_out: Path | None, unknown: list[str], form: str
) -> int:
    """A trace of any length; the summary, and a row per job where it is asked for."""
    if unknown or options.format:
        raise UsageError(f"a run in blocks does not support {(unknown or ['--format'])[0]}", where="--block", fix="leave one of them out")
    with simulated_jobs(len(TraceBlocks(Path(trace), block))) as tick:
        summary = simulate_in_blocks(trace, place, policy, block=block, jobs_out=jobs_out, on_progress=tick, spec=options.spec())
    return report_blocks(summary, form)


def _write(run: Run, jobs: Path | None, allocations: Path | None, out: Path | None, replace: bool) -> None:
    """Write what was asked for beside the summary."""
    if jobs is not None:
        outputs.write_table(run.reported, jobs)
    if allocations is not None:
        outputs.write_table(run.allocations, allocations)
    if out is not None:
        write_run(run, out, replace=replace)


# What `gantline simulate` prints: the summary on stdout; lost turns, unfinished jobs and differences on stderr.

_SHOWN = 3
_NOTHING_RAN = 4
_FAILED = 1  # jobs did not end, or turns were lost: this is not the policy's result
_DIFFERENT = 1


def note(text: str) -> None:
    """Something worth knowing that is no mistake."""
    say(f"note: {text}")


def say_which_loop(summary: dict[str, Any]) -> None:
    """Which loop ran, and why no faster one did."""
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
    summary = run.summary
    if warmup := summary.get("warmup", 0.0):
        note(f"warm-up: the first {human_seconds(warmup)} are left out, {summary['track'][0]:,} of {summary['jobs']:,} jobs")
    found = steadiness(run)
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
        show_text(run_summary(run, width=chart_width()))
        show_text(f"[dim]{run.summary['jobs']} jobs in {run.summary['wall_seconds']:.2f} s[/dim]")
        return
    show_object({**run.summary, **_groups(run)} if form == "json" else run.summary, form)


def _groups(run: Run) -> dict[str, list[dict[str, Any]]]:
    """The same numbers per device type and per queue, where there are several; a row of CSV has no room for them."""
    found = {}
    if len(run.summary.get("node_types", ())) > 1:
        found["types"] = per_type(run).to_dicts()
    if run.jobs["queue"].n_unique() > 1:
        found["queues"] = per_group(run.jobs, "queue", span_of(run)[1]).to_dicts()
    return found
