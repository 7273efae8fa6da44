"""`simulate(trace, cluster, policy, ...)`: one call from a trace to a finished run."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gantline.core.arrays import Bools
from gantline.core.cluster import Cluster
from gantline.core.columns import Job
from gantline.core.errors import RefusedError, UsageError
from gantline.core.inputs import Input, Reserve
from gantline.core.machine_code import let_go
from gantline.core.phases import Phase
from gantline.core.policy import OrderPolicy, Policy
from gantline.core.tables import Tables
from gantline.engine.assembly.finders import find, options_set, usual_cluster
from gantline.engine.assembly.from_trace import assemble, reservations
from gantline.engine.assembly.guard import guard_of
from gantline.engine.assembly.run_rules import RunRules
from gantline.engine.assembly.spec import OPTIONS, RunSpec
from gantline.engine.drivers.journal import Journal
from gantline.engine.drivers.key_reading import Hint, read_key
from gantline.engine.drivers.simulation import Checkpoints, Simulation, make_driver, report_on
from gantline.engine.ending import EndingRule
from gantline.engine.imitations.registry import find_imitation, find_scope
from gantline.engine.policy_failures import Incident
from gantline.engine.regime import Regime, find_regime, regime_names
from gantline.engine.state import State
from gantline.models.goodput.online import OnlineGoodput
from gantline.simulator.figures import asks_for_parts, bill, energy_of, link_use, typical_fragmentation
from gantline.simulator.run import ENDED_BY_LOSS, Run
from gantline.simulator.summary import changes_of, counted_rows, end_of, stretch_of, summarise, what_jobs_held
from gantline.traces.files.clusters import read_cluster
from gantline.traces.files.policies import policy_of
from gantline.traces.generators import generate
from gantline.traces.generators.registry import is_generator
from gantline.traces.to_tables import absent_types
from gantline.traces.trace import Trace

# --- functions that take the options of a run by name show them ---------------------------------------------------------
P = ParamSpec("P")
R = TypeVar("R")


def with_options(function: Callable[P, R], *, single: bool = True) -> Callable[P, R]:
    """The same function, with its `**options` listed one by one; without `single`, only those of experiments."""
    shown = inspect.signature(function)
    kept = [item for item in shown.parameters.values() if item.kind is not inspect.Parameter.VAR_KEYWORD]
    annotations = {item.name: item.type for item in fields(RunSpec)}
    known = [item for item in OPTIONS.values() if (single or not item.single) and item.name not in shown.parameters]
    for item in known:
        kept.append(inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=item.default, annotation=annotations[item.name]))
    function.__signature__ = shown.replace(parameters=kept)  # type: ignore[attr-defined]
    lines = "\n".join(f"    `{item.name}`: {item.help}" for item in known)
    function.__doc__ = f"{(function.__doc__ or '').rstrip()}\n\n    Options, as on the command line:\n\n{lines}\n    "
    return function


# --- simulate -----------------------------------------------------------------------------------------------------------


@with_options
def simulate(
    trace: Trace | str | Path | Any,
    cluster: Cluster | str | Path | None,
    policy: Policy | str,
    *,
    settings: Mapping[str, Any] | None = None,
    inputs: Iterable[Input] = (),
    step_all: bool = False,
    record: bool | Journal = False,
    on_progress: Callable[[float, int, int], None] | None = None,
    on_lost: Callable[[Incident], None] | None = None,
    spec: RunSpec | None = None,
    **options: Any,
) -> Run:
    """Simulate a trace on a cluster under a policy. Everything may be given by name, exactly as on the command line.

    >>> run = simulate("jobs.csv", "8x4", "tiresias", settings={"limits": "1h,10h"}, round="5m", placement="consolidated")
    >>> run.summary["average_jct"], run.jobs

    `trace`: a table of jobs (a path, a `Trace`, a data frame, a list of dictionaries) or the name of a generator.
    `cluster`: 32x4 (nodes x GPUs), v100:4x8,k80:8x4, a YAML file, or a `Cluster`; None in regimes that buy what they need.
    `policy`: a registered name or FILE.py:CLASS with `settings`, or a policy of one's own.
    `inputs`: users' requests while it runs (`gantline.core.inputs`): jobs submitted beside the trace, cancelled, held, released, resized.
    `record`: keep a journal of the run (`run.journal`), for `gantline replay`.
    `step_all`: skip no round. `on_progress` is called with the time, the jobs that have arrived and those inside, whatever the regime.
    `on_lost`: called for each turn that the policy lost.
    `spec`: options gathered before; those given here come first.
    """
    began, cpu_began = time.perf_counter(), time.process_time()
    spec = RunSpec.of(options, spec)
    jobs = _trace(trace, spec.seed)
    place = read_cluster(cluster if cluster is not None else usual_cluster(spec))
    chosen = policy_of(policy, settings)
    rules = RunRules.of(spec, place)
    way = rules.regime
    requests = tuple(inputs)
    changes = tuple(sorted((*_reserved(spec, place), *find(spec, "node_events", place), *requests), key=lambda event: event.time))
    if (scope := find_scope(way.name)) is not None:
        beside = {"--record": record is not False, "--verify-skips": step_all, "inputs": bool(requests)}
        scope.check(way.name, chosen, options_set(spec, place) | {name: name for name, is_set in beside.items() if is_set})
    run = assemble(jobs, place, chosen, spec, rules, imitated=find_imitation(way.name) is not None)
    jobs, chosen, tables, engine, state = run.jobs, run.policy, run.tables, run.engine, run.engine.state
    if scope is not None:
        scope.check_jobs(way.name, tables)
    journal = _journal(record)
    engine.turns.on_lost = on_lost
    window = _window(spec.track, tables.count, way)
    keep = Checkpoints(spec.checkpoint, spec.checkpoint_every, spec.resume)
    if keep != Checkpoints() and not way.checkpoints:
        saved = " or ".join(name for name in regime_names() if find_regime(name).checkpoints)
        raise RefusedError(f"regime '{way.name}' has no checkpoints", where="--checkpoint", fix=f"leave that out, or use --regime {saved}")
    simulation = Simulation(
        engine, rules.admission, rules.estimates, spec.until, window, changes, step_all, spec.latency, on_progress, keep, run.profiles,
        driver=make_driver(spec.executor, engine),
    )  # fmt: skip
    if journal is not None:
        journal.listen(simulation)
    counted: dict[str, Any] | None = None
    counted_changes: dict[str, Any] = {}
    imitate = find_imitation(way.name)
    if imitate is not None:
        simulation.loop = report_on("imitation", f"regime '{way.name}' has a loop of its own")
        counted = imitate(simulation, jobs)
    else:
        simulation.run()
        tables.trim()
        state.log.leave_out_never_held()
        counted_changes = changes_of(simulation)
    let_go()
    held = what_jobs_held(simulation)
    if spec.warmup != 0.0 and tables.count:
        waited = tables.F[Job.FINISH] - tables.F[Job.ARRIVAL] - held.seconds
        window = simulation.track = counted_rows(window or (0, tables.count), spec.warmup, tables.F[Job.ARRIVAL], waited)
    summary = summarise(simulation, chosen, jobs, place, simulation.estimates, rules.placement, rules.admission, spec.seed, held)
    summary |= counted_changes | (counted or {})
    if spec.warmup != 0.0:
        summary["warmup"] = float(tables.F[Job.ARRIVAL, window[0]] - tables.F[Job.ARRIVAL, 0]) if window else 0.0
    summary |= _unlike_the_paper(chosen, way, jobs) | chosen.counted(state.memory)
    summary |= _ended_by_loss(tables, run.ends_early, find(spec, "end_by", place))
    if absent := absent_types(jobs, place):
        summary["absent_types"] = absent
    if tables.left_out:
        summary["left_out_options"] = tables.left_out
    if place.links:
        summary |= link_use(place, state.log, tables, state.now)
    if asks_for_parts(tables).any():
        stretch = stretch_of(simulation, end_of(simulation))
        summary["typical_fragmentation"] = typical_fragmentation(tables, state.log, chosen.shares_devices, *stretch)
    summary |= simulation.estimates.summary()
    if tables.performance is not None:
        summary |= _told_by_models(chosen, tables.performance, state.learned, spec.seed)
    money = dict(rules.facts.prices)
    if money and (counted or not engine.grants.fluid.device_seconds):  # ideal shares are of no device in particular
        summary["prices"], summary["cost"] = money, bill(tables, state.log, money, counted or {})
    if rules.facts.grid.power:
        summary |= energy_of(tables, state.log, rules.facts.grid, state.now)
    summary["wall_seconds"] = time.perf_counter() - began
    summary["cpu_seconds"] = time.process_time() - cpu_began
    lost, said = (tuple(map(str, each)) for each in (engine.incidents, engine.notices))
    return Run(summary, tables, state.log, held, lost, journal, window, tuple(engine.refusals), said, simulation.pieces)


def _trace(trace: object, seed: int) -> Trace:
    if isinstance(trace, str) and is_generator(trace):
        return Trace.generate(trace, seed)
    return Trace.load(trace) if isinstance(trace, (str, Path)) else Trace.of(trace)


def _reserved(spec: RunSpec, place: Cluster) -> list[Input]:
    """The windows for which devices are kept free, as inputs."""
    if not (windows := find(spec, "reserve", place)):
        return []
    return [Reserve(0.0, window) for window in windows]


def _unlike_the_paper(policy: Policy, regime: Regime, jobs: Trace) -> dict[str, object]:
    """What the policy would do elsewhere and does not in this run: rounds of its own, reservations."""
    if find_imitation(regime.name) is not None:
        return {}
    fields: dict[str, object] = {}
    if policy.usual_round and not regime.round:
        fields["usual_round"] = policy.usual_round
    if kept := reservations(jobs):
        fields["reservations"] = f"{len(kept)} kept" if policy.keeps_reservations else f"{len(kept)} not kept by this policy"
    return fields


def _ended_by_loss(tables: Tables, early: Bools | None, rule: EndingRule) -> dict[str, object]:
    """How many jobs completed because of their loss, where a rule was in force; the table of jobs says which."""
    if early is None:
        return {}
    ended = np.zeros(tables.F.shape[1], dtype=bool)
    ended[: len(early)] = early & (tables.I[Job.PHASE, : len(early)] == Phase.COMPLETED)
    tables.verdicts[ENDED_BY_LOSS] = ended.astype(np.float64)
    return {"end_by": str(rule), ENDED_BY_LOSS: int(ended.sum())}


def _journal(record: bool | Journal) -> Journal | None:
    if record is not True:
        return record or None
    return Journal()


def _told_by_models(policy: Policy, model: Any, learned: Any, seed: int) -> dict[str, Any]:
    """What models add to the summary: how far off the policy's estimates of pairs were, and its beliefs about goodput."""
    found = policy.summary_of(model, seed)
    if isinstance(model, OnlineGoodput) and model.learns:
        found |= model.belief_errors(learned)
    return found


