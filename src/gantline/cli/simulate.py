"""``gantline simulate``: a trace, a cluster and a policy in, what happened out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from gantline.cli.arguments import PolicyName, Settings, finite_time_of, settings_of, time_of, window_of
from gantline.cli.console import Form
from gantline.core.errors import UsageError

if TYPE_CHECKING:
    from gantline.simulator.run import Run

app = App(
    name="simulate",
    help_epilogue="""Times are 90, 15m, 2h, 1d or HH:MM:SS. Examples:

  gantline simulate jobs.csv --cluster 32x4 --policy srtf
  gantline simulate jobs.csv --cluster v100:4x8,k80:8x4 --policy tiresias --set limits=3600,36000 --round 60 -o json
  gantline simulate jobs.csv --cluster 16x8 --policy ./mine.py:MyPolicy --placement consolidated --jobs-out jobs.parquet""",
)


@app.default
def simulate(
    trace: Annotated[Path, Parameter(help="A table of jobs (CSV, Parquet, JSON lines): job, arrival, gpus, duration.")],
    /,
    *,
    cluster: Annotated[str, Parameter(help="32x4 (nodes x GPUs), v100:36,k80:36, v100:4x8@rack1, or a YAML file.")],
    policy: PolicyName,
    set_: Settings = None,
    placement: Annotated[str, Parameter(help="Which devices: first-free, consolidated[:preferred], skew[:LIMIT], random.")] = "first-free",
    admission: Annotated[str, Parameter(help="Who may enter: accept-all, load-limit:X, quota:user=N,queue=M.")] = "accept-all",
    regime: Annotated[str, Parameter(help="How time is counted: default, blox, tiresias, gavel, ...")] = "default",
    round_: Annotated[str | None, Parameter(name="--round", help="Decide every so often; without it, on events.")] = None,
    estimates: Annotated[str, Parameter(help="What policies know of the work to come: oracle, noisy:S, history, none.")] = "oracle",
    costs: Annotated[str, Parameter(help="Seconds lost: 30, or start=30,resume=60,resize=20,checkpoint=600.")] = "",
    min_run: Annotated[str, Parameter(help="How long a gang may run before it can be stopped.")] = "0",
    seed: Annotated[int, Parameter(help="Seed of everything random.")] = 0,
    track: Annotated[str | None, Parameter(help="Measure jobs LO:HI only, and stop when they have ended.")] = None,
    until: Annotated[str, Parameter(help="Stop at this time.")] = "inf",
    node_events: Annotated[Path | None, Parameter(help="A CSV file time,node,event: down, up, drain, join.")] = None,
    throughputs: Annotated[Path | None, Parameter(help="Measured speeds of job types on device types (JSON, Gavel's layout).")] = None,
    across_nodes: Annotated[bool, Parameter(negative="", help="Gangs that span nodes run at the table's speeds for that.")] = False,
    profiles: Annotated[Path | None, Parameter(help="A folder of measured profiles, one folder per application (Pollux' layout).")] = None,
    prices: Annotated[str | None, Parameter(help="Money per device-hour: v100=0.74,k80=0.135, or a CSV or JSON file.")] = None,
    decision_latency: Annotated[str, Parameter(help="How long a decision takes in virtual time.")] = "0",
    budget: Annotated[
        str | None, Parameter(help="Wall-clock time that one decision may take; a late one is lost. 30s for policies of your own.")
    ] = None,
    checkpoint: Annotated[Path | None, Parameter(help="Save the run in this file when it stops (regime gavel).")] = None,
    checkpoint_every: Annotated[str, Parameter(help="And whenever so much virtual time has passed.")] = "inf",
    resume: Annotated[Path | None, Parameter(help="Go on with a run that --checkpoint saved.")] = None,
    verify_skips: Annotated[bool, Parameter(negative="", help="Run again through every round; the result must be the same.")] = False,
    jobs_out: Annotated[Path | None, Parameter(help="Write a row per job (.csv, .jsonl, .parquet).")] = None,
    allocations_out: Annotated[Path | None, Parameter(help="Write a row per interval in which a gang held devices.")] = None,
    out: Annotated[Path | None, Parameter(help="Store the whole run in a directory.")] = None,
    replace: Annotated[bool, Parameter(negative="", help="Let --out take the place of an older run.")] = False,
    record: Annotated[Path | None, Parameter(help="Record every decision (JSON lines, .gz allowed) for 'gantline replay'.")] = None,
    output: Form = "table",
) -> int:
    """Replay a table of jobs on a cluster under a policy."""
    options: dict[str, Any] = {
        "placement": placement,
        "admission": admission,
        "regime": regime,
        "round": finite_time_of(round_, "--round", above=True),
        "estimates": estimates,
        "costs": costs,
        "min_run": finite_time_of(min_run, "--min-run"),
        "seed": seed,
        "track": window_of(track),
        "until": time_of(until, "--until"),
        "latency": finite_time_of(decision_latency, "--decision-latency"),
        "budget": None if budget is None else time_of(budget, "--budget", above=True),
        "throughputs": throughputs,
        "across_nodes": across_nodes,
        "profiles": profiles,
        "prices": prices,
        "checkpoint": checkpoint,
        "checkpoint_every": time_of(checkpoint_every, "--checkpoint-every", above=True),
        "resume": resume,
        "record": record is not None,
    }
    from gantline.cli import outputs, simulate_words
    from gantline.cli.progress import simulated_jobs
    from gantline.files.clusters import read_cluster
    from gantline.files.node_events import read_node_events
    from gantline.files.policies import load_policy
    from gantline.simulator.simulate import simulate as run_simulation
    from gantline.workload.trace import Trace

    for path, name in ((jobs_out, "--jobs-out"), (allocations_out, "--allocations-out")):
        outputs.check_table_target(path, name)
    outputs.check_folder(record, "--record")
    outputs.check_run_target(out, replace)
    chosen = load_policy(policy, settings_of(set_))
    place = read_cluster(cluster)
    options["node_events"] = read_node_events(node_events, place) if node_events else ()
    if verify_skips:
        _check_rounds(regime, options["round"])
    jobs = Trace.load(trace)
    for note in jobs.notes:
        simulate_words.note(note)
    with simulated_jobs(len(jobs)) as tick:
        run = run_simulation(jobs, place, chosen, on_progress=tick, on_lost=simulate_words.LostTurnWords(), **options)
    code = simulate_words.tell(run, math.isfinite(options["until"]))
    if verify_skips:
        with simulated_jobs(len(jobs), "stepping") as tick:
            stepped = run_simulation(jobs, place, chosen, on_progress=tick, step_all=True, **{**options, "record": False})
        code = max(code, simulate_words.tell_skips(run, stepped))
    if record is not None:
        from gantline.simulator.replay import record_lines

        outputs.write_lines(record_lines(run, policy), record)
    _write(run, jobs_out, allocations_out, out, replace)
    simulate_words.show_summary(run, output)
    return code


def _check_rounds(regime: str, length: float | None) -> None:
    from gantline.engine.regime import find_regime

    if find_regime(regime).with_round(length).round <= 0:
        raise UsageError("without rounds there is nothing to skip", where="--verify-skips", fix="add --round 60")


def _write(run: Run, jobs: Path | None, allocations: Path | None, out: Path | None, replace: bool) -> None:
    """Write what was asked for beside the summary."""
    from gantline.cli import outputs

    if jobs is not None:
        outputs.write_table(run.jobs, jobs)
    if allocations is not None:
        outputs.write_table(run.allocations, allocations)
    if out is not None:
        from gantline.report.rundir import write_run

        write_run(run, out, replace=replace)
