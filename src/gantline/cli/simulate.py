"""``gantline simulate``: a trace, a cluster and a policy in, what happened out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from gantline.cli.arguments import PolicyName, Settings, settings_of, with_settings
from gantline.cli.console import Form
from gantline.cli.run_flags import given_flags, run_flags
from gantline.cli.trace_options import TraceName, TraceOptions
from gantline.core.errors import UsageError
from gantline.engine.assembly.spec import RunSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantline.core.cluster import Cluster
    from gantline.core.policy import Policy
    from gantline.simulator.run import Run

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
    cluster: Annotated[str | None, Parameter(help="32x4 (nodes x GPUs), v100:36,k80:36, v100:4x8@rack1, or a file (YAML, CSV).")] = None,
    policy: PolicyName,
    set_: Settings = None,
    options: SingleRunOptions | None = None,
    verify_skips: Annotated[bool, Parameter(negative="", help="Run again through every round; the result must be the same.")] = False,
    explain_loop: Annotated[bool, Parameter(negative="", help="Say which loop ran the simulation, and why no faster one did.")] = False,
    jobs_out: Annotated[Path | None, Parameter(help="Write a row per job (.csv, .jsonl, .parquet).")] = None,
    allocations_out: Annotated[Path | None, Parameter(help="Write a row per interval in which a gang held devices.")] = None,
    out: Annotated[Path | None, Parameter(help="Store the whole run in a directory.")] = None,
    replace: Annotated[bool, Parameter(negative="", help="Let --out take the place of an older run.")] = False,
    block: Annotated[
        int | None, Parameter(help="Read a Parquet trace so many jobs at a time and let go of those that have ended: bounded memory.")
    ] = None,
    record: Annotated[Path | None, Parameter(help="Record inputs and decisions (JSON lines, .gz allowed) for 'gantline replay'.")] = None,
    output: Form = "table",
) -> int:
    """Replay a table of jobs on a cluster under a policy."""
    options = options or SingleRunOptions()
    spec = options.spec()
    from gantline.cli import outputs, simulate_words
    from gantline.cli.progress import simulated_jobs
    from gantline.engine.assembly.finders import find, usual_cluster, with_found
    from gantline.simulator.simulate import simulate as run_simulation
    from gantline.traces.files.clusters import read_cluster
    from gantline.traces.files.policies import load_policy, opened, policy_class

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
    for note in jobs.notes:
        simulate_words.note(note)
    with simulated_jobs(len(jobs)) as tick:
        lost = simulate_words.LostTurnWords()
        run = run_simulation(jobs, place, chosen, on_progress=tick, on_lost=lost, record=record is not None, spec=spec)
    code = simulate_words.report_run(run, math.isfinite(spec.until))
    if verify_skips:
        with simulated_jobs(len(jobs), "stepping") as tick:
            stepped = run_simulation(jobs, place, chosen, on_progress=tick, step_all=True, spec=spec)
            skipping = [run, *_asked(chosen, lambda: run_simulation(jobs, place, chosen, on_progress=tick, record=True, spec=spec))]
        code = max(code, simulate_words.report_skips(skipping, stepped))
    if record is not None:
        from gantline.simulator.replay import record_lines

        outputs.write_lines(record_lines(run, opened(policy)[0], jobs, place, asked), record)
    _write(run, jobs_out, allocations_out, out, replace)
    if explain_loop:
        simulate_words.explain_loop(run.summary)
    simulate_words.show_summary(run, output)
    return code


def _asked(policy: Policy, again: Callable[[], Run]) -> list[Run]:
    """The run once more where the policy says how long its order holds: a compiled key does without, a recorded run asks."""
    from gantline.core.policy import OrderPolicy

    own = getattr(type(policy), "valid_until", None)
    return [] if own in (None, OrderPolicy.valid_until) else [again()]


def _in_blocks(
    trace: str, place: Cluster, policy: Policy, options: SingleRunOptions, block: int, jobs_out: Path | None, unknown: list[str], form: str
) -> int:
    """A trace of any length; the summary, and a row per job where it is asked for."""
    from gantline.cli import simulate_words
    from gantline.cli.progress import simulated_jobs
    from gantline.simulator.in_blocks import simulate_in_blocks
    from gantline.traces.blocks import TraceBlocks

    if unknown or options.format:
        raise UsageError(f"a run in blocks does not support {(unknown or ['--format'])[0]}", where="--block", fix="leave one of them out")
    with simulated_jobs(len(TraceBlocks(Path(trace), block))) as tick:
        summary = simulate_in_blocks(trace, place, policy, block=block, jobs_out=jobs_out, on_progress=tick, spec=options.spec())
    return simulate_words.report_blocks(summary, form)


def _write(run: Run, jobs: Path | None, allocations: Path | None, out: Path | None, replace: bool) -> None:
    """Write what was asked for beside the summary."""
    from gantline.cli import outputs

    if jobs is not None:
        outputs.write_table(run.reported, jobs)
    if allocations is not None:
        outputs.write_table(run.allocations, allocations)
    if out is not None:
        from gantline.lab.report.rundir import write_run

        write_run(run, out, replace=replace)