def _window(track: tuple[int, int] | None, rows: int, regime: Regime) -> tuple[int, int] | None:
    if track is None:
        return None
    low, high = track[0], track[1] + (1 if regime.track_end_included else 0)
    if not 0 <= low < high:
        raise UsageError(f"{track[0]}:{track[1]} tracks no job", where="--track", fix="write LO:HI with LO <= HI, counted from 0")
    if low >= rows:
        raise UsageError(f"the trace has {rows} jobs, none from {low} on", where="--track", fix=f"use LO below {rows}")
    return low, min(high, rows)


# --- how a policy's key is evaluated ------------------------------------------------------------------------------------


def key_form(policy: Policy) -> str:
    """One sentence, for the usual case of one device type and rounds."""
    if not isinstance(policy, OrderPolicy):
        return "none: it makes plans, and is asked at every decision"
    found = read_key(policy, usual_state(), guard_of(policy, None))
    unasked = "; valid_until() is not asked, because the key says when the order changes" if found.hint is Hint.BY_SNAPSHOT else ""
    if found.key is not None:
        return f"compiled: key() is read once, and a decision costs what changes{unasked}"
    return f"asked at every decision, because {found.why_asked}"


def usual_state() -> State:
    """A handful of jobs that have not arrived, on machines of one kind."""
    rules = RunRules(Regime(round=60.0))
    return rules.state(rules.load(generate("philly", seed=0, jobs=8, load=1.0, gpus=64), read_cluster("8x8")))
